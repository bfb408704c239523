"""What a caller of start_record chose, and the decision which operators are recorded."""

from typing import Any, Dict, FrozenSet, NamedTuple, Optional, Sequence, Tuple

from maca_tools.accuracy import names
from maca_tools.accuracy.errors import AccuracyError


class Options(NamedTuple):
    output_dir: str
    record_level: int
    record_stack: bool
    record_input: bool
    record_output: bool
    op_range: Tuple[Optional[str], ...]
    op_list: Tuple[str, ...]
    skip: int
    ranks: Tuple[int, ...]

    def as_dict(self) -> Dict[str, Any]:
        return dict(self._asdict())


def check(
    output_dir: str,
    record_level: int,
    record_stack: bool,
    record_input: bool,
    record_output: bool,
    op_range: Sequence[Optional[str]],
    op_list: Sequence[str],
    skip: int,
    ranks: Sequence[int],
) -> Options:
    """The options, or an AccuracyError that names the wrong one."""
    if record_level not in (0, 1, 2):
        raise AccuracyError(
            f"record_level is {record_level!r}; it is 0 (compare with the CPU), 1 (summaries) or 2 (tensors)"
        )
    if not isinstance(skip, int) or skip < 0:
        raise AccuracyError(f"skip is {skip!r}; it is the number of operators to pass over, 0 or more")
    if len(op_range) not in (0, 2):
        raise AccuracyError(f"op_range has {len(op_range)} entries; it is [] or [first, end], each a full name or None")
    for name in op_range:
        if name is not None and names.parse(name) is None:
            raise AccuracyError(f"op_range: {name!r} is no full name such as 'torch.nn.Conv1d.6.fwd'")
    if isinstance(op_list, str):
        raise AccuracyError(f"op_list is the text {op_list!r}; it is a list of names: [{op_list!r}]")
    return Options(
        str(output_dir),
        record_level,
        record_stack,
        record_input,
        record_output,
        tuple(op_range),
        tuple(op_list),
        skip,
        tuple(ranks),
    )


class Selector:
    """Decides operator by operator, in the order in which they run."""

    def __init__(self, options: Options) -> None:
        first, end = options.op_range if options.op_range else (None, None)
        self._first, self._end = first, end
        self._inside = first is None
        self._over = False
        self._period = options.skip + 1
        self._candidates = 0
        self._late_backwards = 0
        self._full = frozenset(name for name in options.op_list if names.parse(name))
        self._classes: FrozenSet[str] = frozenset(
            names.api_class(name) for name in options.op_list if name not in self._full
        )
        self._apis = frozenset(full.api for full in map(names.parse, self._full) if full)
        self.takes_inner = bool(options.op_list)
        ends = [names.parse(name) for name in (first, end) if name]
        # A backward operator can be selected without its forward one only if the range says so.
        self.may_select_late = bool(options.op_range) and (
            end is None or any(name and name.way == "bwd" for name in ends)
        )

    def listed(self, name: names.FullName) -> bool:
        if not self.takes_inner:
            return True
        return names.api_class(name.api) in self._classes or str(name) in self._full

    def listed_class(self, api: str) -> bool:
        """Whether functions of this class can be listed at all, in any number and direction."""
        return not self.takes_inner or names.api_class(api) in self._classes or api in self._apis

    def _in_range(self, name: names.FullName) -> bool:
        text = str(name)
        if not self._over and self._end == text:
            self._over = True
        if not self._inside and self._first == text:
            self._inside = True
        return self._inside and not self._over

    def forward(self, name: names.FullName) -> Tuple[bool, bool]:
        """(this operator is a candidate by range and list, skip selects it)"""
        if not self._in_range(name) or not self.listed_class(name.api):
            return False, False
        self._candidates += 1
        return True, (self._candidates - 1) % self._period == 0

    def backward(self, name: names.FullName, was_candidate: bool, was_selected: bool) -> bool:
        if not self._in_range(name) or not self.listed(name):
            return False
        if was_candidate:
            return was_selected
        self._late_backwards += 1
        return (self._late_backwards - 1) % self._period == 0
