"""Wheels of a project that the user gives the sources of: its own setup.py builds it, with the SDK's cucc as nvcc."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List

from .. import cache, children
from ..errors import FactoryError
from ..factory import elf, metadata, native, patchelf
from ..factory.wheel import WheelReader, WheelWriter
from ..progress import note, step
from ..releases import CHECKOUT, Companion, Release, Table, UpstreamWheel, sdk_version
from . import given_source

MANIFEST = "maca.json"
# Raised when a wheel of the same inputs would become another.
FORMAT = 1
# What of a user's environment would change what a compiler makes.
FOREIGN = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "NVCC_PREPEND_FLAGS", "TORCH_CUDA_ARCH_LIST", "CUDA_HOME")


def file_name(table: Table, companion: Companion, release: Release, wheel: UpstreamWheel, version: str) -> str:
    own = metadata.companion_version(table, companion, release.torch, version)
    return f"{companion.name}-{own}-{wheel.built_tag}.whl"


def build(
    table: Table,
    release: Release,
    companion: Companion,
    wheel: UpstreamWheel,
    source: Path,
    sdk: Path,
    interpreter: Callable[[], Path],
    output: Path,
    checkout: Path = CHECKOUT,
) -> Path:
    """Build the wheel, or take it from the cache where the same sources were built before.

    ``sdk``: the SDK's wheel. ``interpreter``: a Python that has it, our torch and setuptools; asked where it is needed.
    """
    version = sdk_version(checkout)
    name = file_name(table, companion, release, wheel, version)
    with cache.lock(f"given-{name}"), cache.work_folder(f"given-{name}") as work:
        with step(f"Reading the sources of {companion.name} in {source}"):
            top = given_source.copy(source, companion, work)
            digest = cache.tree_digest(top)
        facts = {
            "source": digest,
            "options": list(companion.options),
            "torch": metadata.torch_version(release, version),
            "upstream": wheel.sha256,
            "sdk": cache.sha256_of(sdk),
            "format": FORMAT,
            **native.toolchain(),
        }
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]
        kept = cache.folder("given") / f"{name[:-4]}-{key}.whl"
        if not cache.whole(kept):
            folder = _build_folder(f"{name[:-4]}-{key}", len(key))
            if not (folder / top.name).exists():
                top.rename(folder / top.name)
            made = _compile(companion, folder / top.name, interpreter(), work, f"{name[:-4]}.log")
            manifest = {
                "name": companion.name,
                "version": companion.version,
                "torch": release.torch,
                "cuda": release.cuda,
                "sdk": version,
                "sdk_sha256": facts["sdk"],
                "source": digest,
            }
            packed = work / "packed.whl"
            _repack(made, packed, table, release, companion, wheel, version, manifest, work)
            for old in kept.parent.glob(f"{name[:-4]}-*.whl"):
                cache.drop(old)
            cache.keep(packed, kept)
            cache.discard(folder)
        output.mkdir(parents=True, exist_ok=True)
        final = output / name
        with cache.part_file(final) as part:
            shutil.copyfile(str(kept), str(part))
            cache.publish(part, final)
    note(f"  {final} ({final.stat().st_size / 1e6:.1f} MB)")
    return final


def _build_folder(name: str, key: int) -> Path:
    """Where a build runs. It stays where the build is killed: the next one compiles what is missing.

    ``key``: how many characters at the end of the name stand for what goes in; the same of another content is dropped.
    """
    folder = cache.folder("build", name)
    for old in folder.parent.glob(name[:-key] + "?" * key):
        if old != folder:
            cache.discard(old)
    return folder


def _compile(companion: Companion, top: Path, python: Path, work: Path, log_name: str) -> Path:
    """Run the project's own build. Returns the wheel that it leaves."""
    # No path of this machine in messages of the libraries: the same sources give the same bytes anywhere.
    prefix = f"-ffile-prefix-map={top}={companion.name}"
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment.update(
        MAX_JOBS=os.environ.get("MAX_JOBS", "1"), CFLAGS=prefix, NVCC_APPEND_FLAGS=f"-Xcompiler {prefix}",
        SOURCE_DATE_EPOCH="315532800", PYTHONHASHSEED="0",
    )  # fmt: skip
    log = cache.folder("given") / log_name
    dist = work / "dist"
    command = [str(python), given_source.SETUP, "bdist_wheel", "--dist-dir", str(dist), *companion.options]
    with step(f"Compiling {companion.name}: some minutes a file; {log} shows how far it is"), log.open("w") as said:
        done = children.run(command, stdout=said, stderr=subprocess.STDOUT, cwd=str(top), env=environment)
    found = sorted(dist.glob("*.whl"))
    if done.returncode or len(found) != 1:
        lines = [line for line in log.read_text(errors="replace").splitlines() if "error" in line.lower()]
        raise FactoryError(
            f"{companion.name} was not built: " + "\n    ".join(lines[:4] or ["it left no wheel"]),
            f"{log} has all of it.",
        )
    return found[0]


def _repack(
    made: Path,
    target: Path,
    table: Table,
    release: Release,
    companion: Companion,
    wheel: UpstreamWheel,
    version: str,
    manifest: Dict[str, Any],
    work: Path,
) -> None:
    own = metadata.companion_version(table, companion, release.torch, version)
    with WheelReader(made) as reader:
        writer = WheelWriter(f"{companion.name}-{own}.dist-info")
        libraries: List[str] = []
        for number, name in enumerate(sorted(reader.members)):
            if name.startswith(f"{reader.dist_info}/"):
                continue
            if elf.is_elf(reader.head(name)):
                library = reader.extract(name, work / f"library-{number}")
                _strip(library)
                above = "../" * (len(Path(name).parts) - 1)
                places = (f"mxmaca/lib/cuda{release.cuda_major}", "mxmaca/lib", "torch/lib")
                patchelf.edit(library, [f"$ORIGIN/{above}{place}" for place in places])
                writer.add_file(name, library, executable=True)
                libraries.append(name)
            else:
                writer.add_bytes(name, reader.read(name))
        if not libraries:
            raise FactoryError(f"{companion.name} was built without any extension; its options were not taken.")
        text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
        tag = wheel.built_tag
        ours = {
            "METADATA": metadata.rewrite_companion(text, companion.version, table, version, release, own),
            "WHEEL": metadata.wheel_file([tag]),
            MANIFEST: json.dumps({**manifest, "libraries": libraries}, indent=1, sort_keys=True) + "\n",
        }
        for name in reader.members:
            rest = name.split("/", 1)[1] if name.startswith(f"{reader.dist_info}/") else ""
            if rest and rest not in ours and rest != "RECORD":
                writer.add_bytes(f"{writer.dist_info}/{rest}", reader.read(name))
        for rest, words in ours.items():
            writer.add_bytes(f"{writer.dist_info}/{rest}", words.encode("utf-8"))
        with step(f"Packing {companion.name}"):
            writer.write(target)


def _strip(library: Path) -> None:
    program = children.program("strip")
    if program is None:
        raise FactoryError("strip is missing.", "Install binutils, with which the compiler comes.")
    done = children.run([program, "--strip-unneeded", str(library)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise FactoryError(f"strip failed on {library.name}: {done.stdout.strip()}")


def failures(manifest: Dict[str, Any], members: List[str], requires: List[str], sdk_digest: str) -> List[str]:
    """What is wrong with a finished wheel, beside what holds for all wheels. ``sdk_digest``: of the SDK's wheel."""
    found = [f"{name} is missing" for name in manifest["libraries"] if name not in members]
    wanted = f"torch=={metadata.local_version(manifest['torch'], manifest['sdk'])}"
    if wanted not in requires:
        found.append(f"it does not require {wanted}")
    if manifest["sdk_sha256"] != sdk_digest:
        found.append("it was compiled with another SDK; build the wheel again")
    return found
