"""Communicators over several hosts, which are namespaces here."""

import ctypes.util
import pathlib
import re
import shutil
import time
from typing import Callable, Dict, Iterator, List, Sequence

import network_hosts as hosts
import pytest

Compiled = Callable[[str, int], pathlib.Path]


@pytest.fixture(scope="module")
def network() -> Iterator[hosts.Network]:
    made = hosts.make_network()
    yield made
    made.remove()


@pytest.fixture()
def ucx(sdk: pathlib.Path) -> None:
    if not (sdk.parent / "libucx").is_dir() and ctypes.util.find_library("ucp") is None:
        pytest.skip("needs UCX: pip install mxmaca[net]")


class Job:
    """A program whose ranks are spread over hosts."""

    def __init__(self, program: pathlib.Path, environment: Dict[str, str], folder: pathlib.Path) -> None:
        self.program, self.folder = program, folder
        self.environment = {**environment, "MACA_DEVICE_COUNT": "8"}

    def start(self, prefixes: Sequence[List[str]], case: str, ranks: Sequence[int], *arguments: str) -> None:
        commands = []
        for host, here in enumerate(ranks):
            place = [str(sum(ranks)), str(sum(ranks[:host])), str(here), str(self.folder / "id")]
            commands.append([str(self.program), case, *place, *arguments])
        self.processes = hosts.start(prefixes, commands, self.environment, str(self.folder))

    def outputs(self) -> List[str]:
        return [process.communicate(timeout=60)[0] for process in self.processes]

    def finish(self) -> None:
        outputs = self.outputs()
        assert [process.returncode for process in self.processes] == [0] * len(outputs), "\n".join(outputs)


@pytest.fixture()
def job(
    compiled: Compiled, environment: Dict[str, str], tmp_path: pathlib.Path, major: int
) -> Iterator[Callable[[str], Job]]:
    jobs: List[Job] = []

    def make(program: str) -> Job:
        jobs.append(Job(compiled(program, major), environment, tmp_path))
        return jobs[-1]

    yield make
    for made in jobs:
        for process in made.processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("ranks", [(2, 1), (1, 2, 1, 1)])
def test_every_collective_between_hosts_has_the_right_values(
    network: hosts.Network, ucx: None, job: Callable[[str], Job], ranks: Sequence[int]
) -> None:
    # One element, some, and some that take several exchanges.
    counts = ("1", "1003") if len(ranks) > 2 else ("7", "70001")
    running = job("nccl_operations.cpp")
    running.start([network.command(host) for host in range(len(ranks))], "host", ranks, *counts)
    running.finish()


@pytest.mark.parametrize(
    "case, ranks",
    [
        ("same-bits", (2, 2)),
        ("mismatch", (1, 2)),
        ("mismatch", (1, 1)),
        ("split", (1, 2, 1, 1)),
        ("wrong-size", (1, 1)),
    ],
)
def test_communicators_between_hosts(
    network: hosts.Network, ucx: None, job: Callable[[str], Job], case: str, ranks: Sequence[int]
) -> None:
    running = job("nccl_hosts.cpp")
    running.start([network.command(host) for host in range(len(ranks))], case, ranks)
    running.finish()


def test_processes_that_do_not_see_each_other_are_not_taken_for_one_host(
    network: hosts.Network, ucx: None, job: Callable[[str], Job]
) -> None:
    running = job("nccl_hosts.cpp")
    running.environment["NCCL_SOCKET_IFNAME"] = "=lo"
    running.start([hosts.OWN_PROCESSES, hosts.OWN_PROCESSES], "same-bits", (1, 1))
    running.finish()


def test_a_rank_that_is_killed_is_an_error_on_every_host(
    network: hosts.Network, ucx: None, job: Callable[[str], Job]
) -> None:
    running = job("nccl_hosts.cpp")
    running.start([network.command(host) for host in range(2)], "killed", (2, 2))
    said = "".join(running.outputs())
    for rank in range(3):
        assert re.search(rf"rank {rank} failed with 6: .*rank 3 ", said), said


def test_a_host_that_loses_its_network_is_an_error_within_ten_seconds(
    network: hosts.Network, ucx: None, job: Callable[[str], Job]
) -> None:
    running = job("nccl_hosts.cpp")
    running.start([network.command(host) for host in range(2)], "until-failure", (1, 1))
    for process in running.processes:
        assert process.stdout is not None and "works" in process.stdout.readline()
    began = time.monotonic()
    network.set_link(1, "down")
    try:
        said = "".join(running.outputs())
    finally:
        network.set_link(1, "up")
    assert time.monotonic() - began < 10
    for rank in range(2):
        assert re.search(rf"rank {rank} failed at \d+ with 6: .*the network is down", said), said


def test_without_ucx_the_error_names_the_extra(
    network: hosts.Network, job: Callable[[str], Job], sdk: pathlib.Path, major: int, tmp_path: pathlib.Path
) -> None:
    if ctypes.util.find_library("ucp") is not None:
        pytest.skip("the system has UCX")
    # The same library in a place that has none beside it.
    libraries = tmp_path / "mxmaca" / "lib" / f"cuda{major}"
    libraries.mkdir(parents=True)
    shutil.copy(sdk / "lib" / f"cuda{major}" / "libnccl.so.2", libraries)
    shutil.copy(sdk / "lib" / "libmcruntime.so", libraries.parent)
    running = job("nccl_hosts.cpp")
    running.environment["LD_LIBRARY_PATH"] = str(libraries)
    running.start([network.command(host) for host in range(2)], "join", (1, 1))
    for said in running.outputs():
        assert "joined with 2: " in said and "mxmaca[net]" in said, said
