"""The wheels that go into the image."""

import subprocess
import sys

from ..small import SmallRelease

# As the command `image` does where nobody names a folder of wheels.
CODE = """
import sys
from pathlib import Path
from build_scripts import releases
from build_scripts.container import inputs

table, folder = releases.load(), Path("wheels")
release = table.release("9.9.0")
wheel = release.wheel_for("3.11")
inputs.build_missing(table, release, wheel, folder, Path(sys.argv[1]))
print(*(path.name for path in inputs.own(table, release, wheel, folder)), sep="\\n")
"""


def test_the_image_builds_the_wheels_that_are_missing_and_those_alone(small_release: SmallRelease) -> None:
    command = [sys.executable, "-c", CODE, str(small_release.wheel)]
    wheels = [small_release.built, small_release.sdk]
    for missing in (wheels, wheels[:1], wheels[1:], []):
        kept = {path: path.stat().st_mtime_ns for path in wheels if path not in missing}
        for path in missing:
            path.unlink() if path.exists() else None
        done = subprocess.run(
            command, cwd=str(small_release.checkout), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [path.name for path in wheels]
        assert kept == {path: path.stat().st_mtime_ns for path in kept}
