"""`mx-smi --nvidia`: what programs that call nvidia-smi read."""

import subprocess
import sys
from typing import Dict, List

import pytest


@pytest.fixture()
def smi(environment: Dict[str, str]):
    """Return a function that runs mx-smi with these arguments beside a process that holds 3 MiB of device 1."""
    hold = """
from mxmaca import runtime
ffi, lib = runtime.ffi(), runtime.lib()
runtime.check(lib.mcSetDevice(1)); runtime.check(lib.mcMalloc(ffi.new("void **"), 3 << 20))
print("ready", flush=True); input()
"""
    variables = {**environment, "MACA_DEVICE_COUNT": "2", "MACA_DEVICE_MEMORY": "2GiB,1GiB"}
    holder = subprocess.Popen(
        [sys.executable, "-c", hold], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "ready\n"

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "mxmaca.smi", *arguments]
        return subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    run.holder = holder.pid  # type: ignore[attr-defined]
    yield run
    holder.communicate("\n")


def cells(text: str) -> List[List[str]]:
    return [line.split(", ") for line in text.splitlines()]


def test_properties_of_devices_come_as_csv(smi) -> None:
    done = smi("--nvidia", "--query-gpu=index,name,memory.total,memory.used,fan.speed", "--format=csv")
    header, first, second = cells(done.stdout)
    assert header == ["index", "name", "memory.total [MiB]", "memory.used [MiB]", "fan.speed [%]"]
    assert first == ["0", "MXC500", "2048 MiB", "0 MiB", "[N/A]"]
    assert second == ["1", "MXC500", "1024 MiB", "3 MiB", "[N/A]"]
    assert done.returncode == 0


def test_sensors_have_readings_with_units(smi) -> None:
    names = "temperature.gpu,power.draw,power.limit,pstate,clocks.sm,clocks.max.sm,utilization.memory"
    header, (heat, power, limit, state, clock, largest, share) = cells(
        smi("--nvidia", f"--query-gpu={names}", "--format=csv", "-i", "1").stdout
    )
    assert header[:3] == ["temperature.gpu", "power.draw [W]", "power.limit [W]"]
    assert 30 <= int(heat) <= 100 and limit == "350.00 W"
    assert power.endswith(" W") and 0 < float(power[:-2]) <= 350
    assert (state, clock, largest) == ("P0", "1600 MHz", "1600 MHz") and share.endswith(" %")
    (idle,) = cells(smi("--nvidia", "--query-gpu=pstate,clocks.sm", "--format=csv,noheader", "-i", "0").stdout)
    assert idle == ["P8", "300 MHz"]


def test_the_tables_show_temperature_and_power(smi) -> None:
    for text in (smi().stdout, smi("--nvidia").stdout):
        assert len({len(line) for line in text.splitlines()}) == 1
        assert text.count("/350W") == 2 and "Temp" in text
    assert smi("-q").stdout.count("Power Draw") == 2


def test_header_and_units_can_be_left_out_and_devices_chosen(smi) -> None:
    arguments = ["--nvidia", "--query-gpu", "memory.free,gpu_uuid", "--format=csv,noheader,nounits"]
    ((free, uuid),) = cells(smi(*arguments, "-i", "1").stdout)
    assert free == "1021" and uuid.startswith("GPU-")
    assert cells(smi(*arguments, "-i", uuid).stdout) == [[free, uuid]]
    assert f"(UUID: {uuid})" in smi("--nvidia", "-L").stdout.splitlines()[1]


def test_processes_that_hold_memory_come_as_csv(smi) -> None:
    done = smi("--nvidia", "--query-compute-apps=pid,used_memory", "--format=csv")
    assert cells(done.stdout) == [["pid", "used_memory [MiB]"], [str(smi.holder), "3 MiB"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--query-gpu=index,warmth", "--format=csv"],
        ["--query-gpu=index"],
        ["--query-gpu=index", "--format=xml"],
        ["--query-gpu=", "--format=csv"],
        ["-L", "-i", "7"],
        ["-x"],
        ["-L", "-l", "0"],
    ],
)
def test_what_is_not_there_is_refused(smi, arguments: List[str]) -> None:
    done = smi("--nvidia", *arguments)
    assert done.returncode == 2 and done.stdout.startswith("nvidia-smi: ") and done.stderr == ""


def test_every_named_property_has_an_answer(smi) -> None:
    names = [line.strip('"') for line in smi("--nvidia", "--help-query-gpu").stdout.splitlines()]
    assert len(names) > 30
    done = smi("--nvidia", f"--query-gpu={','.join(names)}", "--format=csv,noheader", "-i", "0")
    assert [len(row) for row in cells(done.stdout)] == [len(names)]


def test_watching_prints_again_and_again(environment: Dict[str, str]) -> None:
    command = [sys.executable, "-m", "mxmaca.smi", "-L", "--watch", "0.01"]
    watching = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    lines = [watching.stdout.readline() for _ in range(3)]
    watching.terminate()
    watching.wait()
    assert lines[0] == lines[1] == lines[2] and lines[0].startswith("GPU 0: ")


def test_query_says_what_is_known_of_each_device(smi) -> None:
    text = smi("-q").stdout
    assert text.count("Product Name") == 2 and "1024 MiB" in text and str(smi.holder) in text
