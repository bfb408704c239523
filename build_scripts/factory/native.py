"""Building the SDK and the operators with CMake, kept by the hash of everything that goes in.

Note: incremental and reproducible
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A finished build is stored under a key: sources, headers, options, compiler. A build folder per component is kept as
well, so that a change compiles only what it concerns; ninja decides by time stamps and commands, and the compiler is
told to leave paths out (-ffile-prefix-map), so the result is that of a fresh folder. After a kill -9 ninja makes anew
what its log does not list as finished.

Time stamps do not show damage. So a finished build leaves a list of what it made, with its sha256, and what differs
from that list before the next build is removed and made anew. A build that was killed leaves no list: after it, ninja's
log alone decides.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from .. import cache, children, platforms
from ..errors import FactoryError
from ..platforms import Architecture
from ..progress import bar, note, step
from ..releases import CHECKOUT, Release
from .stripped import CARRIERS
from .wheel import WheelReader, record_hash

SPACE = 1_500_000_000
# The lines of a log that say what is wrong; the compiler's command lines do not.
TELLING = re.compile(r"[Ee]rror\b|FAILED|undefined reference|Error:")
NINJA_STEP = re.compile(r"^\[(\d+)/(\d+)\]")
FORMAT = 2
HEADERS = ("torch/include/", "torch/share/", "torchgen/")
LIBRARIES = "torch/lib/"
# CMake, ninja and the linker take these for signs of their own, in quotes as well.
UNUSABLE = '";,|\\[$\n'


def _program(name: str) -> str:
    found = children.program(name)
    if found is None:
        raise FactoryError(
            f"{name} is missing.", "Install the factory's tools: python -m pip install -r requirements/factory.txt"
        )
    return found


def compiler(architecture: Optional[Architecture] = None) -> str:
    """The C++ compiler: $CXX, else the usual names; for another machine's architecture GNU's for that one."""
    if architecture is not None and architecture.is_foreign:
        name = f"{architecture.triplet}-g++"
        found = shutil.which(name)
        if found:
            return found
        raise FactoryError(
            f"No C++ compiler for {architecture.name}: {name} is not on PATH.",
            f"Install one: apt install {architecture.package} (Debian, Ubuntu).",
        )
    chosen = os.environ.get("CXX")
    candidates = [chosen] if chosen else ["g++", "c++", "clang++"]
    for candidate in candidates:
        found = shutil.which(candidate)
        if found:
            return found
    raise FactoryError(
        f"No C++ compiler: {' or '.join(candidates)} is not on PATH.",
        "Install GCC 9 or later (apt install g++, or dnf install gcc-c++), or name one with CXX.",
    )


def toolchain(architecture: Optional[Architecture] = None) -> Dict[str, str]:
    """What identifies compiler and C library: their predefined macros. Refuses where nothing could be built.

    ``architecture``: what is built for (default: this machine's).
    """
    bad = sorted(set(UNUSABLE).intersection(str(cache.root())))
    if bad:
        raise FactoryError(
            f"The cache {cache.root()} has {' '.join(bad)} in its path, which CMake or the linker would take apart.",
            "Choose another place with MACATORCH_CACHE. Spaces and other signs are no matter.",
        )
    program = compiler(architecture)
    command = [program, "-E", "-dM", "-include", "features.h", "-x", "c++", os.devnull]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise FactoryError(
            f"{program} does not work: {done.stderr.strip()[-300:]}",
            "Install GCC 9 or later with its C library headers.",
        )
    cmake = _program("cmake")
    version = subprocess.run([cmake, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[0]
    _program("ninja")
    macros = hashlib.sha256("".join(sorted(done.stdout.splitlines(True))).encode()).hexdigest()
    return {
        "compiler": os.path.basename(program),
        "macros": macros,
        "cmake": version,
        "flags": os.environ.get("CXXFLAGS", ""),
    }


def sync(source: Path, target: Path, parts: Sequence[str] = ()) -> None:
    """Make ``target`` equal to ``source`` without touching what is the same already: compilers go by time stamps.

    ``parts`` are the files and folders of ``source`` that count; none named: all of it.
    """
    paths = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    wanted = {path.relative_to(source) for path in paths}
    if parts:
        wanted = {path for path in wanted if path.parts[0] in parts}
    for relative in wanted:
        old, new = target / relative, source / relative
        if old.is_file() and old.stat().st_size == new.stat().st_size and old.read_bytes() == new.read_bytes():
            continue
        old.parent.mkdir(parents=True, exist_ok=True)
        # A time stamp of now: the file is newer than what was compiled from the old one, whatever its own says.
        shutil.copyfile(str(new), str(old))
        shutil.copymode(str(new), str(old))
    for path in list(target.rglob("*")):
        if path.is_file() and path.relative_to(target) not in wanted:
            path.unlink()


class Tools:
    """Runs CMake, shows ninja's progress, and keeps the words of both in a log for the case of failure."""

    def __init__(self, log: Path) -> None:
        self.log = log
        log.write_text("")

    def cmake(self, arguments: Sequence[str], title: str) -> None:
        command = [_program("cmake"), *arguments]
        with self.log.open("a") as out, bar(title, None, "files") as progress:
            out.write(" ".join(command) + "\n")
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "LC_ALL": "C"},
                # They outlive a kill -9 of ours; the next run then waits for them.
                pass_fds=cache.held_locks(),
            )
            assert process.stdout is not None
            done = 0
            for line in process.stdout:
                out.write(line)
                match = NINJA_STEP.match(line)
                if match:
                    progress.set_total(int(match.group(2)))
                    progress.advance(int(match.group(1)) - done)
                    done = int(match.group(1))
            process.wait()
        if process.returncode:
            raise self._failure(title)

    def _failure(self, title: str) -> FactoryError:
        lines = self.log.read_text(errors="replace").splitlines()
        if any("No space left" in line for line in lines[-200:]):
            return FactoryError(f"{title} failed: no space left.", "Free some space, or set MACATORCH_CACHE.")
        telling = [line for line in lines if TELLING.search(line) and " -o " not in line][-12:]
        return FactoryError(
            f"{title} failed:\n    " + "\n    ".join(telling or lines[-20:]), f"The whole log: {self.log}"
        )


# What libmacatorch is built from; the Python packages beside it do not count.
OPERATOR_SOURCES = ("CMakeLists.txt", "operators.toml", "cpu_dtypes", "codegen", "csrc", "older_headers")
# What they are built from of the SDK.
SDK_PARTS = ("include", "portable")
# The parts of csrc/fast, each an option MACATORCH_FAST_<part> of CMake.
FAST = ("ALLOCATOR", "ONEDNN", "PANELS", "LINES", "COPIES", "BACKWARD_THREAD")


def fast_parts(text: str) -> Tuple[str, ...]:
    """The parts that ``text`` names: on, off, or names with commas between them."""
    if text in ("on", "off"):
        return FAST if text == "on" else ()
    names = set(text.split(","))
    if not names <= set(FAST):
        raise FactoryError(
            f"'{text}' names no parts of csrc/fast.", f"Say on, off, or some of {','.join(FAST)}, with commas between."
        )
    return tuple(part for part in FAST if part in names)


def _named(name: str, architecture: Architecture) -> str:
    """What a build is called: one for another architecture than this machine's carries its name."""
    return f"{name}-{architecture.name}" if architecture.is_foreign else name


def _target(architecture: Architecture) -> List[str]:
    """CMake's options for the compiler, and for the system where that is not this machine's."""
    options = [f"-DCMAKE_CXX_COMPILER={compiler(architecture)}"]
    if architecture.is_foreign:
        options += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={architecture.name}"]
        # CMake would take this machine's where a project has C sources.
        options += [f"-DCMAKE_C_COMPILER={architecture.triplet}-gcc"]
    return options


def _build(
    component: str,
    variant: str,
    architecture: Architecture,
    source: Path,
    options: Dict[str, str],
    flags: str,
    key: Dict[str, object],
    parts: Sequence[str] = (),
    libraries: Sequence[str] = (),
    prepare: Callable[[], None] = lambda: None,
) -> Path:
    """The folder with the results, from the cache or built now: these libraries, or, without any, what is installed.

    ``prepare`` is called before a build: it leaves what the options name.
    """
    if not (source / "CMakeLists.txt").is_file():
        raise FactoryError(
            f"{source.name}/CMakeLists.txt is missing: without it the wheel could compute nothing on the device.",
            "Run the command in a complete checkout.",
        )
    name = _named(f"{component}-{variant}" if variant else component, architecture)
    folder = cache.folder("build", name)
    # A copy, so that an edit during the build cannot make the result differ from what its key says.
    copy, build, result = folder / "source", folder / "cmake", folder / "result"
    sync(source, copy, parts)
    facts = {**key, **toolchain(architecture), "source": cache.tree_digest(copy), "format": FORMAT}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]
    kept = cache.folder("native") / f"{name}-{digest}"
    if cache.whole(kept):
        os.utime(str(kept))
        return kept
    cache.require_space(folder, SPACE, f"Building {component}")
    prepare()
    made = folder / "made.json"
    _mend(build, made)
    tools = Tools(folder / "build.log")
    prefixes = {copy: ".", build: "build", cache.root(): "cache"}
    # The compiler is called through a shell; a path may hold spaces.
    flags += "".join(" " + shlex.quote(f"-ffile-prefix-map={path}={short}") for path, short in prefixes.items())
    configure = ["-S", str(copy), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    configure += [f"-DCMAKE_MAKE_PROGRAM={_program('ninja')}", *_target(architecture)]
    configure += [f"-DCMAKE_CXX_FLAGS={flags} {os.environ.get('CXXFLAGS', '')}".strip()]
    configure += [f"-DPython3_EXECUTABLE={sys.executable}"] + [f"-D{name_}={value}" for name_, value in options.items()]
    with step(f"Building {name}"):
        try:
            tools.cmake(configure, f"configuring {name}")
        except FactoryError:
            if not build.exists():
                raise
            # What an older CMake or compiler left there may be in the way.
            shutil.rmtree(str(build))
            tools.cmake(configure, f"configuring {name}")
        tools.cmake(["--build", str(build), "-j", str(os.cpu_count() or 1)], f"compiling {name}")
        shutil.rmtree(str(result), ignore_errors=True)
        result.mkdir()
        if not libraries:
            tools.cmake(["--install", str(build), "--prefix", str(result), "--strip"], f"installing {name}")
        else:
            for library in libraries:
                if not (build / library).is_file():
                    raise FactoryError(f"The build of {component} left no {library}.", f"The whole log: {tools.log}")
                shutil.copyfile(str(build / library), str(result / library))
    part = made.with_name(f"{made.name}.part")
    part.write_text(json.dumps(cache.contents(build), indent=1, sort_keys=True), encoding="utf-8")
    cache.publish(part, made)
    cache.keep(result, kept)
    others = sorted(kept.parent.glob(f"{name}-{'?' * 20}"), key=lambda path: path.stat().st_mtime)
    for old in others[:-3]:
        cache.drop(old)
    return kept


def _mend(build: Path, made: Path) -> None:
    """Remove what is not as the last finished build left it; from now on the list counts no more."""
    try:
        known: Dict[str, str] = json.loads(made.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    found = cache.contents(build)
    for name in sorted(found):
        if name in known and found[name] != known[name]:
            note(f"{build / name} is damaged; it is removed and made anew.")
            (build / name).unlink()
    made.unlink()


def sdk(version: str, checkout: Path = CHECKOUT, architecture: Optional[Architecture] = None) -> Path:
    """The installed SDK: a folder that holds ``mxmaca/`` complete. For this machine's architecture by default."""
    target = architecture or platforms.architecture()
    with cache.lock(_named("native-sdk", target)):
        built = _build("sdk", "", target, checkout / "cu_bridge", {}, "", {"version": version})
    if not (built / "mxmaca" / "__init__.py").is_file():
        raise FactoryError("The build of cu_bridge left no mxmaca package.")
    return built


class Site:
    """Upstream's headers and libraries of a release, unpacked for the compiler."""

    def __init__(self, release: Release, stripped: WheelReader, build: str) -> None:
        self._torch, self._stripped = release.torch, stripped
        self._record = stripped.record()
        headers = sorted(name for name in self._record if name.startswith(HEADERS))
        self._names = headers + [name for name in self._record if name.startswith(LIBRARIES)]
        lines = "".join(f"{name},{self._record[name][0]}\n" for name in headers)
        self.digest = hashlib.sha256(lines.encode()).hexdigest()
        self.folder = cache.folder("build", build) / "site"

    def unpack(self) -> None:
        """Make the folder what the wheel's RECORD says. Files that are as they should be are left alone."""
        wanted = {name: self._record[name] for name in self._names}
        marker = self.folder / ".complete"
        if not (marker.is_file() and marker.read_text() == self.digest):
            cache.discard(self.folder)
        missing = [name for name in self._names if not self._is_there(name)]
        if not missing:
            return
        size = sum(wanted[name][1] for name in missing)
        cache.require_space(self.folder, size, "Unpacking upstream's headers and libraries")
        with step(f"Unpacking the headers and libraries of torch {self._torch}"), bar("unpacking", size) as progress:
            for name in missing:
                self._stripped.extract(name, self.folder / name)
                progress.advance(wanted[name][1])
        marker.write_text(self.digest)

    def _is_there(self, name: str) -> bool:
        path = self.folder / name
        return path.is_file() and record_hash(bytes.fromhex(cache.sha256_of(path))) == self._record[name][0]


def operators(
    release: Release,
    stripped: WheelReader,
    sdk_tree: Path,
    checkout: Path = CHECKOUT,
    fast: Sequence[str] = FAST,
    architecture: Optional[Architecture] = None,
) -> Path:
    """The folder with libmacatorch.so and libmacatorch_autograd.so for a release, with these parts of csrc/fast.

    Builds with other parts share a folder: they differ in a few object files only.
    """
    target = architecture or platforms.architecture()
    build = _named(f"macatorch-{release.torch}", target)
    with cache.lock(f"native-{build}"):
        site = Site(release, stripped, build)
        sdk_copy = cache.folder("build", build, "sdk", "mxmaca")
        sync(sdk_tree / "mxmaca", sdk_copy)
        key: Dict[str, object] = {
            "fast": sorted(fast),
            "torch": release.torch,
            "cuda": release.cuda_major,
            "headers": site.digest,
            "sdk": [cache.tree_digest(sdk_copy / part) for part in SDK_PARTS if (sdk_copy / part).is_dir()],
        }
        options = {
            "TORCH_DIR": str(site.folder / "torch"),
            "MXMACA_DIR": str(sdk_copy),
            "CUDA_MAJOR": str(release.cuda_major),
            **{f"MACATORCH_FAST_{part}": "ON" if part in fast else "OFF" for part in FAST},
        }
        # The release's own ABI of std::string, whatever the compiler's default is.
        abi = f"-U_GLIBCXX_USE_CXX11_ABI -D_GLIBCXX_USE_CXX11_ABI={release.cxx11_abi}"
        key["abi"] = abi
        libraries = tuple(CARRIERS.values())
        return _build(
            "macatorch",
            release.torch,
            target,
            checkout / "macatorch",
            options,
            abi,
            key,
            OPERATOR_SOURCES,
            libraries,
            site.unpack,
        )
