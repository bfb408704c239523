"""The types of variables and of plain expressions, as far as a text's tokens show them. In doubt: none."""

from typing import AbstractSet, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import expressions as ex
from .expressions import Tokens
from .source import CLOSERS, NUMBER, WORD, Source, Token, word_set
from .waits import Unfit

# One name for each type of several.
NAMES = {
    "unsigned int": "unsigned",
    "uint": "unsigned",
    "uint32_t": "unsigned",
    "signed": "int",
    "signed int": "int",
    "int32_t": "int",
    "long int": "long",
    "int64_t": "long",
    "unsigned long int": "unsigned long",
    "uint64_t": "unsigned long",
    "size_t": "unsigned long",
    "long long int": "long long",
    "unsigned long long int": "unsigned long long",
    "short int": "short",
    "unsigned short int": "unsigned short",
}
# Behind the smaller ones, which become int: each is converted to those that follow it.
RANKS = ["int", "unsigned", "long", "unsigned long", "long long", "unsigned long long", "float", "double"]
SMALL = word_set("bool char short") | {"signed char", "unsigned char", "unsigned short"}
COMPARISONS = word_set("== != < > <= >= && || !")
ARITHMETIC = word_set("+ - * / %")
INDICES = word_set("threadIdx blockIdx blockDim gridDim")
QUALIFIERS = word_set("static volatile constexpr extern typename __mxmaca_shared__")
SUFFIXES = {"": "int", "u": "unsigned", "l": "long", "ul": "unsigned long", "lu": "unsigned long", "ll": "long long"}
SUFFIXES.update({"ull": "unsigned long long", "llu": "unsigned long long"})
# An element for each thread takes room on one stack. In units of eight bytes for each thread.
MOST_ROOM = 20
BYTES = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "double": 8}


class Type(NamedTuple):
    """A value's type, or what a pointer leads to."""

    base: str
    constant: bool = False  # what the pointer leads to
    pointer: bool = False

    def words(self) -> List[str]:
        return (["const"] if self.constant else []) + self.base.split() + (["*"] if self.pointer else [])


class Declared(NamedTuple):
    """A variable that a body declares."""

    name: str
    at: int  # of its name
    kind: Tokens
    dimensions: int
    value: Tokens  # behind `=`


def of_kind(kind: Tokens, dimensions: int = 0) -> Optional[Type]:
    """The type that a declaration's words name. An array is a pointer, a reference what it refers to."""
    words = [text for text in ex.without(kind, "__restrict", "__restrict__", "&", *QUALIFIERS) if text]
    if "volatile" in ex.texts(kind) or dimensions > 1 or not words:
        return None
    stars = words.count("*") + dimensions
    if words[-1] == "const" and "*" in words:
        words.pop()
    if stars > 1 or ("*" in words and words[-1] != "*"):
        return None
    inner = [word for word in words if word not in ("const", "*")]
    if not inner or inner == ["auto"] or not all(word.isidentifier() or word == "::" for word in inner):
        return None
    if ex.INTEGERS.issuperset(inner):
        # `int unsigned` is written as `unsigned int`.
        order = ["unsigned", "signed", "short", "long", "char", "int"]
        inner = sorted(inner, key=lambda word: order.index(word) if word in order else len(order))
    base = " ".join(inner)
    return Type(NAMES.get(base, base), "const" in words and stars > 0, stars > 0)


def declarations(tokens: Tokens) -> Iterator[Declared]:
    """The variables that a body declares, by statements and in heads of loops. In doubt it is a declaration."""
    for at in range(len(tokens)):
        if _begins(tokens, at):
            yield from _declared(tokens, at)


def _begins(tokens: Tokens, at: int) -> bool:
    """Whether a statement may begin there."""
    if at == 0:
        return True
    before = tokens[at - 1].text
    if before == "(":
        return at > 1 and tokens[at - 2].text in ("for", "if", "while", "switch")
    if before == ")":
        start = ex.opening(tokens, at - 1)
        return start > 0 and tokens[start - 1].text in ("for", "if", "while", "switch")
    return before in (";", "{", "}", "else", "do")


def _declared(tokens: Tokens, start: int) -> Iterator[Declared]:
    at = start
    named = False
    while at < len(tokens):
        text = tokens[at].text
        if text in ("__attribute__", "alignas"):
            at = ex.closing(tokens, at + 1)
        elif text in QUALIFIERS or text in ("const", "*", "&", "&&", "__restrict", "__restrict__", "::"):
            pass
        elif text == "<" and named:
            at = _angle(tokens, at)
        elif tokens[at].kind != WORD or text in ex.NO_TYPES - {"const", "constexpr", "typename"}:
            return
        elif named and text not in ex.ARITHMETIC and tokens[at - 1].text != "::":
            break
        else:
            named = True
        at += 1
    kind = tokens[start:at]
    while at + 1 < len(tokens) and named and tokens[at].kind == WORD:
        behind = at + 1
        dimensions = 0
        while behind < len(tokens) and tokens[behind].text == "[":
            behind, dimensions = ex.closing(tokens, behind) + 1, dimensions + 1
        if behind >= len(tokens) or tokens[behind].text not in ("=", ";", "(", "{", ",", ":", ")"):
            return
        end = behind
        while end < len(tokens) and tokens[end].text not in (",", ";", ")"):
            end = ex.closing(tokens, end) + 1 if tokens[end].text in CLOSERS else template_end(tokens, end) + 1
        value = tokens[behind + 1 : end] if tokens[behind].text == "=" else []
        yield Declared(tokens[at].text, at, kind, dimensions, value)
        if end >= len(tokens) or tokens[end].text != ",":
            return
        at = end + 1
        if at < len(tokens) and tokens[at].text in ("*", "&"):
            kind, at = [*kind, tokens[at]], at + 1


def declarators_of(tokens: Tokens) -> List[Tokens]:
    """What a declaration's commas separate: not those between a template's arguments, as in `Is<T, int>::value`."""
    found: List[Tokens] = []
    begin = at = 0
    while at < len(tokens):
        if tokens[at].text in CLOSERS:
            at = ex.closing(tokens, at)
        elif tokens[at].text == ",":
            found.append(tokens[begin:at])
            begin = at + 1
        else:
            at = template_end(tokens, at)
        at += 1
    return [*found, tokens[begin:]]


def template_end(tokens: Tokens, at: int) -> int:
    """The end of the arguments of a template that is called, or whose member is named, or that place."""
    if tokens[at].text != "<" or at == 0 or tokens[at - 1].kind != WORD:
        return at
    end = _angle(tokens, at)
    inner = tokens[at + 1 : end]
    plain = all(one.kind in (WORD, NUMBER) or one.text in ("::", ",", "*", "/", "+", "-", "<", ">") for one in inner)
    return end if plain and ex.texts(tokens[end + 1 : end + 2]) in (["("], ["::"]) else at


def _angle(tokens: Tokens, at: int) -> int:
    """The end of template arguments, or of the tokens."""
    depth = 0
    while at < len(tokens) and tokens[at].text not in (";", "{"):
        depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[at].text, 0)
        if depth <= 0:
            return at
        at += 1
    return len(tokens)


class Types:
    """The types of the variables of a kernel, and of what is taken into it."""

    def __init__(self) -> None:
        self.known: Dict[str, Optional[Type]] = {}
        self.arrays: Dict[str, int] = {}  # and how many dimensions they have
        self.cells: Set[str] = set()  # in shared memory, and no arrays

    def declare(self, name: str, kind: Optional[Type], dimensions: int = 0) -> None:
        """Note a variable; of two with one name no type is known."""
        if dimensions:
            self.arrays[name] = dimensions if self.arrays.get(name, dimensions) == dimensions else 0
        self.known[name] = kind if self.known.get(name, kind) == kind else None

    def declare_all(self, tokens: Tokens) -> None:
        for one in declarations(tokens):
            kind = self.of(one.value) if ex.has(one.kind, "auto") else of_kind(one.kind, one.dimensions)
            # A reference may be to memory, which is no variable of a thread.
            self.declare(one.name, None if ex.has(one.kind, "&", "&&") else kind, one.dimensions)
            if ex.has(one.kind, "__mxmaca_shared__") and not one.dimensions:
                self.cells.add(one.name)

    def of(self, tokens: Tokens) -> Optional[Type]:
        """The type of an expression's value."""
        while len(tokens) > 2 and tokens[0].text == "(" and ex.closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        if not tokens:
            return None
        if len(tokens) == 1:
            return self._of_one(tokens[0])
        choice = _choice(tokens)
        if choice:
            return self._common(choice, False)
        parts, operators = _operands(tokens)
        if operators:
            return self._of_operation(parts, operators)
        return self._of_operand(tokens)

    def _of_one(self, token: Token) -> Optional[Type]:
        if token.kind == NUMBER:
            return _of_number(token.text.lower())
        if token.text in ("true", "false"):
            return Type("bool")
        if token.text == "warpSize":
            return Type("int")
        return self.known.get(token.text) if token.kind == WORD else None

    def _of_operation(self, parts: List[Tokens], operators: Set[str]) -> Optional[Type]:
        if operators in ({"<<"}, {">>"}):
            return self._common(parts[:1], True)
        if not operators <= COMPARISONS | ARITHMETIC | {"&", "|", "^"}:
            return None
        common = self._common(parts, True)
        return Type("bool") if common is not None and operators & COMPARISONS else common

    def _common(self, parts: List[Tokens], promoted: bool) -> Optional[Type]:
        """The type that arithmetic makes of values."""
        kinds = [self.of(part) for part in parts]
        if any(kind is None or kind.pointer for kind in kinds):
            return None
        bases = [kind.base for kind in kinds if kind is not None]
        if not promoted and len(set(bases)) == 1:
            return Type(bases[0])
        bases = ["int" if base in SMALL else base for base in bases]
        if not all(base in RANKS for base in bases):
            return None
        return Type(max(bases, key=RANKS.index))

    def _of_operand(self, tokens: Tokens) -> Optional[Type]:
        first, texts = tokens[0], ex.texts(tokens)
        if first.text in ("-", "+"):
            return self._common([tokens[1:]], True)
        if first.text == "!":
            return Type("bool")
        if first.text == "*":
            return _element(self.of(tokens[1:]))
        if first.text == "(":
            close = ex.closing(tokens, 0)
            kind = of_kind(tokens[1:close])
            known = kind is not None and (kind.pointer or kind.base in RANKS or kind.base in SMALL)
            return kind if known and close + 1 < len(tokens) else None
        if first.kind != WORD:
            return None
        if len(tokens) == 3 and texts[1] == ".":
            return self._of_member(first.text, texts[2])
        if texts[1] == "[" and ex.closing(tokens, 1) == len(tokens) - 1:
            return _element(self.known.get(first.text))
        if texts[1] == "(" and ex.closing(tokens, 1) == len(tokens) - 1:
            return self._of_call(first.text, ex.split(tokens[2:-1]))
        if first.text == "static_cast" and texts[1] == "<":
            angle = _angle(tokens, 1)
            return of_kind(tokens[2:angle])
        return None

    def _of_member(self, name: str, member: str) -> Optional[Type]:
        if name in INDICES:
            return Type("unsigned")
        kind = self.known.get(name)
        if kind is None or kind.pointer or kind.base not in ex.VECTORS or member not in ("x", "y", "z", "w"):
            return None
        base = kind.base[:-1]
        return Type({"uint": "unsigned", "ushort": "unsigned short", "uchar": "unsigned char"}.get(base, base))

    def _of_call(self, name: str, arguments: List[Tokens]) -> Optional[Type]:
        if name in ex.ARITHMETIC:
            return of_kind([Token(name, 0, 0, WORD)])
        if name in ("__ldg", "__ldcg", "__ldca", "__ldcs") and len(arguments) == 1:
            return _element(self.of(arguments[0]))
        if name in ("min", "max") and len(arguments) == 2:
            kinds = [self.of(argument) for argument in arguments]
            known = kinds[0] is not None and kinds[0].base in RANKS
            return kinds[0] if known and kinds[0] == kinds[1] else None
        if name.endswith("f") and name.lstrip("_")[:-1] in ex.MATHEMATICS:
            return Type("float")
        return None


def _element(kind: Optional[Type]) -> Optional[Type]:
    return Type(kind.base) if kind is not None and kind.pointer else None


def _of_number(text: str) -> Optional[Type]:
    if text.startswith(("0x", "0b")) or "'" in text:
        return None  # the value decides
    if any(char in text for char in ".ef"):
        return Type("float" if text.endswith("f") else "double") if text[-1:] in "0123456789.f" else None
    digits = text.rstrip("ul")
    kind = SUFFIXES.get(text[len(digits) :])
    return Type(kind) if digits.isdigit() and len(digits) < 10 and kind else None


def deduced(value: Tokens, kinds: Dict[str, List[str]]) -> List[str]:
    """A type for a variable of deduced type: it is no pointer to a variable if nothing in its value can be one."""
    found = (kinds[name] for name in ex.names(value).intersection(kinds))
    return ["int"] if all(ex.is_value([part for part in kind if part != "const"]) for kind in found) else ["auto"]


def is_operation(tokens: Tokens) -> bool:
    """Whether an expression is of numbers and operators, so that its value is nobody else's."""
    while len(tokens) > 2 and tokens[0].text == "(" and ex.closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    operators = _operands(tokens)[1] if len(tokens) > 1 else set()
    return bool(operators) and operators <= ARITHMETIC | COMPARISONS


def _choice(tokens: Tokens) -> List[Tokens]:
    """The two values of `a ? b : c`."""
    at, middle, depth = 0, -1, 0
    while at < len(tokens):
        text = tokens[at].text
        if text in CLOSERS:
            at = ex.closing(tokens, at)
        elif text == "?":
            middle = at if middle < 0 else middle
            depth += 1
        elif text == ":" and depth:
            depth -= 1
            if depth == 0:
                return [tokens[middle + 1 : at], tokens[at + 1 :]]
        at += 1
    return []


def _operands(tokens: Tokens) -> Tuple[List[Tokens], Set[str]]:
    """What operators separate outside of brackets, and these."""
    parts: List[Tokens] = []
    operators: Set[str] = set()
    begin = at = 0
    if tokens[0].text == "static_cast" and tokens[1].text == "<":
        at = _angle(tokens, 1) + 1
    while at < len(tokens):
        text = tokens[at].text
        if text in CLOSERS:
            at = ex.closing(tokens, at)
        elif at > begin and tokens[at].kind not in (WORD, NUMBER) and text not in (".", "->", "::", ")", "]"):
            cast = tokens[at - 1].text == ")" and tokens[begin].text == "(" and ex.closing(tokens, begin) == at - 1
            if cast and of_kind(tokens[begin + 1 : at - 1]) is not None and text in ("-", "+", "*", "&"):
                at += 1  # a cast of what follows, or an operation: in doubt neither
                operators.add("cast")
                continue
            operators.add(text)
            parts.append(tokens[begin:at])
            begin = at + 1
        at += 1
    return [*parts, tokens[begin:]], operators


# ---- Variables that are kept over a wait -----------------------------------------------------------------------------


class Kept:
    """The arrays with an element for each thread.

    Args:
        source: the program.
        templates: the names of types that are a template's parameters.
        named: types may be known by a name alone.
    """

    def __init__(self, source: Source, templates: AbstractSet[str], named: bool) -> None:
        self.source, self.templates, self.named = source, templates, named
        self.made = self.room = 0
        self.numbers: Set[str] = set()  # names of types that must be numbers

    def array(self, name: str, kept: str, where: Optional[Token]) -> str:
        """The name of the array that keeps a variable of all threads.

        Raises:
            Unfit: there is no room for it.
        """
        vector = kept if kept in ex.VECTORS else ""
        self.room += max(1, BYTES.get(vector[:-1], 4) * int(vector[-1]) // 8) if vector else 1
        if self.room > MOST_ROOM:
            raise Unfit(f"there are too many variables to keep '{name}' over a wait", where)
        return self.name(name)

    def name(self, name: str) -> str:
        """A name that no other variable of the kernel has."""
        self.made += 1
        return f"__mxmaca_of_{name}_{self.made}"

    def type_of(self, kind: Tokens) -> str:
        """The type of the elements of an array that keeps the variables of all threads.

        Raises:
            Unfit: such an array cannot be made, or be assigned to.
        """
        words = ex.without(kind, "const", "__restrict", "__restrict__")
        if ex.is_builtin(words) or (len(words) == 1 and words[0] in ex.HALVES and self._are_cudas()):
            return " ".join(words)
        if len(words) == 1 and self._may_be_number(words[0]):
            self.numbers.add(words[0])
            return words[0]
        star = max((at for at, token in enumerate(kind) if token.text == "*"), default=0)
        named = all(token.kind == WORD or token.text == "::" for token in kind[:star])
        if not star or not named or "auto" in words or words[-1] != "*":
            raise Unfit(f"a variable of type '{' '.join(words)}' cannot be kept over a wait", kind[0])
        return " ".join(ex.texts(kind[: star + 1]))

    def _are_cudas(self) -> bool:
        """Whether CUDA's header of half or bfloat16 is included, so that nobody else has types of their names."""
        return any(next(iter(self.source.find(name)), None) is not None for name in ("__half", "__nv_bfloat16"))

    def _may_be_number(self, name: str) -> bool:
        """Whether a type's name is that of a template's parameter, or of a number in all its declarations."""
        if name in self.templates or not self.named:
            return self.named
        found = False
        for token in self.source.find(name):
            before, behind = self.source.before(token.start), self.source.token(token.end)
            if before.text == "using" and behind.text == "=":
                words = self.source.words(behind.end, self.source.declaration_end(behind.end))
            elif behind.text == ";" and "typedef" in self.source.words(
                self.source.declaration_start(token.start), token.start
            ):
                words = self.source.words(self.source.declaration_start(token.start), token.start)[1:]
                if before.kind != WORD:
                    return False
            elif before.text in ("class", "struct", "union", "enum", "typename"):
                return False
            else:
                continue
            found = True
            if not ex.ARITHMETIC.issuperset(words) or not words:
                return False
        return found
