"""NVML's simulated sensors: readings between the figures of the profile, which follow from what the device does."""

import pathlib
from typing import Callable, Dict, List

FACTS = pathlib.Path(__file__).resolve().parents[3] / "cu_bridge" / "facts" / "profiles.txt"

# `now(name, *arguments)` is what NVML's function of that name answers; `full` what the profile says.
SETUP = """
import ctypes, time
nvml = ctypes.CDLL({library!r})
device = ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
def now(name, *arguments, kind=ctypes.c_uint):
    value = kind()
    assert getattr(nvml, "nvmlDeviceGet" + name)(device, *arguments, ctypes.byref(value)) == 0, name
    return value.value
profile = {profile}
def hold():
    runtime.check(lib.mcMalloc(ffi.new("void **"), 1 << 20))
def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until: pass
"""
COLUMNS = ["idle_clock", "idle_power", "limit", "idle_celsius", "full_celsius", "slowdown", "shutdown"]


def profiles() -> List[List[str]]:
    lines = FACTS.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines if not line.startswith("#")]


def profile(name: str) -> Dict[str, int]:
    (row,) = [row for row in profiles() if row[0] == name]
    numbers = [int(cell) for cell in row[5:]]
    return {"clock": numbers[0], "memory_clock": numbers[1], **dict(zip(COLUMNS, numbers[4:]))}


def prepared(sdk: pathlib.Path, major: int) -> str:
    library = str(sdk / "lib" / f"cuda{major}" / "libnvidia-ml.so.1")
    return SETUP.format(library=library, profile=profile("mxc500"))


def test_every_profile_has_figures_that_make_sense() -> None:
    rows = profiles()
    assert len(rows) >= 4
    for row in rows:
        figures = profile(row[0])
        assert 0 < figures["idle_clock"] < figures["clock"]
        assert 0 < figures["idle_power"] < figures["limit"]
        assert 0 < figures["idle_celsius"] < figures["full_celsius"] < figures["slowdown"] < figures["shutdown"]


def test_an_idle_device_shows_its_idle_figures(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    run_python(
        prepared(sdk, major)
        + """
assert now("Temperature", 0) == profile["idle_celsius"]
assert now("PowerUsage") == profile["idle_power"]
assert now("ClockInfo", 1) == profile["idle_clock"] // 1000 and now("ClockInfo", 2) == profile["memory_clock"] // 1000
assert now("PerformanceState") == 8 and now("CurrentClocksThrottleReasons", kind=ctypes.c_ulonglong) == 1
"""
    )


def test_a_busy_device_is_warmer_and_draws_more(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    run_python(
        prepared(sdk, major)
        + """
import os
hold()
work(0.1)
for attempt in range(20):
    work(0.2)
    share = now("UtilizationRates", kind=ctypes.c_ulonglong) & 0xffffffff
    if share > 10 / os.cpu_count(): break  # a tenth of a processor: other programs may have the rest
assert share > 10 / os.cpu_count(), share
# Of the same sample, so all of them say the same share.
celsius, power = now("Temperature", 0), now("PowerUsage")
assert profile["idle_celsius"] <= celsius <= profile["full_celsius"]
assert profile["idle_power"] < power <= profile["limit"]
found = (power - profile["idle_power"]) / (profile["limit"] - profile["idle_power"])
assert abs(found * 100 - share) <= 1, (found, share)
heat = (celsius - profile["idle_celsius"]) / (profile["full_celsius"] - profile["idle_celsius"])
assert abs(heat - found) < 0.05, (heat, found)
assert now("ClockInfo", 0) == now("MaxClockInfo", 0) == profile["clock"] // 1000
assert now("PerformanceState") == 0 and now("CurrentClocksEventReasons", kind=ctypes.c_ulonglong) == 0
"""
    )


def test_energy_is_power_over_time(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    run_python(
        prepared(sdk, major)
        + """
def energy(): return now("TotalEnergyConsumption", kind=ctypes.c_ulonglong)
hold()
begin, first = time.monotonic(), energy()
time.sleep(0.2)
idle = energy() - first
passed = time.monotonic() - begin
assert profile["idle_power"] * 0.19 <= idle <= profile["limit"] * passed, idle
before, processor = energy(), time.process_time()
time.sleep(0.1)
work(0.5)
import os
used = (time.process_time() - processor) / os.cpu_count()
more = (profile["limit"] - profile["idle_power"]) * used
assert energy() - before >= profile["idle_power"] * 0.5 + more * 0.8
"""
    )


def test_limits_and_states_are_the_profiles(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    run_python(
        prepared(sdk, major)
        + """
for name in ("EnforcedPowerLimit", "PowerManagementLimit", "PowerManagementDefaultLimit"):
    assert now(name) == profile["limit"]
assert now("TemperatureThreshold", 0) == profile["shutdown"] and now("TemperatureThreshold", 1) == profile["slowdown"]
assert now("ApplicationsClock", 1) == now("Clock", 1, 3) == profile["clock"] // 1000
least, most = ctypes.c_uint(), ctypes.c_uint()
limits = nvml.nvmlDeviceGetMinMaxClockOfPState(device, 1, 8, ctypes.byref(least), ctypes.byref(most))
assert limits == 0 and least.value == most.value == profile["idle_clock"] // 1000
count, clock = ctypes.c_uint(0), ctypes.c_uint()
assert nvml.nvmlDeviceGetSupportedMemoryClocks(device, ctypes.byref(count), None) == 7 and count.value == 1
assert nvml.nvmlDeviceGetSupportedMemoryClocks(device, ctypes.byref(count), ctypes.byref(clock)) == 0
assert clock.value == profile["memory_clock"] // 1000
states = (ctypes.c_int * 16)()
assert nvml.nvmlDeviceGetSupportedPerformanceStates(device, states, 64) == 0 and list(states) == [0, 8] + [32] * 14
assert now("NumFans") == 0
speed = ctypes.c_uint()
assert nvml.nvmlDeviceGetFanSpeed(device, ctypes.byref(speed)) == 3  # not supported: there is no fan
"""
    )


def test_there_is_no_fabric_and_that_is_an_answer(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    run_python(
        prepared(sdk, major)
        + """
for version, size in ((2, 36), (3, 40)):
    info = ctypes.create_string_buffer((size | version << 24).to_bytes(4, "little") + b"x" * 44, 48)
    assert nvml.nvmlDeviceGetGpuFabricInfoV(device, info) == 0
    assert info.raw[:size] == (size | version << 24).to_bytes(4, "little") + bytes(size - 4), version
    assert info.raw[size:] == b"x" * (48 - size)
"""
    )
