"""What C++ files include, and whether that leads in a circle."""

import re
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Set

INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.MULTILINE)


def included(path: Path) -> List[str]:
    """The names in a file's includes with quotation marks."""
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def within(files: Iterable[Path], root: Path, paths: Iterable[Path]) -> Dict[str, Set[str]]:
    """Which of the files each includes, by their names under `root`; `paths` is the compiler's search path."""
    known = {path.resolve() for path in files}
    search = list(paths)
    return {
        str(path.relative_to(root)): {
            str(found.relative_to(root))
            for name in included(path)
            for found in [next((p for d in [path.parent, *search] for p in [(d / name).resolve()] if p in known), None)]
            if found is not None
        }
        for path in sorted(known)
    }


def unit(file: str) -> str:
    """A header and the source file of the same name are one thing."""
    return file.rsplit(".", 1)[0]


def circle(includes: Dict[str, Set[str]], of: Callable[[str], str] = unit) -> List[str]:
    """Units, each of which includes the next, the last one the first; [] if there are none."""
    needs: Dict[str, Set[str]] = {}
    for file, others in includes.items():
        needs.setdefault(of(file), set()).update({of(other) for other in others} - {of(file)})
    done: Set[str] = set()

    def visit(one: str, path: List[str]) -> List[str]:
        if one in path:
            return [*path[path.index(one) :], one]
        if one not in done:
            for other in sorted(needs.get(one, ())):
                found = visit(other, [*path, one])
                if found:
                    return found
            done.add(one)
        return []

    return next((found for one in sorted(needs) for found in [visit(one, [])] if found), [])
