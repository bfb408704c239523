"""The image as one file that ``docker load`` takes: two layers, their configuration, compressed by all processors."""

import hashlib
import io
import json
import lzma
import os
import tarfile
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Deque, Dict, List, NamedTuple

from ..progress import bar

# Each piece is a stream of its own, which xz and every reader of its format joins again: the bytes depend on the
# pieces' size and the preset, not on the number of processors.
PIECE = 1 << 25
# Preset 6 saves a fifth of the size and takes eight times as long.
PRESET = 0


class Packed(NamedTuple):
    """A finished layer: its file, its digest, what made it."""

    path: Path
    digest: str
    purpose: str


class XzFile:
    """A file to write, compressed piece by piece on several processors."""

    def __init__(self, file: "IO[bytes]", preset: int = PRESET, workers: int = 0) -> None:
        self._file, self._preset = file, preset
        self._workers = workers or len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self._workers)
        self._pending: Deque[Future[bytes]] = deque()
        self._piece = bytearray()
        self._size = 0

    def write(self, data: bytes) -> int:
        self._piece += data
        self._size += len(data)
        while len(self._piece) >= PIECE:
            self._submit(bytes(self._piece[:PIECE]))
            del self._piece[:PIECE]
        return len(data)

    def tell(self) -> int:
        return self._size

    def _submit(self, piece: bytes) -> None:
        self._pending.append(self._pool.submit(_compress, piece, self._preset))
        while len(self._pending) > self._workers:
            self._file.write(self._pending.popleft().result())

    def __enter__(self) -> "XzFile":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            if self._piece:
                self._submit(bytes(self._piece))
            while self._pending:
                self._file.write(self._pending.popleft().result())
        for future in self._pending:
            future.cancel()
        self._pool.shutdown()


def _compress(piece: bytes, preset: int) -> bytes:
    return lzma.compress(piece, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=preset)


def configuration(made_by_engine: Dict[str, Any], packed: List[Packed], created: str) -> Dict[str, Any]:
    """The image's configuration: what the Dockerfile says, over our layers, without traces of the build."""
    kept = ("Cmd", "Entrypoint", "Env", "User", "WorkingDir", "ExposedPorts", "Volumes", "StopSignal")
    run = {key: made_by_engine["config"][key] for key in kept if made_by_engine["config"].get(key)}
    labels = made_by_engine["config"].get("Labels") or {}
    run["Labels"] = {key: value for key, value in labels.items() if not key.startswith("maca.build")}
    return {
        "architecture": made_by_engine["architecture"],
        "os": made_by_engine["os"],
        "created": created,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in packed]},
        "history": [{"created": created, "created_by": layer.purpose} for layer in packed],
    }


def write(path: Path, reference: str, config: Dict[str, Any], packed: List[Packed], epoch: int, preset: int) -> None:
    """Write the archive, in the format of ``docker save`` that every engine reads."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
    config_name = f"{hashlib.sha256(text).hexdigest()}.json"
    names = [f"{layer.digest.split(':')[1]}/layer.tar" for layer in packed]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [reference], "Layers": names}]).encode()
    total = sum(layer.path.stat().st_size for layer in packed)
    with path.open("wb") as file, bar("compressing", total) as progress, XzFile(file, preset) as out:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
            for name, content in ((config_name, text), ("manifest.json", manifest)):
                archive.addfile(_member(name, len(content), epoch), io.BytesIO(content))
            for name, layer in zip(names, packed):
                folder = tarfile.TarInfo(name.split("/")[0])
                folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o755, epoch
                archive.addfile(folder)
                with layer.path.open("rb") as content_file:
                    size = layer.path.stat().st_size
                    archive.addfile(_member(name, size, epoch), _Watched(content_file, progress))  # type: ignore[arg-type]


class _Watched:
    def __init__(self, file: "IO[bytes]", progress: Any) -> None:
        self._file, self._progress = file, progress

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._progress.advance(len(data))
        return data


def _member(name: str, size: int, epoch: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o644, epoch
    return info
