"""The checks of a finished wheel. Each yields one line per failure."""

import hashlib
import json
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from .. import cache, platforms
from ..errors import FactoryError
from ..factory import device_code, elf, metadata, patches, stripped
from ..factory.wheel import WheelReader, record_hash
from ..progress import bar, step
from ..releases import CHECKOUT, Companion, Table
from . import companion_wheel, given_wheel, source_wheel, triton_wheel
from .torch_wheel import MANIFEST, OURS


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


class Unpacked:
    """A wheel under examination: its members, its ELF files unpacked, its metadata."""

    def __init__(self, reader: WheelReader, folder: Path, table: Table) -> None:
        self.reader, self.table = reader, table
        self.metadata = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
        self.name = canonicalize_name(metadata.parse(self.metadata)["Name"])
        self.elves: Dict[str, Path] = {}
        self.hashes: Dict[str, Tuple[str, int]] = {}
        total = sum(info.file_size for info in reader.members.values())
        with bar("reading", total) as progress:
            for index, (name, info) in enumerate(sorted(reader.members.items())):
                progress.advance(info.file_size)
                if elf.is_elf(reader.head(name)):
                    path = self.elves[name] = reader.extract(name, folder / f"{index}")
                    digest = hashlib.sha256()
                    with path.open("rb") as file:
                        for chunk in iter(lambda: file.read(1 << 22), b""):
                            digest.update(chunk)
                    self.hashes[name] = record_hash(digest.digest()), info.file_size
                else:
                    data = reader.read(name)
                    self.hashes[name] = record_hash(hashlib.sha256(data).digest()), len(data)

    @property
    def manifest(self) -> Dict[str, Any]:
        try:
            return dict(json.loads(self.reader.read(f"{self.reader.dist_info}/{MANIFEST}")))
        except ValueError:
            raise FactoryError(f"{self.reader.path.name}: {MANIFEST} is no JSON.") from None


def check_record(wheel: Unpacked) -> Iterator[str]:
    record_name = f"{wheel.reader.dist_info}/RECORD"
    record = wheel.reader.record()
    for name, facts in wheel.hashes.items():
        if name != record_name and name not in record:
            yield f"{name} is not in RECORD"
        elif name != record_name and record[name] != facts:
            yield f"{name} differs from its hash or size in RECORD"
    for name in sorted(set(record) - set(wheel.hashes)):
        yield f"RECORD names {name}, which is not in the wheel"


def check_device_code(wheel: Unpacked) -> Iterator[str]:
    for name, path in wheel.elves.items():
        with elf.open_elf(path, name) as library:
            for section in device_code.device_sections(library):
                yield f"{name} holds device code: section {section.name}, {section.size} bytes"
            for offset in device_code.fatbin_offsets(library)[:1]:
                yield f"{name} holds device code: a fat binary at offset {offset:#x}"


def architectures(wheel: Unpacked) -> List[str]:
    """What the wheel's file name says that it is for."""
    try:
        tags = [tag.platform for tag in parse_wheel_filename(wheel.reader.path.name)[3]]
    except InvalidWheelFilename:
        return []
    return sorted({tag.split("_", 1)[1] for tag in tags if tag.startswith("linux_")})


def check_systems(wheel: Unpacked) -> Iterator[str]:
    """Each ELF file is for the processor of the wheel's tag, and loads on the oldest system that is promised."""
    names = architectures(wheel)
    if not names and not wheel.elves:
        return  # Python alone is for every processor
    if len(names) != 1:
        yield f"its file name is not that of a wheel for one processor: {', '.join(names) or 'none'}"
        return
    machine, system = platforms.architecture(names[0]).machine, platforms.oldest_system()
    for name, path in wheel.elves.items():
        with elf.open_elf(path, name) as library:
            if library.machine != machine:
                yield f"{name} is for another processor than {names[0]}: e_machine {library.machine}"
            for asked in library.needed_versions():
                if system.has(asked):
                    continue
                users = [symbol.name for symbol in library.undefined_symbols() if symbol.version == asked]
                yield f"{name} needs {asked}, which {system.tag} systems lack ({', '.join(users[:3]) or 'no symbol'})"


def check_nvidia_files(wheel: Unpacked) -> Iterator[str]:
    for name in wheel.reader.members:
        if _matches(name, wheel.table.nvidia.files):
            yield f"{name} is NVIDIA's"


def check_search_path(wheel: Unpacked) -> Iterator[str]:
    major = wheel.manifest["cuda"].split(".")[0]
    for name, path in wheel.elves.items():
        with elf.open_elf(path, name) as library:
            if library.runpath:
                yield f"{name} has DT_RUNPATH, which LD_LIBRARY_PATH beats"
            rpath = library.rpath
        expected = "$ORIGIN/" + "../" * (len(PurePosixPath(name).parts) - 1) + f"mxmaca/lib/cuda{major}"
        if rpath[:1] != [expected]:
            yield f"{name} does not look into the SDK first: RPATH is {':'.join(rpath) or 'missing'}"
        for entry in rpath:
            if not entry.startswith("$ORIGIN") or "nvidia" in entry or "cusparselt" in entry:
                yield f"{name} looks into {entry}"


def check_operators(wheel: Unpacked) -> Iterator[str]:
    for name, ours in stripped.CARRIERS.items():
        if OURS[ours] not in wheel.elves:
            yield f"{OURS[ours]} is missing"
        carrier = wheel.elves.get(name)
        if carrier is None:
            yield f"{name} is missing"
            continue
        with elf.open_elf(carrier) as library:
            if library.needed[:1] != [ours]:
                yield f"{ours} is not the first library that {name} needs: it would not be loaded, or not in time"


def check_replaced_functions(wheel: Unpacked) -> Iterator[str]:
    """What libmacatorch_autograd takes the place of, libtorch_python still calls and libtorch_cpu still defines."""
    paths = [
        wheel.elves.get(f"torch/lib/{name}") for name in (stripped.AUTOGRAD, "libtorch_python.so", "libtorch_cpu.so")
    ]
    ours, caller, callee = paths
    if ours is None or caller is None or callee is None:
        return
    with elf.open_elf(ours) as library:
        names = {symbol.name for symbol in library.defined_symbols()}
    with elf.open_elf(caller) as library:
        called = {symbol.name for symbol in library.undefined_symbols()}
    with elf.open_elf(callee) as library:
        defined = {symbol.name for symbol in library.defined_symbols()}
    for name in sorted(names - called):
        yield f"{stripped.AUTOGRAD} takes the place of {name}, which libtorch_python.so does not call"
    for name in sorted(names - defined):
        yield f"{stripped.AUTOGRAD} goes on into {name}, which libtorch_cpu.so does not have"


def check_c_shims(wheel: Unpacked) -> Iterator[str]:
    """What AOTInductor's code calls, our library defines, and upstream's no longer."""
    names = stripped.replaced_functions(wheel.reader)
    for member, wanted in ((OURS[stripped.OPERATORS], True), (stripped.REPLACED, False)):
        if member not in wheel.elves:
            continue
        with elf.open_elf(wheel.elves[member]) as library:
            defined = {symbol.name for symbol in library.defined_symbols()}
        for name in sorted(names - defined if wanted else names & defined):
            yield f"{PurePosixPath(member).name} {'lacks' if wanted else 'still defines'} {name}"


def check_requirements(wheel: Unpacked) -> Iterator[str]:
    manifest = wheel.manifest
    release = wheel.table.release(manifest["torch"])
    sdk = wheel.table.sdk.name
    wanted = f"{sdk}=={manifest['sdk']}"
    found = metadata.requirements(wheel.metadata)
    built = {
        companion.name: metadata.local_version(companion.version, manifest["sdk"])
        for companion in wheel.table.built_companions(release)
        if not companion.wants_torch
    }
    for name, own in built.items():
        exact = [r for r in found if canonicalize_name(r.name) == name and str(r.specifier) == f"=={own}"]
        if not exact:
            yield f"it does not require {name}=={own}"
    for requirement in found:
        name = canonicalize_name(requirement.name)
        if metadata.is_nvidia(requirement, wheel.table.nvidia) or name in release.left_out:
            yield f"it requires {requirement}"
        in_extra = requirement.marker is not None and "extra" in str(requirement.marker)
        if name in release.companions and name not in built and not in_extra:
            yield f"it requires {requirement} outside an extra"
    if wanted not in [str(requirement) for requirement in found]:
        yield f"it does not require {wanted}"
    version = metadata.parse(wheel.metadata)["Version"]
    if version != metadata.torch_version(release, manifest["sdk"]):
        yield f"its version is {version}"


def check_patches(wheel: Unpacked) -> Iterator[str]:
    manifest = wheel.manifest
    for name, digest in manifest["patched_files"].items():
        if digest is None:
            if name in wheel.reader.members:
                yield f"{name} is there, although a patch removes it"
        elif name not in wheel.reader.members:
            yield f"{name} is missing, although a patch changes it"
        elif hashlib.sha256(wheel.reader.read(name)).hexdigest() != digest:
            yield f"{name} is not as the patches left it"
    folder = CHECKOUT / "patches" / wheel.table.release(manifest["torch"]).patches
    if folder.is_dir():
        applied = [(patch["name"], patch["sha256"]) for patch in manifest["patches"]]
        ours = [(patch.name, patch.sha256) for patch in patches.load(folder, manifest["sdk"])]
        for name, digest in ours:
            if (name, digest) not in applied:
                yield f"patches/{folder.name}/{name} is not applied in its present form; build the wheel again"
        for name in sorted({name for name, _ in applied} - {name for name, _ in ours}):
            yield f"it was built with {name}, which patches/{folder.name}/series no longer has"


def _provided(libraries: Dict[str, Path]) -> Dict[str, Set[elf.VersionedSymbol]]:
    """File name → what it provides. The names are those that the dynamic linker searches for."""
    result = {}
    for name, path in libraries.items():
        with elf.open_elf(path, name) as library:
            result[PurePosixPath(name).name] = library.defined_symbols()
    return result


def check_symbols(wheel: Unpacked, sdk: Unpacked) -> Iterator[str]:
    """Symbol closure: whatever the wheel needs of NVIDIA's libraries, the SDK provides, under the same version."""
    folder = f"mxmaca/lib/cuda{wheel.manifest['cuda'].split('.')[0]}/"
    shims = _provided({name: path for name, path in sdk.elves.items() if name.startswith(folder)})
    own = _provided(wheel.elves)
    plain = {symbol.name for symbols in [*own.values(), *shims.values()] for symbol in symbols}
    nvidia = wheel.table.nvidia.libraries
    for name, path in wheel.elves.items():
        with elf.open_elf(path, name) as library:
            for needed in library.needed:
                if _matches(needed, nvidia) and needed not in shims:
                    yield f"{name} needs {needed}, which the SDK does not have"
            for symbol in library.undefined_symbols(weak=False):
                if symbol.library is not None and _matches(symbol.library, nvidia):
                    if symbol not in shims.get(symbol.library, set()):
                        yield f"{name} needs {symbol} of {symbol.library}, which the SDK does not provide"
                elif (
                    symbol.library is None
                    and symbol.name not in plain
                    and _matches(symbol.name, wheel.table.nvidia.symbols)
                ):
                    yield f"{name} needs {symbol}, which neither the wheel nor the SDK provides"


def check_companion(wheel: Unpacked, sdk: Optional[Path]) -> Iterator[str]:
    """A companion: nothing of what its row removes is left, it requires the SDK that it was built with, and triton has
    our backend as the checkout has it."""
    manifest = wheel.manifest
    companion = wheel.table.companion(manifest["name"], manifest["version"])
    if companion is None:
        yield f"{manifest['name']} {manifest['version']} is not in the table of companions"
        return
    found = metadata.requirements(wheel.metadata)
    wanted = f"{wheel.table.sdk.name}=={manifest['sdk']}"
    if wanted not in [str(requirement) for requirement in found]:
        yield f"it does not require {wanted}"
    for requirement in found:
        if metadata.is_nvidia(requirement, wheel.table.nvidia):
            yield f"it requires {requirement}"
    version = metadata.parse(wheel.metadata)["Version"]
    own = metadata.companion_version(wheel.table, companion, manifest.get("torch", ""), manifest["sdk"])
    if version != own:
        yield f"its version is {version}"
    if companion.is_given:
        digest = cache.sha256_of(find_sdk(wheel, sdk))
        yield from given_wheel.failures(manifest, list(wheel.reader.members), [str(r) for r in found], digest)
    elif companion.source is not None:
        contents = {
            name: hashlib.sha256(wheel.reader.read(name)).hexdigest()
            for name in manifest["extension"]
            if name in wheel.reader.members
        }
        yield from source_wheel.failures(companion, list(wheel.reader.members), contents, manifest)
    elif companion.wants_torch:
        yield from companion_wheel.failures(companion, list(wheel.reader.members), manifest, [str(r) for r in found])
    else:
        yield from _check_backend(wheel, companion, manifest)


def _check_backend(wheel: Unpacked, companion: Companion, manifest: Dict[str, Any]) -> Iterator[str]:
    ours: Dict[str, str] = manifest["backend"]
    for name in wheel.reader.members:
        if name not in ours and _matches(name, companion.remove):
            yield f"{name} is upstream's and should not be there"
    for name, digest in ours.items():
        if name not in wheel.reader.members:
            yield f"{name} is missing"
        elif hashlib.sha256(wheel.reader.read(name)).hexdigest() != digest:
            yield f"{name} is not as it was built"
    for name, path in triton_wheel.backend_files(CHECKOUT).items():
        if ours.get(name) != hashlib.sha256(path.read_bytes()).hexdigest():
            yield f"{name} is not in its present form; build the wheel again"


CHECKS: Tuple[Callable[[Unpacked], Iterator[str]], ...] = (
    check_device_code,
    check_systems,
    check_nvidia_files,
    check_search_path,
    check_operators,
    check_replaced_functions,
    check_c_shims,
    check_requirements,
    check_patches,
)


def find_sdk(wheel: Unpacked, given: Optional[Path]) -> Path:
    if given is not None:
        return given
    version = wheel.manifest["sdk"]
    tags = [f"*_{name}" for name in architectures(wheel)] or ["*"]
    pattern = f"{wheel.table.sdk.name}-{version}-{tags[0]}.whl"
    found = sorted(wheel.reader.path.parent.glob(pattern))
    if not found:
        raise FactoryError(
            f"No {wheel.table.sdk.name} {version} beside {wheel.reader.path.name} to check its symbols against.",
            "Build it (python -m build_scripts sdk), or name it with --sdk.",
        )
    return found[0]


def verify(path: Path, table: Table, sdk: Optional[Path] = None) -> List[str]:
    """All failures of a wheel; none for a sound one.

    An SDK wheel is checked for its RECORD, for device code and for the systems that it loads on, a companion for what
    its row of the table says too.
    """
    with step(f"Verifying {path.name}"), WheelReader(path) as reader, TemporaryDirectory(prefix="verify-") as folder:
        wheel = Unpacked(reader, Path(folder), table)
        failures = list(check_record(wheel))
        if wheel.name == table.sdk.name:
            return failures + [*check_device_code(wheel), *check_systems(wheel)]
        if f"{reader.dist_info}/{MANIFEST}" not in reader.members:
            return failures + [f"it has no {MANIFEST}: this factory did not build it"]
        if wheel.name in {canonicalize_name(companion.name) for companion in table.companions}:
            failures += [*check_device_code(wheel), *check_companion(wheel, sdk)]
            # What is compiled from the user's sources is for the user's system.
            if wheel.name not in {canonicalize_name(c.name) for c in table.companions if c.is_given}:
                failures += check_systems(wheel)
            if "cuda" in wheel.manifest:  # its libraries need NVIDIA's
                failures += [*check_nvidia_files(wheel), *check_search_path(wheel)]
                with WheelReader(find_sdk(wheel, sdk)) as sdk_reader:
                    failures += check_symbols(wheel, Unpacked(sdk_reader, Path(folder) / "sdk", table))
            return failures
        for check in CHECKS:
            failures += check(wheel)
        with WheelReader(find_sdk(wheel, sdk)) as sdk_reader:
            sdk_folder = Path(folder) / "sdk"
            failures += check_symbols(wheel, Unpacked(sdk_reader, sdk_folder, table))
        return failures
