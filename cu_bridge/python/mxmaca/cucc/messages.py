"""What the compiler says of one file in two passes, said once."""

import re
from typing import Dict, Iterable, List, NamedTuple, Set, Tuple

COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
HEAD = re.compile(
    r"^(?P<place>[^\s:][^:\n]*(?::\d+)?)(?::\d+)?: (?P<kind>(?:fatal )?error|warning|remark): (?P<text>.*)$"
)
# What stands before a message and belongs to it.
CONTEXT = re.compile(r"^(In file included from |\s+from |\S[^:]*: (In|At) |\S.*:\s+(recursively )?required )")
# What is unused in one pass only is used: kernels have their bodies in one of them, `#ifdef __CUDA_ARCH__` in both. The
# last is what bodies.py has left out.
IN_BOTH = (
    *("defined but not used", "-Wunused-function", "-Wunused-const-variable", "-Wunneeded-internal-declaration"),
    "used but never defined",
)
Key = Tuple[str, str, str]


class Message(NamedTuple):
    """One message with the lines around it."""

    key: Key  # place, kind, text; the column is left out, since rewriting moves it
    text: str

    @property
    def is_error(self) -> bool:
        return "error" in self.key[1]

    @property
    def in_both(self) -> bool:
        return any(option in self.key[2] for option in IN_BOTH)


def split(text: str) -> List[Message]:
    """The messages of a compiler's output, in its order."""
    messages: List[Message] = []
    lines: List[str] = []
    waiting: List[str] = []
    key: Key = ("", "", "")

    def close() -> None:
        if lines:
            messages.append(Message(key, "".join(lines)))

    for line in text.splitlines(keepends=True):
        bare = COLOUR.sub("", line.rstrip("\n"))
        head = HEAD.match(bare)
        if head is not None:
            close()
            lines, waiting = [*waiting, line], []
            key = (head.group("place"), head.group("kind"), head.group("text"))
        elif CONTEXT.match(bare):
            waiting.append(line)
        else:
            # Notes and source lines belong to the message before them.
            lines += [*waiting, line]
            waiting = []
    lines += waiting
    close()
    return messages


def merged(host: str, device: str) -> str:
    """The output of both passes: what both say once, what one says as it is."""
    first, second = split(host), split(device)
    of_host, of_device = _keys(first), _keys(second)
    broken: Set[str] = {message.key[0] for message in first if message.is_error}
    said: Dict[Key, None] = {}
    parts = []
    for messages, others in ((first, of_device), (second, of_host)):
        for message in messages:
            if message.key in said and message.key != ("", "", ""):
                continue
            if message.in_both and message.key not in others:
                continue
            # One mistake in two wordings, as the passes' texts differ there.
            if messages is second and message.is_error and message.key[0] in broken:
                continue
            said[message.key] = None
            parts.append(message.text)
    return "".join(parts)


def only_repeats(host: str, device: str) -> bool:
    """Whether the device pass names errors, and none in another place than the host pass."""
    places = [{message.key[0] for message in split(text) if message.is_error} for text in (host, device)]
    return bool(places[1]) and places[1] <= places[0]


def _keys(messages: Iterable[Message]) -> Set[Key]:
    return {message.key for message in messages}
