"""The host compiler and the other tools that do the work, and what is said of them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional, Sequence

from .errors import CuccError
from .options import Options

# With the machine in front, as aarch64-linux-gnu-g++.
CROSS_COMPILER = re.compile(r"\w+-.+-(g|c|clang)\+\+")
TIME_HEADING = "source file name , phase name , phase input files , phase output file , arch , tool, metric , unit"


class Failed(Exception):
    """A tool has failed and said why; its exit status."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Toolchain:
    """Runs tools as the command line says: shown, timed, or not at all."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.compiler = _host_compiler(options.value("host_compiler") or os.environ.get("NVCC_CCBIN", ""))
        _prefer_tools_of(self.compiler)
        self.output = ""  # what is being made
        self._clang: Optional[bool] = None
        self._times: List[str] = []

    @property
    def is_clang(self) -> bool:
        if self._clang is None:
            done = subprocess.run([self.compiler, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._clang = b"clang" in done.stdout
        return self._clang

    def warn(self, text: str, kind: str = "", where: str = "cucc") -> None:
        """Say a warning of cucc's own; it is an error if -Werror names its kind.

        Raises:
            CuccError: it is one.
        """
        kinds = self.options.all("errors")
        if kind in kinds or "all-warnings" in kinds:
            raise CuccError(f"{where}: error: {text} [-Werror {kind if kind in kinds else 'all-warnings'}]")
        if not self.options.flag("no_warnings"):
            print(f"{where}: warning: {text}", file=sys.stderr)

    def show(self, command: Sequence[str]) -> None:
        if self.options.flag("verbose") or self.options.flag("dry_run"):
            print("#$ " + " ".join(shlex.quote(str(part)) for part in command), file=sys.stderr)

    def run(self, command: Sequence[str]) -> None:
        """Run a tool and pass on what it says.

        Raises:
            Failed: its exit status is not 0.
        """
        sys.stderr.write(self.capture(command))

    def capture(self, command: Sequence[str], phase: str = "", source: str = "") -> str:
        """Run a tool and return what it said on stderr. -time names its phase.

        Raises:
            Failed: its exit status is not 0.
        """
        self.show(command)
        if self.options.flag("dry_run"):
            return ""
        try:
            begin = time.monotonic()
            done = subprocess.run([str(part) for part in command], stderr=subprocess.PIPE, stdout=None)
            self.timed(phase or os.path.basename(str(command[0])), time.monotonic() - begin, source)
        except OSError as error:
            raise CuccError(f"cucc: fatal: {command[0]}: {error.strerror}") from None
        text = done.stderr.decode("utf-8", "replace")
        if done.returncode:
            if not text:
                text = f"cucc: error: {command[0]} ended with status {done.returncode} and no message\n"
            raise Failed(done.returncode if done.returncode > 0 else 1, text)
        return text

    def timed(self, phase: str, seconds: float, source: str = "") -> None:
        self._times.append(f"{source} , {phase} , {source} , {self.output} , , cucc , {seconds * 1000:.4f} , ms")

    def write_times(self) -> None:
        name = self.options.value("time")
        if not name or self.options.flag("dry_run"):
            return
        if name == "-":
            print("\n".join([TIME_HEADING, *self._times]))
            return
        try:
            with open(name, "a", encoding="utf-8") as file:
                heading = [TIME_HEADING] if file.tell() == 0 else []
                file.writelines(line + "\n" for line in [*heading, *self._times])
        except OSError as error:
            raise CuccError(f"cucc: fatal: -time: {name}: {error.strerror}") from None


def _host_compiler(chosen: str) -> str:
    # The compiler that the user's other sources are compiled with; of `ccache g++` the last word.
    own = shlex.split(os.environ.get("CXX", ""))
    if not chosen and own and shutil.which(own[-1]):
        chosen = own[-1]
    if chosen:
        path = Path(chosen)
        if path.is_dir():
            chosen = str(path / "g++")
        # The C driver does not link the C++ library.
        base = os.path.basename(chosen)
        if base in ("gcc", "cc", "clang"):
            better = chosen[: len(chosen) - len(base)] + {"gcc": "g++", "cc": "c++", "clang": "clang++"}[base]
            chosen = better if shutil.which(better) else chosen
    found = shutil.which(chosen) if chosen else next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
    if found is None:
        raise CuccError(
            f"cucc: fatal: no host compiler: {chosen or 'g++'} was not found. "
            "Install GCC 9 or later (apt install g++), or name one with -ccbin."
        )
    return found


def _prefer_tools_of(compiler: str) -> None:
    """Put a cross compiler's objcopy, ld and the others before this machine's, which cannot read what it writes."""
    if not CROSS_COMPILER.match(os.path.basename(compiler)):
        return
    done = subprocess.run([compiler, "-print-prog-name=objcopy"], stdout=subprocess.PIPE, text=True)
    folder = os.path.dirname(done.stdout.strip())
    if folder:
        os.environ["PATH"] = os.pathsep.join([os.path.realpath(folder), os.environ.get("PATH", "")])


def place(part: Path, output: str) -> None:
    try:
        if os.path.exists(output) and not os.path.isfile(output):
            shutil.copyfile(str(part), output)  # /dev/null
            return
        unfinished = f"{output}.{os.getpid()}.part"
        shutil.copyfile(str(part), unfinished)
        os.replace(unfinished, output)
    except OSError as error:
        raise CuccError(f"cucc: fatal: {output}: {error.strerror}") from None
