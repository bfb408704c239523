"""What the user sees while a step runs: one line per step, and a bar where the amount of work is known."""

import sys
import time
from contextlib import contextmanager
from typing import Iterator, Optional

from tqdm import tqdm


class Bar:
    """A progress bar over bytes or items; silent where standard error is no terminal."""

    def __init__(self, title: str, total: Optional[int], unit: str = "B") -> None:
        self._bar = tqdm(
            total=total,
            desc=f"  {title}",
            unit=unit,
            unit_scale=unit == "B",
            unit_divisor=1000,
            leave=False,
            dynamic_ncols=True,
            disable=None,
            file=sys.stderr,
        )

    def advance(self, amount: int) -> None:
        self._bar.update(amount)

    def set_total(self, total: int) -> None:
        if self._bar.total != total:
            self._bar.total = total
            self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


@contextmanager
def bar(title: str, total: Optional[int], unit: str = "B") -> Iterator[Bar]:
    shown = Bar(title, total, unit)
    try:
        yield shown
    finally:
        shown.close()


@contextmanager
def step(title: str) -> Iterator[None]:
    """Announce a step; say how long it took when that was long enough to notice."""
    note(f"{title} …")
    start = time.monotonic()
    yield
    seconds = time.monotonic() - start
    if seconds >= 1:
        note(f"  done in {seconds:.0f} s")


def note(text: str) -> None:
    """A line for the user. Goes to standard error: standard output belongs to a command's answer."""
    tqdm.write(text, file=sys.stderr)
    sys.stderr.flush()
