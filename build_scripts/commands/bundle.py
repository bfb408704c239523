"""``bundle``: all wheels of a release for one Python as one archive that installs without a network."""

import argparse
from pathlib import Path
from typing import Any

from .. import cache, releases
from ..container import archive, inputs, sbom
from ..container.bundle import Bundle, write
from ..factory.metadata import torch_version
from ..products import given_source
from ..progress import note, step
from ..quality import given
from . import options

# What a build writes at most.
SPACE = 600_000_000


def configure(commands: Any) -> None:
    parser = commands.add_parser("bundle", help="pack all wheels of a release into an archive with an installer")
    options.add_release(parser)
    parser.add_argument(
        "--wheels", type=Path, metavar="DIR", help="take the wheels in this folder, and build none that is missing"
    )
    options.add_output(parser)
    options.add_sources(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    table, release, wheel = options.chosen(arguments)
    sources = given_source.parse(table, arguments.source)
    sbom.require()
    epoch = archive.epoch()
    folder = arguments.wheels or arguments.output
    if arguments.wheels is None:
        inputs.build_missing(table, release, wheel, folder, arguments.given)
    given.build(table, release, wheel, folder, sources)
    wheels = inputs.gather(table, release, wheel, folder)
    cache.require_space(cache.root(), SPACE, "Packing the bundle")
    cache.require_space(arguments.output, SPACE, "The bundle")
    bundle = Bundle(release, wheel, releases.sdk_version())
    with cache.lock("bundle"), cache.work_folder("bundle") as work:
        with step(f"Packing {len(wheels)} wheels"):
            files = write(work, bundle, torch_version(release, bundle.sdk), wheels, epoch)
        for path in archive.publish(files, arguments.output, bundle.name):
            print(path)
    size = (arguments.output / files[-1].name).stat().st_size
    note(f"  {size / 1e6:.0f} MB; unpack it and run install.sh")
    return 0
