"""A command is a file of ``commands``, and nothing else has to know it."""

import shutil
import subprocess
import sys
from pathlib import Path

from .small import CHECKOUT

COMMAND = """
def configure(commands):
    parser = commands.add_parser("greet", help="say hello")
    parser.add_argument("name")
    parser.set_defaults(run=run)


def run(arguments):
    print(f"Hello, {arguments.name}.")
    return 3
"""


def test_a_command_is_added_by_its_file_alone(tmp_path: Path) -> None:
    shutil.copytree(str(CHECKOUT / "build_scripts"), str(tmp_path / "build_scripts"))
    (tmp_path / "build_scripts" / "commands" / "greet.py").write_text(COMMAND)

    def said(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "build_scripts", *words]
        return subprocess.run(command, cwd=str(tmp_path), stdout=subprocess.PIPE, text=True, check=False)

    assert "say hello" in said("--help").stdout
    done = said("greet", "Alice")
    assert (done.stdout, done.returncode) == ("Hello, Alice.\n", 3)
