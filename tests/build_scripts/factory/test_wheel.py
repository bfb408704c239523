"""Wheels as files: what is refused on reading, what is canonical on writing."""

import hashlib
import stat
import zipfile
from pathlib import Path

import pytest

from build_scripts.errors import FactoryError
from build_scripts.factory import wheel
from build_scripts.factory.wheel import WheelReader, WheelWriter, record_hash


def archive_with(path: Path, name: str, mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(str(path), "w") as archive:
        info = zipfile.ZipInfo("placeholder")
        info.filename = name
        info.external_attr = mode << 16
        archive.writestr(info, b"content")
    return path


@pytest.mark.parametrize(
    "name, mode, reason",
    [
        ("../outside.py", 0o100644, "a path out of the wheel"),
        ("torch/../../outside.py", 0o100644, "a path out of the wheel"),
        ("/etc/outside", 0o100644, "an absolute path"),
        ("C:/outside", 0o100644, "an absolute path"),
        ("torch\\..\\outside", 0o100644, "a backslash"),
        ("torch/link", stat.S_IFLNK | 0o777, "a link"),
        ("torch/device", stat.S_IFCHR | 0o644, "no regular file"),
        ("torch/new\nline", 0o100644, "a control character"),
    ],
)
def test_a_wheel_that_reaches_outside_its_root_is_refused(tmp_path: Path, name: str, mode: int, reason: str) -> None:
    path = archive_with(tmp_path / "bad.whl", name, mode)
    with pytest.raises(FactoryError, match=f"bad.whl is refused: its member .* is {reason}"):
        WheelReader(path)


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.whl"
    with zipfile.ZipFile(str(path), "w") as archive:
        archive.writestr("torch/a.py", b"1")
        with pytest.warns(UserWarning):
            archive.writestr("torch/a.py", b"2")
    with pytest.raises(FactoryError, match="twice"):
        WheelReader(path)


def test_what_is_no_zip_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.whl"
    path.write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(FactoryError, match="broken.whl is no wheel, or is truncated"):
        WheelReader(path)


def example(path: Path, large: bytes, reverse: bool = False) -> Path:
    writer = WheelWriter("x-1.dist-info")
    names = ["x/b.py", "x/a.py", "x-1.dist-info/METADATA", "a_first.py"]
    for name in reversed(names) if reverse else names:
        writer.add_bytes(name, name.encode(), executable=name == "x/a.py")
    source = path.with_suffix(".bin")
    source.write_bytes(large)
    writer.add_file("x/large.bin", source, executable=False)
    writer.add_bytes("x/empty", b"")
    writer.write(path)
    return path


@pytest.fixture
def large() -> bytes:
    """More than two chunks, neither constant nor random."""
    block = b"".join(hashlib.sha256(bytes([i])).digest() + bytes(90) for i in range(256))
    return (block * (2 * wheel.CHUNK // len(block) + 100))[: 2 * wheel.CHUNK + 12345]


def test_any_unzip_reads_what_the_writer_wrote(tmp_path: Path, large: bytes) -> None:
    path = example(tmp_path / "x.whl", large)
    with zipfile.ZipFile(str(path)) as archive:
        assert archive.testzip() is None
        assert archive.read("x/large.bin") == large
        assert archive.read("x/empty") == b""
        assert archive.read("x/b.py") == b"x/b.py"


def test_members_are_sorted_with_dist_info_last_and_times_and_modes_are_fixed(tmp_path: Path, large: bytes) -> None:
    with zipfile.ZipFile(str(example(tmp_path / "x.whl", large))) as archive:
        infos = archive.infolist()
    names = [info.filename for info in infos]
    assert names == [
        "a_first.py",
        "x/a.py",
        "x/b.py",
        "x/empty",
        "x/large.bin",
        "x-1.dist-info/METADATA",
        "x-1.dist-info/RECORD",
    ]
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.filename: info.external_attr >> 16 for info in infos if info.filename == "x/a.py"} == {
        "x/a.py": 0o100755
    }
    assert {info.external_attr >> 16 for info in infos if info.filename != "x/a.py"} == {0o100644}


def test_the_same_members_give_the_same_bytes(tmp_path: Path, large: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    first = example(tmp_path / "one.whl", large).read_bytes()
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    assert example(tmp_path / "two.whl", large, reverse=True).read_bytes() == first


def test_a_member_taken_from_another_wheel_is_the_same_as_one_compressed_anew(tmp_path: Path, large: bytes) -> None:
    path = example(tmp_path / "x.whl", large)
    with WheelReader(path) as reader:
        writer = WheelWriter("x-1.dist-info")
        for name, (digest, _) in reader.record().items():
            writer.add_from(reader, name, name, digest)
        writer.write(tmp_path / "copy.whl")
    assert (tmp_path / "copy.whl").read_bytes() == path.read_bytes()


def test_record_names_every_member_with_its_hash(tmp_path: Path, large: bytes) -> None:
    with WheelReader(example(tmp_path / "x.whl", large)) as reader:
        record = reader.record()
        assert set(record) == set(reader.members) - {"x-1.dist-info/RECORD"}
        assert record["x/large.bin"] == (record_hash(hashlib.sha256(large).digest()), len(large))


def test_record_keeps_names_with_commas_and_quotes(tmp_path: Path) -> None:
    names = ["x/a, b.txt", 'x/"c".txt', 'x/d, "e".txt']
    writer = WheelWriter("x-1.dist-info")
    for name in names:
        writer.add_bytes(name, b"content")
    writer.write(tmp_path / "x.whl")
    with WheelReader(tmp_path / "x.whl") as reader:
        assert set(reader.record()) == set(names)


def test_a_damaged_member_is_reported_by_name(tmp_path: Path, large: bytes) -> None:
    path = example(tmp_path / "x.whl", large)
    with WheelReader(path) as reader:
        start = reader.members["x/large.bin"].header_offset
    data = bytearray(path.read_bytes())
    data[start + 2000 : start + 2100] = bytes(100)
    path.write_bytes(bytes(data))
    with WheelReader(path) as reader, pytest.raises(FactoryError, match="x.whl is damaged at x/large.bin"):
        reader.read("x/large.bin")
