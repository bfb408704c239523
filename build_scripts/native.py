"""Building the SDK and the operators with CMake, kept by the hash of everything that goes in.

Note: incremental and reproducible
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A finished build is stored under a key: sources, headers, options, compiler. A build folder per component is kept as
well, so that a change compiles only what it concerns; ninja decides by time stamps and commands, and the compiler is
told to leave paths out (-ffile-prefix-map), so the result is that of a fresh folder. A folder whose build was killed is
not trusted: the next build starts it afresh.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from . import cache, patchelf
from .errors import FactoryError
from .progress import bar, step
from .releases import CHECKOUT, Release
from .wheel import WheelReader

SPACE = 1_500_000_000
NINJA_STEP = re.compile(r"^\[(\d+)/(\d+)\]")
RUNNING = ".running"
FORMAT = 1
HEADERS = ("torch/include/", "torch/share/", "torchgen/")
LIBRARIES = "torch/lib/"


def _program(name: str, way_out: str) -> str:
    found = patchelf.beside_python(name)
    if found is None:
        raise FactoryError(f"{name} is missing.", way_out)
    return found


def compiler() -> str:
    """The C++ compiler: $CXX, else the usual names."""
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


def toolchain() -> Dict[str, str]:
    """What identifies compiler and C library: their predefined macros."""
    program = compiler()
    command = [program, "-E", "-dM", "-include", "features.h", "-x", "c++", os.devnull]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise FactoryError(f"{program} does not work: {done.stderr.strip()[-300:]}", "Install GCC 9 or later with its C library headers.")
    tools = "Install the factory's tools: python -m pip install -r requirements.txt"
    cmake = _program("cmake", tools)
    version = subprocess.run([cmake, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[0]
    _program("ninja", tools)
    macros = hashlib.sha256("".join(sorted(done.stdout.splitlines(True))).encode()).hexdigest()
    return {"compiler": os.path.basename(program), "macros": macros, "cmake": version, "flags": os.environ.get("CXXFLAGS", "")}


def sync(source: Path, target: Path) -> None:
    """Make ``target`` equal to ``source`` without touching files that are the same already: compilers go by time stamps."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for relative in wanted:
        old, new = target / relative, source / relative
        if old.is_file() and old.stat().st_size == new.stat().st_size and old.read_bytes() == new.read_bytes():
            continue
        old.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(str(new), str(old))
    for path in list(target.rglob("*")):
        if path.is_file() and path.relative_to(target) not in wanted:
            path.unlink()


def _run(command: Sequence[str], log: Path, title: str, component: str) -> None:
    """Run a build tool; show its progress, keep its words for the case of failure."""
    environment = {**os.environ, "CLICOLOR_FORCE": "0", "LC_ALL": "C"}
    with log.open("a") as out, bar(title, None, "files") as progress:
        out.write(" ".join(command) + "\n")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, errors="replace")
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
        lines = log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if "error" in line.lower() or "FAILED" in line][-12:]
        shown = "\n    ".join(errors or lines[-20:])
        space = "No space left" in "\n".join(lines[-200:])
        raise FactoryError(
            f"{title} failed:\n    {shown}",
            "No space is left; free some, or set MACATORCH_CACHE." if space else f"The whole log: {log}",
        )


def _build(component: str, variant: str, source: Path, options: Dict[str, str], flags: str, install: bool, key: Dict[str, object]) -> Path:
    """The folder with the results, from the cache or built now."""
    if not (source / "CMakeLists.txt").is_file():
        raise FactoryError(
            f"{source.name}/CMakeLists.txt is missing: without {component} the wheel could compute nothing on the device.",
            "Run the command in a complete checkout.",
        )
    name = f"{component}-{variant}" if variant else component
    facts = {**key, **toolchain(), "source": cache.tree_digest(source), "format": FORMAT}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]
    kept = cache.folder("native") / f"{name}-{digest}"
    if kept.is_dir():
        return kept
    folder = cache.folder("build", name)
    cache.require_space(folder, SPACE, f"Building {component}")
    running = folder / RUNNING
    build, log = folder / "cmake", folder / "build.log"
    if running.exists():
        shutil.rmtree(build, ignore_errors=True)
    running.touch()
    log.write_text("")
    flags = f"{flags} -ffile-prefix-map={source}=. -ffile-prefix-map={build}=build -ffile-prefix-map={cache.root()}=cache"
    command = [_program("cmake", ""), "-S", str(source), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    command += [f"-DCMAKE_MAKE_PROGRAM={_program('ninja', '')}", f"-DCMAKE_CXX_COMPILER={compiler()}"]
    command += [f"-DCMAKE_CXX_FLAGS={flags} {os.environ.get('CXXFLAGS', '')}".rstrip()]
    command += [f"-DPython3_EXECUTABLE={_python()}"] + [f"-D{key_}={value}" for key_, value in options.items()]
    try:
        with step(f"Building {name}"):
            _run(command, log, f"configuring {name}", component)
            _run([command[0], "--build", str(build), "-j", str(os.cpu_count() or 1)], log, f"compiling {name}", component)
            result = folder / "result"
            shutil.rmtree(result, ignore_errors=True)
            result.mkdir()
            if install:
                _run([command[0], "--install", str(build), "--prefix", str(result), "--strip"], log, f"installing {name}", component)
            else:
                library = build / f"lib{component}.so"
                if not library.is_file():
                    raise FactoryError(f"The build of {component} left no {library.name}.", f"The whole log: {log}")
                shutil.copy2(str(library), str(result / library.name))
    except FactoryError:
        running.unlink()
        raise
    cache.publish(result, kept)
    running.unlink()
    others = sorted(kept.parent.glob(f"{name}-{'?' * 20}"), key=lambda path: path.stat().st_mtime)
    for old in others[:-3]:
        shutil.rmtree(old, ignore_errors=True)
    return kept


def _python() -> str:
    import sys

    return sys.executable


def sdk(version: str, checkout: Path = CHECKOUT) -> Path:
    """The installed SDK: a folder that holds ``mxmaca/`` complete."""
    with cache.lock("native-sdk"):
        built = _build("sdk", "", checkout / "cu_bridge", {}, "", True, {"version": version})
    if not (built / "mxmaca" / "__init__.py").is_file():
        raise FactoryError("The build of cu_bridge left no mxmaca package.")
    return built


def _site(release: Release, stripped: WheelReader) -> Tuple[Path, str]:
    """Upstream's headers and libraries unpacked, once per release, and the hash of the headers."""
    record = stripped.record()
    headers = sorted(name for name in record if name.startswith(HEADERS))
    digest = hashlib.sha256("".join(f"{name},{record[name][0]}\n" for name in headers).encode()).hexdigest()
    folder = cache.folder("build", f"macatorch-{release.torch}") / "site"
    marker = folder / ".complete"
    if marker.is_file() and marker.read_text() == digest:
        return folder, digest
    shutil.rmtree(folder, ignore_errors=True)
    names = headers + [name for name in record if name.startswith(LIBRARIES)]
    sizes = {name: record[name][1] for name in names}
    cache.require_space(folder, sum(sizes.values()), "Unpacking upstream's headers and libraries")
    with step(f"Unpacking the headers and libraries of torch {release.torch}"), bar("unpacking", sum(sizes.values())) as progress:
        for name in names:
            stripped.extract(name, folder / name)
            progress.advance(sizes[name])
    marker.write_text(digest)
    return folder, digest


def operators(release: Release, stripped: WheelReader, sdk_tree: Path, checkout: Path = CHECKOUT) -> Path:
    """libmacatorch.so for a release."""
    with cache.lock(f"native-macatorch-{release.torch}"):
        site, headers = _site(release, stripped)
        sdk_copy = cache.folder("build", f"macatorch-{release.torch}", "sdk", "mxmaca")
        sync(sdk_tree / "mxmaca", sdk_copy)
        key: Dict[str, object] = {
            "torch": release.torch,
            "cuda": release.cuda_major,
            "headers": headers,
            "sdk": cache.tree_digest(sdk_copy / "include") if (sdk_copy / "include").is_dir() else "",
        }
        options = {"TORCH_DIR": str(site / "torch"), "MXMACA_DIR": str(sdk_copy), "CUDA_MAJOR": str(release.cuda_major)}
        # The release's own ABI of std::string, whatever the compiler's default is.
        abi = f"-U_GLIBCXX_USE_CXX11_ABI -D_GLIBCXX_USE_CXX11_ABI={release.cxx11_abi}"
        key["abi"] = abi
        built = _build("macatorch", release.torch, checkout / "macatorch", options, abi, False, key)
    return built / "libmacatorch.so"


def clean() -> Optional[List[Path]]:
    """Forget native builds; downloads stay."""
    gone = []
    for name in ("build", "native", "stripped", "work"):
        path = cache.root() / name
        if path.is_dir():
            shutil.rmtree(path)
            gone.append(path)
    return gone
