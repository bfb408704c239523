"""How long lines and files may be, and how many files a folder may hold: limits.toml, with its exceptions."""

import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ..errors import FactoryError
from ..releases import CHECKOUT
from . import prose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("limits.toml")
DOCUMENT = ".md"
UNBROKEN = 100
FOUND = ("columns", "lines", "files")


class Limits:
    """The table, for the files of a checkout."""

    def __init__(self, files: Sequence[str], checkout: Path = CHECKOUT, table: Path = TABLE) -> None:
        self._checkout = checkout
        self._table: Dict[str, Any] = tomllib.loads(table.read_text(encoding="utf-8"))
        for row in self._table["exception"]:
            if set(row) != {"limit", "paths", "reason"} or not row["reason"] or row["limit"] not in self._table:
                raise FactoryError(f"{table.name}: an exception needs a limit, paths and a reason: {row}")
        data = tuple(self._table["data"])
        self.files = [file for file in files if not file.endswith(data) or file.endswith("CMakeLists.txt")]
        self.columns = int(self._table["columns"])

    def excepted(self, limit: str, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self._patterns(limit))

    def _patterns(self, limit: str) -> List[str]:
        return [pattern for row in self._table["exception"] if row["limit"] == limit for pattern in row["paths"]]

    def failures(self) -> List[str]:
        """What is over a limit and not excepted."""
        return [text for limit in FOUND for path, text in self._over(limit) if not self.excepted(limit, path)]

    def unneeded(self) -> List[str]:
        """Patterns of the table that except nothing."""
        return [
            f"{pattern} ({limit})"
            for limit in FOUND
            for over in [{path for path, _ in self._over(limit)}]
            for pattern in self._patterns(limit)
            if not any(fnmatchcase(path, pattern) for path in over)
        ]

    def _over(self, limit: str) -> Iterator[Tuple[str, str]]:
        """The paths that are over a limit, with what is to say of each."""
        most = int(self._table[limit])
        if limit == "files":
            folders = Counter(str(PurePosixPath(file).parent) for file in self.files if not self._is_document(file))
            for folder, count in sorted(folders.items()):
                if count > most:
                    yield folder, f"{folder} holds {count} source files, more than {most}"
            return
        for file in self.files:
            lines = self._text(file).splitlines()
            if limit == "lines" and len(lines) > most and not self._is_document(file):
                yield file, f"{file} has {len(lines)} lines, more than {most}"
            # Python's are ruff's matter.
            if limit == "columns" and not file.endswith(".py"):
                for number, line in enumerate(lines, 1):
                    table = self._is_document(file) and prose.is_table(line)
                    # A list of paths, an address: one word that cannot be divided.
                    if len(line) > most and not table and max(map(len, line.split())) <= UNBROKEN:
                        yield file, f"{file}:{number} has {len(line)} columns, more than {most}"

    def _text(self, file: str) -> str:
        return (self._checkout / file).read_text(encoding="utf-8")

    @staticmethod
    def _is_document(file: str) -> bool:
        return file.endswith(DOCUMENT)

    def rewrap(self) -> None:
        """Wrap the paragraphs and comments that are too long."""
        for file in self.files:
            old = self._text(file)
            if self.excepted("columns", file) or all(len(line) <= self.columns for line in old.splitlines()):
                continue
            if self._is_document(file):
                new = prose.wrapped(old, self.columns)
            elif file.endswith((".cpp", ".h", ".cuh", ".inc")):
                new = prose.wrapped_comments(old, self.columns)
            else:
                continue
            if new != old:
                (self._checkout / file).write_text(new, encoding="utf-8")
