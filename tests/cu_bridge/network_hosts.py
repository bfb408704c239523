"""Hosts for tests: a network namespace each, with processes, mounts and a state folder of its own."""

import os
import pathlib
import shutil
import subprocess
import uuid
from typing import Dict, List, Sequence

import pytest

MOST = 4


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """Namespaces on one bridge, as hosts on a switch."""

    def __init__(self) -> None:
        self.name = f"mx{uuid.uuid4().hex[:6]}"
        self.switch = f"{self.name}sw"
        self.made: List[str] = []

    def create(self) -> None:
        self._namespace(self.switch)
        ip("-n", self.switch, "link", "add", "name", "bridge0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge0", "up")
        for host in range(MOST):
            space = self._namespace(f"{self.name}{host}")
            ip("-n", self.switch, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", self.switch, "link", "set", f"port{host}", "master", "bridge0", "up")
            ip("-n", space, "addr", "add", f"10.77.0.{host + 1}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")

    def remove(self) -> None:
        for space in self.made:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)

    def set_link(self, host: int, state: str) -> None:
        ip("-n", self.switch, "link", "set", f"port{host}", state)

    def command(self, host: int) -> List[str]:
        """What runs a command on a host; the whole host ends with it."""
        return ["ip", "netns", "exec", f"{self.name}{host}", *OWN_PROCESSES]

    def _namespace(self, name: str) -> str:
        ip("netns", "add", name)
        self.made.append(name)
        ip("-n", name, "link", "set", "lo", "up")
        return name


OWN_PROCESSES = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def make_network() -> Network:
    """Create the hosts, or skip where this is not allowed."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs ip and unshare")
    network = Network()
    try:
        network.create()
        subprocess.run([*network.command(0), "true"], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        network.remove()
        pytest.skip(f"namespaces cannot be made here: {error.stderr.strip()}")
    return network


def start(
    prefixes: Sequence[Sequence[str]], commands: Sequence[Sequence[str]], environment: Dict[str, str], folder: str
) -> List["subprocess.Popen[str]"]:
    """Start a command on each host."""
    started = []
    for host, (prefix, command) in enumerate(zip(prefixes, commands)):
        state = pathlib.Path(folder) / f"state{host}"
        state.mkdir(exist_ok=True)
        started.append(
            subprocess.Popen(
                [*prefix, *command],
                env={**os.environ, **environment, "MACA_STATE_DIR": str(state)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return started
