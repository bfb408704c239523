"""What a kernel becomes, piece by piece: loops over the threads, and what stands between them."""

from typing import List, NamedTuple, Optional, Set, Tuple


class Variable(NamedTuple):
    """A variable that regions behind its own see: what brings it into their scope, and the names in that."""

    name: str
    text: str
    uses: Set[str]


class Piece(NamedTuple):
    """A part of a region."""

    text: str
    uses: Set[str]
    declares: Optional[Variable] = None


class Regions:
    """The text of a kernel in phases.

    Attributes:
        output: what is finished.
        region: the parts of the loop over the threads that is being written.
        visible: variables that later loops may need.
        guards: conditions of whole warps around the place, and their names.
    """

    def __init__(self) -> None:
        self.output: List[str] = []
        self.region: List[Piece] = []
        self.visible: List[Variable] = []
        self.guards: List[Tuple[str, Set[str]]] = []

    def _close(self) -> None:
        """The end of a loop over the threads."""
        if not self.region:
            return
        wanted: Set[str] = set().union(*(piece.uses for piece in self.region))
        text = self._needed(wanted) + "".join(piece.text for piece in self.region)
        if self.guards:
            asked: Set[str] = set().union(*(used for _, used in self.guards))
            conditions = " && ".join(condition for condition, _ in self.guards)
            text = f"{self._needed(asked)} if ({conditions}) {{ {text}\n}}"
        self.output.append(f" __mxmaca_phase([&](int __mxmaca_thread) __attribute__((always_inline)) {{ {text}\n}});")
        self.region = []

    def _needed(self, wanted: Set[str]) -> str:
        """What brings variables of earlier regions into a loop's scope."""
        declared = [piece.declares for piece in self.region]
        wanted = set(wanted)
        needed: List[str] = []
        for variable in reversed(self.visible):
            if variable.name in wanted and not any(one is variable for one in declared):
                needed.insert(0, variable.text)
                wanted |= variable.uses
        return " ".join(needed)
