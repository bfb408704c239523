"""``image``: the container image with the preinstalled stack, as one file for ``docker load``."""

import argparse
import tarfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, List, NamedTuple, Tuple

from .. import cache, releases
from ..container import archive, base, bootstrap, bundle, engine, inputs, layers, sbom
from ..container.base import Base
from ..errors import FactoryError
from ..factory.metadata import torch_version
from ..progress import note, step
from ..releases import CHECKOUT, Release, Table, UpstreamWheel
from . import options

# What a build writes at most, beside what the engine keeps: the saved layers, ours, the archive.
SPACE_WORK, SPACE_OUTPUT, SPACE_ENGINE = 3_500_000_000, 500_000_000, 5_000_000_000
SCRIPTS = ("prepare_system.sh", "clean_system.sh", "packages.txt", "install_wheels.sh", "entrypoint.sh")
DEVICE = "mxc500"
WHEELS = CHECKOUT / "wheels"
# What Docker calls the processors that wheels are for.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def configure(commands: Any) -> None:
    parser = commands.add_parser("image", help="make the container image: an archive for docker load")
    parser.add_argument(
        "--torch", metavar="VERSION", help="torch release (default: the newest that a base has a Python for)"
    )
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument("--base", metavar="IMAGE", help="the image to build on (default: the official one that fits)")
    origin.add_argument("--bootstrap", metavar="SUITE", help="make the base with debootstrap, without a registry")
    parser.add_argument("--mirror", metavar="URL", help="archive for --bootstrap (default: that of this machine's apt)")
    parser.add_argument(
        "--wheels",
        type=Path,
        metavar="DIR",
        help="take the wheels in this folder (default: those in wheels/, where what is missing is built)",
    )
    parser.add_argument(
        "--from", dest="given", type=Path, metavar="PATH", help="upstream's wheel, or its folder, instead of a download"
    )
    preset = archive.PRESET
    parser.add_argument(
        "--compression", type=int, choices=range(10), default=preset, metavar="0-9", help=f"of xz (default: {preset})"
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


class Product(NamedTuple):
    """What the image is called."""

    release: Release
    wheel: UpstreamWheel
    base: Base
    sdk: str
    architecture: str

    @property
    def tag(self) -> str:
        minor = ".".join(self.release.torch.split(".")[:2])
        python = self.wheel.python.replace(".", "")
        return f"torch{minor}-py{python}-mc{self.sdk}-{self.base.name}-{self.architecture}"

    @property
    def reference(self) -> str:
        return f"{DEVICE}:{self.tag}"

    @property
    def stem(self) -> str:
        return f"{DEVICE}-{self.tag}"


def run(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    table = releases.load()
    bases = base.load()
    release = table.release(arguments.torch) if arguments.torch else _newest(table, bases)
    sbom.require()
    if arguments.bootstrap:
        system = base.of_suite(arguments.bootstrap, bases)
        bootstrap.require_tools(system)
    elif not arguments.base:
        system = base.default_for(release, bases)
    if arguments.wheels and not arguments.base:
        # Before anything takes time.
        inputs.own(table, release, release.wheel_for(system.python), arguments.wheels)
    docker = engine.connect()
    _require_space(docker, arguments.output)
    epoch = archive.epoch()
    with cache.lock("image"), cache.work_folder("image") as work, docker.cleaned():
        if arguments.bootstrap:
            root = bootstrap.obtain(system, arguments.mirror)
            with step("Handing the base to the engine"):
                parent, origin = docker.import_base(root), f"debootstrap:{system.suites[0]}"
        else:
            origin = arguments.base or system.image
            parent = docker.base(origin)
            system = base.of_image(origin, docker.read_file(parent, "/etc/os-release") or "", bases)
        wheel = release.wheel_for(system.python)
        if docker.architecture != ARCHITECTURES[wheel.architecture]:
            raise FactoryError(
                f"The engine runs {docker.architecture} images, and the wheel is for {wheel.architecture}.",
                "Use an engine on such a machine: DOCKER_HOST names another.",
            )
        product = Product(release, wheel, system, releases.sdk_version(), docker.architecture)
        if arguments.wheels is None:
            inputs.build_missing(table, release, wheel, WHEELS, arguments.given)
        wheels = inputs.gather(table, release, wheel, arguments.wheels or WHEELS)
        files = _build(docker, product, parent, origin, wheels, work, epoch, arguments.compression)
        for path in archive.publish(files, arguments.output, DEVICE):
            print(path)
    note(f"  built in {time.monotonic() - started:.0f} s; load it with: docker load < {product.stem}.container.xz")
    return 0


def _newest(table: Table, bases: Tuple[Base, ...]) -> Release:
    pythons = {system.python for system in bases}
    fitting = [r for r in table.releases if any(w.python in pythons for w in releases.wheels_for(r.wheels))]
    return max(fitting, key=lambda release: [int(part) for part in release.torch.split(".")])


def _require_space(docker: engine.Engine, output: Path) -> None:
    cache.require_space(cache.root(), SPACE_WORK, "Making the image")
    cache.require_space(output, SPACE_OUTPUT, "The image's archive")
    if docker.store:
        cache.require_space(docker.store, SPACE_ENGINE, "The engine, to build the image,")


def _build(
    docker: engine.Engine,
    product: Product,
    parent: str,
    origin: str,
    wheels: List[Path],
    work: Path,
    epoch: int,
    preset: int,
) -> List[Path]:
    """The archive, its checksum and the list of contents, in ``work``; the archive last."""
    version = torch_version(product.release, product.sdk)
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    arguments = {
        "BASE": parent,
        "SOURCE_DATE_EPOCH": str(epoch),
        "CUDA_MAJOR": str(product.release.cuda_major),
        "VERSION": version,
        "REVISION": archive.revision(),
        "CREATED": created,
        "BASE_NAME": origin,
    }
    staged = work / "bundle"
    sources = inputs.stage(wheels, staged / "wheels")
    # The image is installed as a user installs the bundle: from the same files, by the same script.
    hashes = {path.name: cache.sha256_of(path) for path in wheels}
    bundled = bundle.Bundle(product.release, product.wheel, product.sdk)
    for name, text in bundle.installer(bundled, version, hashes).items():
        (staged / name).write_bytes(text)
    with (work / "context.tar").open("w+b") as context:
        _write_context(context, staged, epoch)
        with step("Preparing the system"):
            system = docker.build(context, "system", arguments)
        with step(f"Installing {len(wheels)} wheels"):
            image = docker.build(context, "image", arguments)
    (work / "context.tar").unlink()
    with step("Taking the image out of the engine"):
        saved = docker.save(image, work)
        lower = docker.layer_count(system)
    with step("Making its layers canonical"):
        packed = []
        parts = (("the system", saved.layers[:lower]), ("the distribution", saved.layers[lower:]))
        for number, (purpose, paths) in enumerate(parts):
            path = work / f"layer-{number}.tar"
            with layers.Layer(paths, whole=number == 0) as layer:
                digest = layer.write(path, epoch)
            packed.append(archive.Packed(path, digest, f"{purpose}: python -m build_scripts image"))
            for part in paths:
                part.unlink()
    config = archive.configuration(saved.config, packed, created)
    result = work / f"{product.stem}.container.xz"
    with step("Compressing the archive"):
        archive.write(result, product.reference, config, packed, epoch, preset)
    listed = work / f"{product.stem}.cdx.json"
    digests = [layer.digest for layer in packed]
    paths = [layer.path for layer in packed]
    count = sbom.write(listed, DEVICE, product.tag, product.base, paths, digests, sources, epoch)
    checksum = work / f"{result.name}.sha256"
    checksum.write_text(f"{cache.sha256_of(result)}  {result.name}\n")
    unpacked = sum(path.stat().st_size for path in paths)
    note(f"  {count} packages, {unpacked / 1e9:.2f} GB unpacked, {result.stat().st_size / 1e6:.0f} MB as archive")
    return [listed, checksum, result]


def _write_context(file: "IO[bytes]", staged: Path, epoch: int) -> None:
    """What the Dockerfile may copy, as a tar: its own folder's files and the bundle's."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as context:
        files = [("Dockerfile", base.FOLDER / "Dockerfile"), *((name, base.FOLDER / name) for name in SCRIPTS)]
        bundled = sorted(path for path in staged.rglob("*") if path.is_file())
        files += [(f"bundle/{path.relative_to(staged)}", path) for path in bundled]
        for name, path in files:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = path.stat().st_size, epoch
            info.mode = 0o755 if path.suffix == ".sh" else 0o644
            with path.open("rb") as content:
                context.addfile(info, content)
