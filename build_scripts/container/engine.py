"""The Docker engine, through the docker SDK: bases, builds, and leaving nothing behind.

Every image and container of a build carries a label. What a build leaves, also one that was killed, is found by it and
removed: by this build at its end, or by the next one.
"""

import hashlib
import json
import tarfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Optional

from .. import cache
from ..errors import FactoryError
from ..progress import note

try:
    from docker.errors import APIError, DockerException, ImageNotFound, NotFound
    from docker.utils import parse_repository_tag
    from requests.exceptions import RequestException

    from docker import from_env  # type: ignore[attr-defined]
except ImportError:  # said by connect()
    from_env = None

LABEL = "maca.build"
TIMEOUT = 900
# How long, in seconds, a step that was interrupted may take to end.
PATIENCE = 30


class Saved(NamedTuple):
    """An image as the engine gives it out."""

    config: Dict[str, Any]
    layers: List[Path]


class Engine:
    def __init__(self, client: Any) -> None:
        self._client, self._api = client, client.api
        self.build_id = hashlib.sha256(str(cache.root()).encode()).hexdigest()[:12]
        self.log: List[str] = []

    @property
    def architecture(self) -> str:
        """As Docker names it: ``amd64``."""
        return str(self._api.version()["Arch"])

    @property
    def store(self) -> Optional[Path]:
        """The folder where the engine keeps images, if it is on this machine."""
        path = Path(self._api.info()["DockerRootDir"])
        return path if path.is_dir() and self._api.base_url.startswith("http+docker") else None

    # Bases

    def base(self, image: str) -> str:
        """The id of an image that is there, or is fetched now."""
        try:
            found = self._client.images.get(image)
        except ImageNotFound:
            note(f"Fetching the base {image} …")
            repository, tag = parse_repository_tag(image)
            try:
                found = self._client.images.pull(repository, tag=tag or "latest")
            except (DockerException, RequestException) as error:
                raise FactoryError(
                    f"The base {image} is not on this machine, and could not be fetched: {_said(error)}",
                    "Check its name and the network, `docker load` it, or use --bootstrap SUITE.",
                ) from error
        except APIError as error:
            raise FactoryError(f"The base '{image}' is no image's name: {_said(error)}") from error
        return str(found.id)

    def import_base(self, path: Path) -> str:
        """A root file system as an image. Returns its id."""
        with path.open("rb") as file:
            pieces = iter(lambda: file.read(cache.CHUNK), b"")
            answer = self._api.import_image_from_stream(pieces, changes=[f"LABEL {LABEL}={self.build_id}"])
        last = json.loads(answer.strip().splitlines()[-1])
        if "error" in last:
            raise self._failure("Importing the base", str(last["error"]))
        return str(last["status"])

    def read_file(self, image: str, path: str) -> Optional[str]:
        """A text file of an image, links followed; None where there is none."""
        container = self._api.create_container(image, command=["-"], labels={LABEL: self.build_id})
        try:
            for _ in range(4):
                try:
                    stream, status = self._api.get_archive(container["Id"], path)
                except NotFound:
                    return None
                if status.get("linkTarget") and status["linkTarget"] != path:
                    path = str(status["linkTarget"])
                    continue
                with tarfile.open(fileobj=_Stream(stream), mode="r|") as archive:  # type: ignore[call-overload]
                    for member in archive:
                        content = archive.extractfile(member)
                        return content.read().decode(errors="replace") if content else None
            return None
        finally:
            self._api.remove_container(container["Id"], force=True)

    # Building

    def build(self, context: "IO[bytes]", target: str, arguments: Dict[str, str]) -> str:
        """Build one stage of the Dockerfile in ``context``, a tar. Returns the image's id."""
        context.seek(0)
        image = ""
        try:
            for event in self._api.build(
                fileobj=context,
                custom_context=True,
                target=target,
                buildargs={**arguments, "BUILD": self.build_id},
                network_mode="host",
                rm=True,
                forcerm=True,
                decode=True,
            ):
                self.log += [line for line in str(event.get("stream", "")).splitlines() if line.strip()]
                if "error" in event:
                    raise self._failure("Building the image", str(event["error"]))
                image = event.get("aux", {}).get("ID", image)
        except (DockerException, RequestException) as error:
            raise self._failure("Building the image", _said(error)) from error
        return str(image)

    def _failure(self, what: str, error: str) -> FactoryError:
        if "no space left" in error.lower() or any("no space left" in line.lower() for line in self.log[-20:]):
            return FactoryError(
                f"{what} failed: no space is left where the engine keeps its images.",
                "Free some (docker system df, docker image prune), and run the command again.",
            )
        lines = [*self.log[-12:], error.strip()]
        return FactoryError(f"{what} failed: " + "\n    ".join(lines))

    def layer_count(self, image: str) -> int:
        return len(self._api.inspect_image(image)["RootFS"]["Layers"])

    def save(self, image: str, folder: Path) -> Saved:
        """The image's configuration, and its layers as files in ``folder``, the lowest first."""
        files: Dict[str, Path] = {}
        with tarfile.open(fileobj=_Stream(self._api.get_image(image)), mode="r|") as archive:  # type: ignore[call-overload]
            for number, member in enumerate(archive):
                if member.issym() or member.islnk():
                    base = Path(member.name).parent
                    files[member.name] = Path(_resolve(base, member.linkname) if member.issym() else member.linkname)
                    continue
                content = archive.extractfile(member)
                if content is None:
                    continue
                path = folder / f"saved-{number}"
                with path.open("wb") as out:
                    for chunk in iter(lambda content=content: content.read(cache.CHUNK), b""):  # type: ignore[misc]
                        out.write(chunk)
                files[member.name] = path
        # A layer that occurs twice is a link to its first occurrence.
        for name, path in files.items():
            if not path.is_absolute():
                files[name] = files[str(path)]
        manifest = json.loads(files["manifest.json"].read_text())[0]
        config = json.loads(files[manifest["Config"]].read_text())
        return Saved(config, [files[name] for name in manifest["Layers"]])

    # Cleaning up

    @contextmanager
    def cleaned(self) -> Iterator[None]:
        """Remove at the end what the build made in the engine; before, what one that was killed has left."""
        self.clean()
        try:
            yield
        finally:
            self.clean()

    def clean(self) -> None:
        """Remove every container and image of a build of ours. A step that still runs is ended first."""
        label = {"label": f"{LABEL}={self.build_id}"}
        left, waited = -1, 0.0
        while waited < PATIENCE:
            containers = self._api.containers(all=True, filters=label)
            images = self._api.images(all=True, filters=label)
            if not containers and not images:
                return
            if len(containers) + len(images) != left:
                left, waited = len(containers) + len(images), 0.0
            else:
                time.sleep(0.5)
                waited += 0.5
            for container in containers:
                self._try(self._api.remove_container, container["Id"], force=True)
            # With an image go those that it was made from, unless somebody else needs them.
            parents = {image["ParentId"] for image in images}
            for image in images:
                if image["Id"] not in parents:
                    self._try(self._api.remove_image, image["Id"])
        note("Some intermediate images could not be removed; see `docker images --all --filter label=maca.build`.")

    @staticmethod
    def _try(action: Any, *arguments: Any, **options: Any) -> None:
        with suppress(DockerException, RequestException):
            action(*arguments, **options)


def connect() -> Engine:
    """The engine that DOCKER_HOST names, or this machine's."""
    if from_env is None:
        raise FactoryError(
            "The docker SDK for Python is not installed.",
            "python -m pip install -r requirements/image.txt, or `make image`.",
        )
    try:
        client = from_env(timeout=TIMEOUT)
        client.ping()
    except (DockerException, RequestException) as error:
        raise FactoryError(
            f"No Docker engine answers: {_said(error)}",
            "Start one (systemctl start docker, or dockerd as root), or name one with DOCKER_HOST. Who is not root may "
            "have to be in the group docker.",
        ) from error
    return Engine(client)


def _said(error: BaseException) -> str:
    """What an error says, without the layers of exceptions that it came through."""
    text = str(getattr(error, "explanation", None) or error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _resolve(folder: Path, link: str) -> str:
    parts: List[str] = []
    for part in (folder / link).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


class _Stream:
    """A file to read over the pieces that the engine sends."""

    def __init__(self, pieces: Any) -> None:
        self._pieces, self._rest = iter(pieces), b""

    def read(self, size: int) -> bytes:
        found = [self._rest]
        missing = size - len(self._rest)
        while missing > 0:
            piece = next(self._pieces, None)
            if piece is None:
                break
            found.append(piece)
            missing -= len(piece)
        data = b"".join(found)
        self._rest = data[size:]
        return data[:size]
