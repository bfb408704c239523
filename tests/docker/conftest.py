"""An engine, and the image built, saved, removed and loaded once for all tests.

Where no engine answers, one is started if that is possible here: as root, with dockerd. Otherwise the tests that need
one are skipped with the reason. MACATORCH_IMAGE_TORCH and MACATORCH_IMAGE_SUITE choose another release and base;
MACATORCH_IMAGE_FOLDER takes an image that is built already.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from build_scripts import cache  # noqa: E402
from build_scripts.container import base  # noqa: E402

TORCH = os.environ.get("MACATORCH_IMAGE_TORCH", "2.6.0")
SUITE = os.environ.get("MACATORCH_IMAGE_SUITE", "bookworm")
WHEELS = CHECKOUT / "wheels"
# From what a machine should be able to do to what works in a container or a small virtual machine.
DAEMON_OPTIONS: Tuple[Tuple[str, ...], ...] = (
    (),
    ("--iptables=false", "--ip6tables=false", "--bridge=none"),
    ("--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs"),
)
START = 40


def _answers() -> Optional[str]:
    """Why no engine answers; None where one does."""
    import docker

    try:
        client = docker.from_env(timeout=10)
        client.ping()
        client.close()
    except Exception as error:  # whatever it is, it is the reason
        return str(error)
    return None


class Daemon:
    """An engine of our own, with its data in a folder that goes away."""

    def __init__(self, folder: Path, options: Tuple[str, ...]) -> None:
        self.folder = folder
        folder.mkdir()
        # The path of a socket may have 107 characters.
        self.socket = Path(f"/run/macatorch-{os.getpid()}.sock")
        self.log = folder / "log"
        command = ["dockerd", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")]
        command += ["--host", f"unix://{self.socket}", "--pidfile", str(folder / "pid"), *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, preexec_fn=_end_with_parent
            )
        os.environ["DOCKER_HOST"] = f"unix://{self.socket}"

    def works(self) -> bool:
        """Whether it answers and runs a container."""
        end = time.monotonic() + START
        while _answers() is not None:
            if self.process.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.2)
        return _runs_a_container(self.folder)

    def reason(self) -> str:
        telling = ("failed to start daemon", "failed to run a container", "level=fatal", "level=error")
        lines = [line for line in self.log.read_text().splitlines() if any(sign in line for sign in telling)]
        return lines[-1][-300:] if lines else "it does not answer"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.environ.pop("DOCKER_HOST", None)
        _remove(self.folder)
        if self.socket.exists():
            self.socket.unlink()


def _end_with_parent() -> None:
    """The engine ends also when the tests are killed."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _remove(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in reversed([mount for mount in mounts if mount.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", mount], check=False)
    shutil.rmtree(str(folder), ignore_errors=True)


def _runs_a_container(folder: Path) -> bool:
    """Whether a container with one static program runs; any that is on this machine will do."""
    import docker

    program = next((path for name in ("docker-init", "busybox") for path in [shutil.which(name)] if path), None)
    if program is None:
        return True
    archive = folder / "tiny.tar"
    with tarfile.open(str(archive), "w") as tar:
        tar.add(os.path.realpath(program), "program")
    client = docker.from_env(timeout=60)
    image = None
    try:
        client.api.import_image_from_file(str(archive), repository="macatorch-tiny", tag="1")
        image = client.images.get("macatorch-tiny:1")
        container = client.containers.create(image.id, ["/program", "--version"], network_mode="none")
        container.start()
        ended = container.wait(timeout=60)
        container.remove()
        return int(ended["StatusCode"]) in (0, 1)
    except Exception as error:  # whatever it is, it is the reason
        with (folder / "log").open("a") as log:
            log.write(f"failed to run a container: {error}\n")
        return False
    finally:
        if image is not None:
            client.images.remove(image.id, force=True)
        client.close()


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """A client of a working engine."""
    pytest.importorskip("docker", reason="needs the docker SDK: pip install -r requirements/image.txt")
    import docker

    daemon = None
    reason = _answers()
    if reason is not None:
        if os.environ.get("DOCKER_HOST"):
            pytest.skip(f"DOCKER_HOST names an engine that does not answer: {reason}")
        if os.geteuid() != 0:
            pytest.skip(f"no Docker engine answers ({reason}), and only root may start one")
        if not shutil.which("dockerd"):
            pytest.skip(f"no Docker engine answers ({reason}), and dockerd is not installed")
        for old in cache.folder("engine").iterdir():
            if not Path(f"/proc/{old.name.split('-')[0]}").exists():
                _remove(old)
        reasons: List[str] = []
        for number, options in enumerate(DAEMON_OPTIONS):
            daemon = Daemon(cache.folder("engine") / f"{os.getpid()}-{number}", options)
            if daemon.works():
                break
            reasons.append(f"dockerd {' '.join(options)}: {daemon.reason()}")
            daemon.stop()
            daemon = None
        if daemon is None:
            pytest.skip("no Docker engine can be started here: " + "; ".join(reasons))
    client = docker.from_env(timeout=900)
    yield client
    client.close()
    if daemon is not None:
        daemon.stop()


def factory(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The wheel factory, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "build_scripts", *arguments],
        cwd=str(CHECKOUT),
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_in(client: Any) -> List[str]:
    """Images and containers that a build must not leave."""
    label = {"label": "maca.build"}
    containers = client.api.containers(all=True, filters=label)
    images = client.api.images(all=True, filters=label) + client.api.images(filters={"dangling": True})
    return [item["Id"] for item in containers + images]


class Built(NamedTuple):
    """What the command left, and how long it took."""

    archive: Path
    checksum: Path
    contents: Path
    reference: str
    seconds: float
    client: Any


@pytest.fixture(scope="session")
def wheels() -> Path:
    """The folder with the torch and SDK wheels that the image is built from; made where they are missing."""
    system = base.of_suite(SUITE, base.load())
    given = os.environ.get("MACATORCH_UPSTREAM")
    done = factory("build", "--torch", TORCH, "--python", system.python, *(("--from", given) if given else ()))
    assert done.returncode == 0, done.stderr
    return WHEELS


@pytest.fixture(scope="session")
def bootstrap(engine: Any) -> None:
    """Skips where a base cannot be made."""
    from build_scripts.container.bootstrap import require_tools
    from build_scripts.errors import FactoryError

    try:
        require_tools(base.of_suite(SUITE, base.load()))
    except FactoryError as error:
        pytest.skip(str(error))


def _named(archive: Path, seconds: float, client: Any) -> Built:
    stem = archive.name[: -len(".container.xz")]
    checksum, contents = archive.with_name(f"{archive.name}.sha256"), archive.with_name(f"{stem}.cdx.json")
    return Built(archive, checksum, contents, stem.replace("-", ":", 1), seconds, client)


@pytest.fixture(scope="session")
def built(engine: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The image built with --bootstrap; nothing of it is in the engine yet."""
    ready = os.environ.get("MACATORCH_IMAGE_FOLDER")
    if ready:
        yield _named(next(Path(ready).glob("*.container.xz")), 0, engine)
        return
    request.getfixturevalue("bootstrap")
    request.getfixturevalue("wheels")
    output = tmp_path_factory.mktemp("image")
    started = time.monotonic()
    done = factory("image", "--torch", TORCH, "--bootstrap", SUITE, "--output", str(output))
    seconds = time.monotonic() - started
    print(done.stderr)
    assert done.returncode == 0, done.stderr
    yield _named(Path(done.stdout.split()[-1]), seconds, engine)
    shutil.rmtree(str(output), ignore_errors=True)


@pytest.fixture(scope="session")
def image(built: Built) -> Iterator[str]:
    """The name of the image, loaded from the archive."""
    with built.archive.open("rb") as file:
        loaded = built.client.images.load(file)
    assert [tag for each in loaded for tag in each.tags] == [built.reference]
    yield built.reference
    built.client.images.remove(built.reference, force=True)


class Ended(NamedTuple):
    status: int
    output: str
    seconds: float


@pytest.fixture(scope="session")
def run(engine: Any, image: str) -> Callable[..., Ended]:
    """`run(command, **options)`: the command in a container of the image without a network, as `docker run` does."""

    def run_container(command: Any, seconds: int = 300, **options: Any) -> Ended:
        settings: Dict[str, Any] = {"network_mode": "none", **options}
        started = time.monotonic()
        container = engine.containers.create(image, command, **settings)
        try:
            container.start()
            ended = container.wait(timeout=seconds)
            elapsed = time.monotonic() - started
            return Ended(int(ended["StatusCode"]), container.logs().decode(errors="replace"), elapsed)
        finally:
            container.remove(force=True)

    return run_container
