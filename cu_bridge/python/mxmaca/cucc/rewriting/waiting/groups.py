"""Tiles of cooperative groups in a kernel, as shuffles and thread indices.

Note: tiles
~~~~~~~~~~~
A tile of a warp has no state: which threads are in it follows from their indices. So its declaration goes away, and
what it is asked for becomes what the header computes:

    auto tile = cg::tiled_partition<32>(block);
    v += tile.shfl_down(v, 8);               →    v += __tile_shfl_down(0xffffffff, v, 8, 32);
    if (tile.thread_rank() == 0) …           →    if (static_cast<unsigned long long>(rank % 32u) == 0) …

`__tile_…` are words of the phases alone (waits.py). Every mention of a tile must be understood, within the braces of
its declaration, and its name must not be declared again; else the kernel keeps its threads' stacks.
"""

from typing import Dict, List, NamedTuple, Optional, Set

from .. import expressions as ex
from ..expressions import Tokens
from ..source import NUMBER, OTHER, WORD, Source, Token
from ..types import SMALL, Types, declarations
from ..waits import BLOCK, OF_VOTES, RANK, REDUCTIONS, Unfit, blocks, is_overloaded
from ..waits import SHUFFLES as ALL_SHUFFLES

PARTITION = "tiled_partition"
SIZES = ("1", "2", "4", "8", "16", "32")
COUNT = "( blockDim . x * blockDim . y * blockDim . z )"
# What the methods without arguments give; {0} is the tile's size.
OF_TILES = {
    "thread_rank": f"static_cast < unsigned long long > ( {RANK} % {{0}}u )",
    "size": "static_cast < unsigned long long > ( {0}u )",
    "num_threads": "static_cast < unsigned long long > ( {0}u )",
    "meta_group_rank": f"( {RANK} / {{0}}u )",
    "meta_group_size": f"( ( {COUNT} + ( {{0}}u - 1u ) ) / {{0}}u )",
    "sync": "__syncwarp ( )",
}
OF_BLOCKS = {"thread_rank": RANK, "size": COUNT, "num_threads": COUNT}
SHUFFLES = {"shfl": 2, "shfl_up": 2, "shfl_down": 2, "shfl_xor": 2}
# What gives a value of the type that it is given.
EXCHANGES = {word for word, kind in ALL_SHUFFLES.items() if kind not in OF_VOTES}
VOTES = {"any": "__any_sync", "all": "__all_sync", "ballot": "__ballot_sync"}
# By these methods a function waits that is given a tile (functions.py).
METHODS = (*sorted(SHUFFLES), *sorted(VOTES))


class Tile(NamedTuple):
    """The declaration of a tile: from its first token up to its semicolon, and the end of its scope."""

    name: str
    size: str
    start: int
    end: int
    scope: int


def spelled(text: str, where: Token) -> List[Token]:
    """Tokens at the place of another one."""

    def kind(one: str) -> str:
        return NUMBER if one[0].isdigit() else WORD if one[0].isalpha() or one[0] == "_" else OTHER

    return [Token(one, where.start, where.start, kind(one)) for one in text.split()]


def names_of(source: Source, name: str) -> Set[str]:
    """What may stand before `::name` so that it is the one of cooperative groups; "" for nothing."""
    found = {"cooperative_groups"}
    others: Set[str] = set()
    for token in source.find("namespace"):
        alias = source.token(token.end)
        behind = source.token(alias.end).text if alias.kind == WORD else ""
        if behind == "=" and source.words(alias.end, source.declaration_end(alias.end)) == ["cooperative_groups"]:
            found.add(alias.text)
        elif behind in ("=", "{", "::"):
            others.add(alias.text)
        named = source.before(token.start).text == "using" and alias.text == "cooperative_groups"
        if named and not is_overloaded(source, name):
            found.add("")
    return {one for one in found if one == "cooperative_groups" or one not in others}


def tiles(source: Source, tokens: Tokens) -> Dict[str, Tile]:
    """The tiles that are declared in the tokens.

    Raises:
        Unfit: one of them is not understood.
    """
    found: Dict[str, Tile] = {}
    qualifiers = names_of(source, PARTITION) if ex.has(tokens, PARTITION) else set()
    for at, token in enumerate(tokens):
        if token.text != PARTITION:
            continue
        start = _qualified(tokens, at, qualifiers)
        words = ex.texts(tokens[at + 1 : at + 5])
        name = tokens[start - 2] if start > 1 else token
        begin = start - 2
        while begin > 0 and tokens[begin - 1].text not in (";", "{", "}", ")", "else"):
            begin -= 1
        kind = ex.texts(tokens[begin : start - 2])
        plain = len(words) == 4 and words[0] == "<" and words[2:] == [">", "("] and words[1] in SIZES
        if not plain or ex.texts(tokens[start - 1 : start]) != ["="] or name.kind != WORD:
            raise Unfit("a tile of threads that is not understood", token)
        typed = kind[-4:] == ["thread_block_tile", "<", words[1], ">"]
        if [one for one in kind if one != "const"] != ["auto"] and not (typed and "&" not in kind):
            raise Unfit("a tile of threads that is not understood", token)
        close = ex.closing(tokens, at + 4)
        parent = ex.texts(tokens[at + 5 : close])
        of_block = parent[:1] and parent[0] in blocks(tokens) and len(parent) == 1
        of_block = of_block or (parent[-3:] == [BLOCK, "(", ")"] and parent[:-3] in _spellings(qualifiers))
        if not of_block or ex.texts(tokens[close + 1 : close + 2]) != [";"]:
            raise Unfit("a tile of threads that is not understood", token)
        brace = ex.opening(tokens, begin)
        scope = len(tokens) if brace < 0 else ex.closing(tokens, brace)
        if name.text in found or sum(one.name == name.text for one in declarations(tokens)) > 1:
            raise Unfit(f"there are several variables '{name.text}', of which one is a tile", name)
        found[name.text] = Tile(name.text, words[1], begin, close + 2, scope)
    return found


def _spellings(qualifiers: Set[str]) -> List[List[str]]:
    named = [[one, "::"] if one else [] for one in sorted(qualifiers)]
    return [*named, *(["::", *one] for one in named if one)]


def _qualified(tokens: Tokens, at: int, qualifiers: Set[str]) -> int:
    """Where a name of cooperative groups begins, with what stands before it.

    Raises:
        Unfit: it may be another one.
    """
    start = at
    if at > 1 and tokens[at - 1].text == "::" and tokens[at - 2].kind == WORD:
        start = at - 2
        if start and tokens[start - 1].text == "::" and (start < 2 or tokens[start - 2].kind != WORD):
            start -= 1
    if ex.texts(tokens[start:at]) not in _spellings(qualifiers):
        raise Unfit(f"'{tokens[at].text}' may be another one than that of cooperative groups", tokens[at])
    return start


def lowered(source: Source, tokens: Tokens, types: Types) -> List[Token]:
    """The tokens without tiles.

    Raises:
        Unfit: something about them is not understood.
    """
    if not ex.has(tokens, PARTITION):
        return list(tokens)
    return _Lowering(source, tokens, types).all(0, len(tokens))


class _Lowering:
    def __init__(self, source: Source, tokens: Tokens, types: Types) -> None:
        self.source, self.tokens, self.types = source, tokens, types
        self.tiles = tiles(source, tokens)
        self.starts = {tile.start: tile for tile in self.tiles.values()}
        self.blocks = blocks(tokens)
        self.reduces = names_of(source, "reduce") if ex.has(tokens, "reduce") else set()

    def all(self, at: int, end: int) -> List[Token]:
        made: List[Token] = []
        tokens = self.tokens
        while at < end:
            token = tokens[at]
            if at in self.starts:
                at = self.starts[at].end
                continue
            member = at > 0 and tokens[at - 1].text in (".", "->", "::")
            if token.text in self.tiles and not member and token.kind == WORD:
                at = self._of_tile(at, made)
            elif token.text in self.blocks and not member and self._asks_block(at):
                made += spelled(OF_BLOCKS[tokens[at + 2].text], token)
                at += 5
            elif token.text == "reduce" and self._tile_in(at, ",") is not None:
                at = self._reduction(at, made)
            elif token.text == "sync" and self._tile_in(at, ")") is not None:
                self._without_qualifier(at, names_of(self.source, "sync"), made)
                self._scoped(at + 2)
                made += spelled("__syncwarp ( )", token)
                at += 4
            else:
                made.append(token)
                at += 1
        return made

    def _asks_block(self, at: int) -> bool:
        words = ex.texts(self.tokens[at + 1 : at + 5])
        return words[:1] == ["."] and words[2:] == ["(", ")"] and words[1] in OF_BLOCKS

    def _scoped(self, at: int) -> Tile:
        tile = self.tiles[self.tokens[at].text]
        if not tile.end <= at < tile.scope:
            raise Unfit(f"'{tile.name}' may be another one than the tile", self.tokens[at])
        return tile

    def _of_tile(self, at: int, made: List[Token]) -> int:
        tokens, tile = self.tokens, self._scoped(at)
        words = ex.texts(tokens[at + 1 : at + 4])
        close = ex.closing(tokens, at + 3) if words[2:] == ["("] else at
        if words[:1] != ["."] or close == at or words[1] not in {*OF_TILES, *SHUFFLES, *VOTES}:
            raise Unfit(f"the tile '{tile.name}' is used in a way that is not understood", tokens[at])
        method, where = words[1], tokens[at]
        if method in OF_TILES:
            if close != at + 4:
                raise Unfit(f"the tile '{tile.name}' is used in a way that is not understood", tokens[at])
            made += spelled(OF_TILES[method].format(tile.size), where)
            return close + 1
        arguments = ex.split(tokens[at + 4 : close])
        if method in VOTES:
            if tile.size != "32" or len(arguments) != 1:
                raise Unfit(f"a vote of the tile '{tile.name}', which is a part of a warp", where)
            made += spelled(f"{VOTES[method]} ( 0xffffffff ,", where)
            made += [*self.all(at + 4, close), tokens[close]]
            return close + 1
        if len(arguments) != SHUFFLES[method]:
            raise Unfit(f"the tile '{tile.name}' is used in a way that is not understood", where)
        made += spelled(f"__tile_{method} ( 0xffffffff ,", where)
        made += [*self.all(at + 4, close), *spelled(f", {tile.size} )", tokens[close])]
        return close + 1

    def _tile_in(self, at: int, behind: str) -> Optional[str]:
        """The tile that is the first argument of the call there, and what stands behind it."""
        words = ex.texts(self.tokens[at + 1 : at + 4])
        return words[1] if words[:1] == ["("] and words[2:] == [behind] and words[1] in self.tiles else None

    def _without_qualifier(self, at: int, qualifiers: Set[str], made: List[Token]) -> None:
        """Takes back what stands before the name there, in the namespace of cooperative groups."""
        del made[len(made) - (at - _qualified(self.tokens, at, qualifiers)) :]

    def _reduction(self, at: int, made: List[Token]) -> int:
        tokens = self.tokens
        self._without_qualifier(at, self.reduces, made)
        tile, close = self._scoped(at + 2), ex.closing(tokens, at + 1)
        arguments = ex.split(tokens[at + 2 : close])
        if len(arguments) != 3:
            raise Unfit("a reduction that is not understood", tokens[at])
        operation = ex.texts(arguments[2])
        by = operation.index("<") - 1 if "<" in operation else -1
        named = by >= 0 and operation[by] in REDUCTIONS and operation[-3:] in ([">", "(", ")"], [">", "{", "}"])
        if not named or "(" in operation[:-3] or operation.count("<") != 1:
            raise Unfit("a reduction by something that is not understood", tokens[at])
        _qualified(arguments[2], by, names_of(self.source, operation[by]))
        made += spelled(f"__tile_{operation[by]} ( 0xffffffff ,", tokens[at])
        begin = at + 4
        made += self.all(begin, begin + len(arguments[1]))
        made += spelled(f", {tile.size} , {tile.size} )", tokens[close])
        return close + 1


def with_types(tokens: Tokens, types: Types) -> List[Token]:
    """The tokens with types for `auto`, where a shuffle or a reduction is all that a variable begins with.

    What a warp's own shuffle gives has the type of its second argument, where that is no smaller than an int.
    """
    made: List[Token] = []
    for at, token in enumerate(tokens):
        words = ex.texts(tokens[at : at + 5])
        if token.text == "auto" and words[2:3] == ["="] and words[4:] == ["("] and words[3] in EXCHANGES:
            close = ex.closing(tokens, at + 4)
            kind = types.of([*ex.split(tokens[at + 5 : close]), ()][1])
            if kind is not None and kind.base in SMALL and not words[3].startswith("__tile_"):
                kind = None
            if kind is not None and not kind.pointer and ex.texts(tokens[close + 1 : close + 2]) == [";"]:
                made += spelled(" ".join(kind.words()), token)
                continue
        made.append(token)
    return made
