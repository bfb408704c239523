"""Extensions get images in upstream's order, in a process that has captured no graph: there nothing is reordered."""

import os
import subprocess
import sys

from building import HERE


def test_extensions_get_images_in_upstreams_order():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "layout_checks.py")],
        cwd=HERE,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
