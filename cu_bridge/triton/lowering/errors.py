"""The error for what cannot be compiled."""

from typing import Tuple


class LoweringError(Exception):
    """An operation that has no lowering here. The message names the operation and the user's line."""

    def __init__(self, operation: str, reason: str, location: Tuple[str, int] = ("", 0)):
        self.operation, self.reason, self.location = operation, reason, location
        place = f"{location[0]}:{location[1]}: " if location[0] else ""
        super().__init__(f"{place}operation {operation}: {reason}")
