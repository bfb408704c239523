"""torch.cuda.gds: memory of the device goes to files and back, in the releases whose wheel was built with cuFile."""

import os
import pathlib

import pytest
import torch

gds = pytest.importorskip("torch.cuda.gds")
GdsFile = getattr(gds, "GdsFile", getattr(gds, "_GdsFile", None))
BUILT = "libcufile" in (pathlib.Path(torch.__file__).parent / "lib" / "libtorch_python.so").read_bytes().decode(
    "latin1"
)


@pytest.mark.skipif(not BUILT, reason="upstream's wheel has no cuFile")
def test_a_storage_goes_to_a_file_and_back(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "values"
    file = GdsFile(str(path), os.O_CREAT | os.O_RDWR)
    x = torch.arange(1024, dtype=torch.int32, device="cuda")
    y = torch.zeros_like(x)
    gds.gds_register_buffer(x.untyped_storage())
    file.save_storage(x.untyped_storage(), 4096)
    gds.gds_deregister_buffer(x.untyped_storage())
    assert path.stat().st_size == 4096 + 4096
    assert path.read_bytes()[4096:] == x.cpu().numpy().tobytes()
    file.load_storage(y.untyped_storage(), 4096)
    assert torch.equal(x, y)
    file.deregister_handle()


@pytest.mark.skipif(BUILT, reason="upstream's wheel has cuFile")
def test_without_cufile_it_is_upstreams_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="not supported on this platform"):
        GdsFile(str(tmp_path / "values"), os.O_CREAT | os.O_RDWR)
