"""kill -9 at random moments of `make wheels`, and what the next `make wheels` makes of what is left.

    python -m tests.build_scripts.kills [--count 100] [--seed N]

The release is the small one, whose build takes some seconds; Makefile, tools, cache and factory are the real ones.
"""

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence

from .small import CHECKOUT, small_release

SECONDS = 600
SOURCE = "macatorch/csrc/operators.cpp"


class Moment(NamedTuple):
    """What is killed, and when."""

    state: str  # what is there when `make wheels` starts: see Workshop.begin
    fraction: float  # of the time that a whole run takes from that state
    victims: str  # group: all processes · leader: make alone, what it started goes on · one: any one process


class Problem(Exception):
    """What a kill left that it must not leave."""


class Workshop:
    """A checkout of the small release with a cache of its own, and what `make wheels` leaves from each state."""

    def __init__(self, folder: Path) -> None:
        release = small_release(folder)
        self.checkout, self.wheels = release.checkout, release.output
        self.cache = folder / "cache"
        shutil.copy(str(CHECKOUT / "Makefile"), str(self.checkout))
        shutil.copytree(str(CHECKOUT / "requirements"), str(self.checkout / "requirements"))
        shelf = folder / "shelf"
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "download",
            "--quiet",
            "--dest",
            str(shelf),
        ]
        subprocess.run([*fetch, "-r", str(CHECKOUT / "requirements" / "factory.txt")], check=True)
        self.environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
        self.environment.update(MACATORCH_CACHE=str(self.cache), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(shelf))
        self.command = ["make", "-C", str(self.checkout), f"HOST_PYTHON={sys.executable}", "wheels"]
        self.command += ["TORCH=9.9.0", "PYTHON=3.11", f"FROM={release.wheel}"]
        self.log = folder / "make.log"
        self.saved = folder / "saved"
        self.source = (self.checkout / SOURCE).read_text()
        self.edited = self.source + "int one_more() { return 1; }\n"
        self.expected: Dict[str, Dict[str, str]] = {}
        self.seconds: Dict[str, float] = {}
        # In this order: the first run leaves the whole .venv that the other states begin with.
        for state in ("nothing", "tools", "edited"):
            self.begin(state)
            started = time.monotonic()
            self.whole_run()
            self.seconds[state], self.expected[state] = time.monotonic() - started, self.built()
            if state == "nothing":
                shutil.copytree(str(self.checkout / ".venv"), str(self.saved / ".venv"), symlinks=True)
            if state == "tools":
                for path in (self.cache, self.wheels):
                    shutil.copytree(str(path), str(self.saved / path.name), symlinks=True)
        if self.expected["nothing"] != self.expected["tools"] or self.expected["tools"] == self.expected["edited"]:
            raise Problem(f"a wheel depends on more or on less than its sources: {self.expected}")

    def begin(self, state: str) -> None:
        """Leave ``nothing``, only the ``tools`` in .venv, or all of a build whose source is ``edited`` since."""
        (self.checkout / SOURCE).write_text(self.edited if state == "edited" else self.source)
        for path in (self.checkout / ".venv", self.cache, self.wheels):
            shutil.rmtree(str(path), ignore_errors=True)
            kept = self.saved / path.name
            if state == "edited" or (state == "tools" and path.name == ".venv"):
                shutil.copytree(str(kept), str(path), symlinks=True)

    def start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("wb") as log:
            return subprocess.Popen(
                self.command, env=self.environment, start_new_session=True, stdout=log, stderr=subprocess.STDOUT
            )

    def whole_run(self) -> None:
        status = self.start().wait(SECONDS)
        if status != 0:
            raise Problem(f"`make wheels` ended with {status}:\n{self.log.read_text(errors='replace')[-3000:]}")

    def built(self) -> Dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(self.wheels.glob("*.whl"))}

    def kill(self, moment: Moment, choose: Callable[[Sequence[int]], int]) -> int:
        """Start, kill at that moment; returns the session, of which processes may go on."""
        process = self.start()
        time.sleep(moment.fraction * self.seconds[moment.state])
        alive = members(process.pid)
        if moment.victims == "group":
            victims = alive
        elif moment.victims == "leader" or not alive:
            victims = [process.pid]
        else:
            victims = [choose(alive)]
        for victim in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        if moment.victims != "one":
            process.wait(SECONDS)
        return process.pid

    def check(self, moment: Moment, choose: Callable[[Sequence[int]], int]) -> None:
        """One kill: what lies under a final name is whole, and the next run leaves what an undisturbed one leaves."""
        self.begin(moment.state)
        session = self.kill(moment, choose)
        # An older wheel may still lie where the new one will.
        for name, digest in self.built().items():
            if digest not in (self.expected["tools"].get(name), self.expected[moment.state].get(name)):
                raise Problem(f"{name} is half-written")
        self.whole_run()
        if self.built() != self.expected[moment.state]:
            raise Problem(f"the next run left {self.built()} instead of {self.expected[moment.state]}")
        deadline = time.monotonic() + SECONDS
        while members(session):
            if time.monotonic() > deadline:
                raise Problem("what the kill left running does not end")
            time.sleep(0.05)
        # What was still running at the end of that run is swept by the one after it.
        self.whole_run()
        left = [path.name for path in [*self.wheels.glob(".*.part"), *self.cache.glob("work/*")]]
        if left or self.built() != self.expected[moment.state]:
            raise Problem(f"left over: {left or self.built()}")


def members(session: int) -> List[int]:
    """The processes of a session that run."""
    done = subprocess.run(
        ["ps", "-s", str(session), "-o", "pid=,stat="], stdout=subprocess.PIPE, text=True, check=False
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def moments(count: int, generator: random.Random) -> List[Moment]:
    """Random moments; every state and kind of victim has its turn."""
    kinds = [(state, victims) for victims in ("group", "leader", "one") for state in ("nothing", "tools", "edited")]
    generator.shuffle(kinds)
    return [Moment(kinds[i % len(kinds)][0], generator.random(), kinds[i % len(kinds)][1]) for i in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many kills (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        workshop = Workshop(Path(folder))
        print("whole runs: " + ", ".join(f"{key} {value:.1f} s" for key, value in workshop.seconds.items()), flush=True)
        for number, moment in enumerate(moments(arguments.count, generator), 1):
            title = f"{number}: {moment.victims} at {moment.fraction:.2f} of {moment.state}"
            try:
                workshop.check(moment, generator.choice)
            except Problem as problem:
                counts["failed"] += 1
                print(f"{title}: {problem}", flush=True)
            else:
                counts["passed"] += 1
                print(f"{title}: the next run leaves what it should", flush=True)
    print(", ".join(f"{value} {key}" for key, value in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
