"""The one exception that the commands turn into a message and an exit code."""

import errno
from typing import Optional


class FactoryError(Exception):
    """A build that cannot go on: what is wrong, and the way out."""

    def __init__(self, problem: str, way_out: Optional[str] = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way_out = way_out

    def __str__(self) -> str:
        return f"{self.problem}\n  {self.way_out}" if self.way_out else self.problem


def describe_os_error(error: OSError) -> FactoryError:
    """The same failure of the operating system, with the way out that fits its number."""
    where = f": {error.filename}" if error.filename else ""
    ways_out = {
        errno.ENOSPC: "Free some space, or set MACATORCH_CACHE and --output to another disk, and run it again.",
        errno.EDQUOT: "Your quota is used up. Free some space and run the command again.",
        errno.EACCES: "Check the owner and the mode of that path, or choose another with MACATORCH_CACHE or --output.",
        errno.EROFS: "That file system is read-only; choose another place with MACATORCH_CACHE or --output.",
    }
    return FactoryError(f"{error.strerror or error}{where}", ways_out.get(error.errno or 0))
