"""Archives to hand out: the image as one file that ``docker load`` takes (two layers and their configuration), and
what any of them needs: xz by all processors, one time for all members, a place where they appear whole."""

import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import tarfile
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Deque, Dict, List, NamedTuple

from .. import cache
from ..errors import FactoryError
from ..progress import bar
from ..releases import CHECKOUT

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


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=str(CHECKOUT), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def epoch() -> int:
    """The latest time in an archive, in seconds since 1970: SOURCE_DATE_EPOCH, else the commit's time."""
    chosen = os.environ.get("SOURCE_DATE_EPOCH")
    if chosen is None:
        return int(_git("log", "-1", "--format=%ct") or 1_700_000_000)
    if not chosen.isdigit():
        raise FactoryError(f"SOURCE_DATE_EPOCH is '{chosen}'.", "Give it as whole seconds since 1970, or unset it.")
    return int(chosen)


def revision() -> str:
    """The commit that the checkout is at."""
    return _git("rev-parse", "HEAD") or "unknown"


def publish(files: List[Path], output: Path, stem: str) -> List[Path]:
    """Move results to their place, the archive last: where it is, all of them are, and belong together.

    The caller holds the lock of what is named ``stem``: unfinished files of that name are a killed run's, and go.
    """
    output.mkdir(parents=True, exist_ok=True)
    for stray in output.glob(f".{stem}*.part"):
        stray.unlink()
    parts = []
    try:
        for path in files:
            parts.append(output / f".{path.name}.part")
            shutil.move(str(path), str(parts[-1]))
        finals = [output / path.name for path in files]
        if finals[-1].exists():
            finals[-1].unlink()
        for part, final in zip(parts, finals):
            cache.publish(part, final)
    except BaseException:
        for part in parts:
            if part.exists():
                part.unlink()
        raise
    return finals
