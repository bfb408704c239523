"""Each thing that `verify` promises to find, it finds."""

import subprocess
import zipfile
from pathlib import Path
from typing import Callable, Dict, List, Optional

import pytest

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.factory import elf, hidden, stripped
from build_scripts.factory.wheel import WheelReader, WheelWriter
from build_scripts.products import verify

from ..small import SmallRelease, compile_library, patchelf

Change = Callable[[Dict[str, bytes]], None]


@pytest.fixture
def failures(
    small_release: SmallRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Change], List[str]]:
    """`failures(change)`: what verify says of a sound wheel whose members were changed, with a RECORD that fits."""
    assert small_release.build().returncode == 0
    monkeypatch.setattr(verify, "CHECKOUT", small_release.checkout)

    def run(change: Change, sdk: Optional[Path] = None) -> List[str]:
        with WheelReader(small_release.built) as reader:
            members = {name: reader.read(name) for name in reader.members if not name.endswith("/RECORD")}
            dist_info = reader.dist_info
        change(members)
        writer = WheelWriter(dist_info)
        for name, content in members.items():
            writer.add_bytes(name, content, executable=content[:4] == elf.MAGIC)
        path = tmp_path / small_release.built.name
        writer.write(path)
        return verify.verify(path, releases.load(small_release.table), sdk or small_release.sdk)

    return run


def edited(content: bytes, tmp_path: Path, *options: str) -> bytes:
    path = tmp_path / "edited.so"
    path.write_bytes(content)
    subprocess.run([patchelf(), *options, str(path)], check=True)
    return path.read_bytes()


CUDA, CPU, PYTHON = (f"torch/lib/libtorch_{name}.so" for name in ("cuda", "cpu", "python"))
INFO = "torch-9.9.0+maca1.0.0.dist-info"


def test_an_unchanged_wheel_has_no_failure(failures: Callable[[Change], List[str]]) -> None:
    assert failures(lambda members: None) == []


def test_device_code_is_found(failures: Callable[[Change], List[str]], device_library: Callable[..., Path]) -> None:
    library = device_library("libfresh.so").read_bytes()
    found = failures(lambda members: members.update({"torch/lib/libfresh.so": library}))
    assert any("libfresh.so holds device code: section .nv_fatbin" in line for line in found)
    assert any("libfresh.so holds device code: a fat binary at offset" in line for line in found)


def test_a_file_of_nvidia_is_found(failures: Callable[[Change], List[str]]) -> None:
    assert "torch/bin/ptxas is NVIDIA's" in failures(lambda members: members.update({"torch/bin/ptxas": b"x"}))


def test_another_search_path_is_found(failures: Callable[[Change], List[str]], tmp_path: Path) -> None:
    def change(members: Dict[str, bytes]) -> None:
        members[CUDA] = edited(
            members[CUDA], tmp_path, "--set-rpath", "$ORIGIN/../../nvidia/cudnn/lib:/usr/local/cuda/lib64"
        )

    found = failures(change)
    assert any("has DT_RUNPATH, which LD_LIBRARY_PATH beats" in line for line in found)
    assert any("does not look into the SDK first" in line for line in found)


def test_a_path_to_nvidias_packages_is_found(failures: Callable[[Change], List[str]], tmp_path: Path) -> None:
    def change(members: Dict[str, bytes]) -> None:
        rpath = "$ORIGIN/../../mxmaca/lib/cuda12:$ORIGIN:$ORIGIN/../../nvidia/cudnn/lib:/usr/local/cuda/lib64"
        members[CUDA] = edited(members[CUDA], tmp_path, "--force-rpath", "--set-rpath", rpath)

    found = failures(change)
    assert f"{CUDA} looks into $ORIGIN/../../nvidia/cudnn/lib" in found
    assert f"{CUDA} looks into /usr/local/cuda/lib64" in found


@pytest.mark.parametrize("carrier, library", stripped.CARRIERS.items())
def test_a_library_of_ours_that_nothing_loads_is_found(
    failures: Callable[[Change], List[str]], tmp_path: Path, carrier: str, library: str
) -> None:
    def change(members: Dict[str, bytes]) -> None:
        members[carrier] = edited(members[carrier], tmp_path, "--remove-needed", library)

    assert any(f"{library} is not the first library that {carrier} needs" in line for line in failures(change))


def test_a_library_of_ours_that_comes_too_late_is_found(
    failures: Callable[[Change], List[str]], tmp_path: Path
) -> None:
    def change(members: Dict[str, bytes]) -> None:
        members[PYTHON] = edited(members[PYTHON], tmp_path, "--add-needed", "libtorch_cpu.so")

    assert any(f"is not the first library that {PYTHON} needs" in line for line in failures(change))


@pytest.mark.parametrize("library", stripped.CARRIERS.values())
def test_a_missing_library_of_ours_is_found(failures: Callable[[Change], List[str]], library: str) -> None:
    found = failures(lambda members: members.pop(f"torch/lib/{library}") and None)
    assert any(f"{library} is missing" in line for line in found)


@pytest.mark.parametrize(
    "member, complaint",
    [(PYTHON, "which libtorch_python.so does not call"), (CPU, "which libtorch_cpu.so does not have")],
)
def test_a_function_that_upstream_has_renamed_is_found(
    failures: Callable[[Change], List[str]], member: str, complaint: str
) -> None:
    def change(members: Dict[str, bytes]) -> None:
        # As long as the old name: strings lie at fixed places.
        members[member] = members[member].replace(b"\0execute\0", b"\0perform\0")

    assert any("execute, " + complaint in line for line in failures(change))


def test_a_c_function_of_ours_that_is_missing_or_comes_too_late_is_found(
    failures: Callable[[Change], List[str]], tmp_path: Path
) -> None:
    ours = f"torch/lib/{stripped.OPERATORS}"

    def change(members: Dict[str, bytes]) -> None:
        path = tmp_path / "libhidden.so"
        path.write_bytes(members[ours])
        hidden.hide(path, {"aoti_torch_cuda_sort"})
        members[ours] = path.read_bytes()
        again = compile_library(tmp_path, "libtorch_cuda.so", "int aoti_torch_cuda_sort(void) { return 1; }\n")
        members[CUDA] = again.read_bytes()

    found = failures(change)
    assert f"{stripped.OPERATORS} lacks aoti_torch_cuda_sort" in found
    assert "libtorch_cuda.so still defines aoti_torch_cuda_sort" in found


def test_a_requirement_of_nvidia_is_found(failures: Callable[[Change], List[str]]) -> None:
    def change(members: Dict[str, bytes]) -> None:
        name = f"{INFO}/METADATA"
        members[name] = members[name].replace(
            b"Requires-Dist: mxmaca==1.0.0", b"Requires-Dist: nvidia-nccl-cu12\nRequires-Dist: triton"
        )

    assert {
        "it requires nvidia-nccl-cu12",
        "it requires triton outside an extra",
        "it does not require mxmaca==1.0.0",
    } <= set(failures(change))


def test_a_file_that_is_not_as_the_patches_left_it_is_found(failures: Callable[[Change], List[str]]) -> None:
    assert "torch/__init__.py is not as the patches left it" in failures(
        lambda members: members.update({"torch/__init__.py": b""})
    )


def test_a_series_that_has_changed_since_is_found(
    failures: Callable[[Change], List[str]], small_release: SmallRelease
) -> None:
    folder = small_release.checkout / "patches" / "9.9.0"
    (folder / "0001-version.patch").write_text("Changed.\n" + (folder / "0001-version.patch").read_text())
    (folder / "series").write_text("0001-version.patch\n")
    found = failures(lambda members: None)
    assert any("patches/9.9.0/0001-version.patch is not applied in its present form" in line for line in found)
    assert any("was built with 0002-load.patch" in line for line in found)


def test_a_symbol_that_the_sdk_lacks_is_found(
    failures: Callable[[Change], List[str]], compile_library: Callable[..., Path], tmp_path: Path
) -> None:
    script = tmp_path / "more.map"
    script.write_text("libcudart.so.12 { global: *; };")
    compile_library("libcudart.so.12", "int cudaUnheardOf(void) { return 0; }", f"-Wl,--version-script={script}")
    user = compile_library(
        "libuser.so", "int cudaUnheardOf(void); int u(void) { return cudaUnheardOf(); }", "-l:libcudart.so.12"
    )
    found = failures(lambda members: members.update({"torch/lib/libuser.so": user.read_bytes()}))
    assert (
        "torch/lib/libuser.so needs cudaUnheardOf@libcudart.so.12 of libcudart.so.12, which the SDK does not provide"
        in found
    )


def test_an_unversioned_symbol_that_nothing_provides_is_found(
    failures: Callable[[Change], List[str]], compile_library: Callable[..., Path]
) -> None:
    user = compile_library("libuser.so", "int ncclUnheardOf(void); int u(void) { return ncclUnheardOf(); }")
    found = failures(lambda members: members.update({"torch/lib/libuser.so": user.read_bytes()}))
    assert "torch/lib/libuser.so needs ncclUnheardOf, which neither the wheel nor the SDK provides" in found


def test_a_library_that_the_sdk_lacks_is_found(failures: Callable[[Change], List[str]], tmp_path: Path) -> None:
    def change(members: Dict[str, bytes]) -> None:
        members[CUDA] = edited(members[CUDA], tmp_path, "--add-needed", "libcudnn.so.9")

    assert f"{CUDA} needs libcudnn.so.9, which the SDK does not have" in failures(change)


def test_a_record_that_does_not_fit_is_found(small_release: SmallRelease, tmp_path: Path) -> None:
    assert small_release.build().returncode == 0
    path = tmp_path / small_release.built.name
    with zipfile.ZipFile(str(small_release.built)) as old, zipfile.ZipFile(str(path), "w") as new:
        for info in old.infolist():
            content = old.read(info.filename)
            if info.filename == "torch/include/torch.h":
                new.writestr("torch/extra.h", b"")
                content += b"// more\n"
            if info.filename != "macatorch/__init__.py":
                new.writestr(info, content)
    found = verify.verify(path, releases.load(small_release.table), small_release.sdk)
    assert "torch/include/torch.h differs from its hash or size in RECORD" in found
    assert "torch/extra.h is not in RECORD" in found
    assert "RECORD names macatorch/__init__.py, which is not in the wheel" in found


def test_failures_are_one_line_each_and_the_exit_code_says_so(small_release: SmallRelease) -> None:
    done = small_release.run("verify", str(small_release.wheel))
    assert done.returncode == 1
    assert f"{small_release.wheel.name}: it has no maca.json: this factory did not build it" in done.stdout.splitlines()


def test_verify_without_an_sdk_says_how_to_get_one(small_release: SmallRelease) -> None:
    assert small_release.build("--no-sdk").returncode == 0
    done = small_release.run("verify", str(small_release.built))
    assert done.returncode == 1
    assert "No mxmaca 1.0.0 beside" in done.stderr and "--sdk" in done.stderr


def test_verify_of_what_is_no_wheel_is_refused(small_release: SmallRelease, tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"")
    with pytest.raises(FactoryError, match="is no wheel, or is truncated"):
        verify.verify(path, releases.load(small_release.table))
