"""What a user of the image relies on, in the image that `docker load` made of the archive."""

import hashlib
import io
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import time
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Set, Tuple

import pytest

from .conftest import CHECKOUT, SUITE, TORCH, Built, left_in

INSTALL_CHECK = "import torch; print(torch.ones(2).cuda())"
INSTALL_CHECK_PRINTS = "tensor([1., 1.], device='cuda:0')"
# The limits that the image promises.
UNPACKED, ARCHIVE, START_SECONDS = 1_600_000_000, 450_000_000, 5


def python(code: str) -> list:
    return ["python", "-c", textwrap.dedent(code)]


@pytest.fixture(scope="session")
def layers(built: Built) -> Iterator[Tuple[Dict[str, Any], list]]:
    """The archive's configuration, and each layer's members."""
    found: Dict[str, Any] = {}
    with lzma.open(str(built.archive)) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if member.name.endswith(".json"):
                found[member.name] = json.loads(content.read())
            elif content is not None:
                found[member.name] = _members(content)
    manifest = found["manifest.json"][0]
    yield found[manifest["Config"]], [found[name] for name in manifest["Layers"]]


class _Hashing(io.RawIOBase):
    def __init__(self, file: Any) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.digest.update(data)
        return data


def _members(content: Any) -> Tuple[str, list]:
    """A layer's digest, and its members without their content."""
    source = _Hashing(content)
    with tarfile.open(fileobj=source, mode="r|") as layer:
        members = list(layer)
    while source.read(1 << 20):
        pass
    return f"sha256:{source.digest.hexdigest()}", members


def test_the_command_leaves_the_archive_its_checksum_and_its_contents_and_nothing_else(built: Built) -> None:
    assert re.fullmatch(
        r"mxc500-torch\d+\.\d+-py3\d+-mc\d+\.\d+\.\d+-[a-z]+[\d.]+-amd64\.container\.xz", built.archive.name
    )
    assert sorted(path.name for path in built.archive.parent.iterdir()) == sorted(
        path.name for path in (built.archive, built.checksum, built.contents)
    )
    subprocess.run(["sha256sum", "--check", "--quiet", built.checksum.name], cwd=built.archive.parent, check=True)


def test_nothing_of_the_build_is_left_in_the_engine(built: Built) -> None:
    assert left_in(built.client) == []


def test_the_build_and_the_archive_stay_within_their_limits(built: Built, layers: Any, capsys: Any) -> None:
    size = sum(member.size for _, members in layers[1] for member in members)
    with capsys.disabled():
        archive = built.archive.stat().st_size
        print(f"\n  unpacked {size / 1e9:.2f} GB, archive {archive / 1e6:.0f} MB, built in {built.seconds:.0f} s")
    assert size <= UNPACKED
    assert built.archive.stat().st_size <= ARCHIVE


def test_layers_are_canonical(layers: Any) -> None:
    config, parts = layers
    assert config["rootfs"]["diff_ids"] == [digest for digest, _ in parts]
    latest = time.mktime(time.strptime(config["created"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    for _, members in parts:
        names = [member.name.split("/") for member in members]
        assert names == sorted(names)
        assert not [member.name for member in members if member.mtime > latest or member.uname or member.gname]


def test_the_image_holds_no_leftovers(layers: Any) -> None:
    names: Set[str] = {member.name for _, members in layers[1] for member in members}
    leftovers = re.compile(
        r"opt/build|(.*/)?\.cache/|tmp/.|var/tmp/.|var/lib/apt/lists/.|var/cache/apt/.*\.(deb|bin)|run/.|proc/.|dev/."
        r"|.*\.whl$|.*/\.wh\.|root/\.(?!bashrc|profile)|etc/(resolv\.conf|hostname|.*[^-]-$)|.*/direct_url\.json"
        r"|debootstrap/.|\.dockerenv"
    )
    assert sorted(name for name in names if leftovers.match(name)) == []
    logs = [m.name for _, members in layers[1] for m in members if m.name.startswith("var/log/") and m.isfile()]
    assert logs == []


def test_no_library_of_nvidias_is_inside(layers: Any) -> None:
    names: Set[str] = {member.name for _, members in layers[1] for member in members}
    theirs = re.compile(
        r".*/lib(cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|cupti|nccl|nvrtc|nvjpeg|nvToolsExt)\b.*\.so"
    )
    found = {name for name in names if theirs.match(name)}
    ours = {name for name in found if "/mxmaca/" in name}
    assert ours and sorted(found - ours) == []


def test_the_configuration_says_what_the_image_is(engine: Any, image: str) -> None:
    facts = engine.api.inspect_image(image)
    labels = facts["Config"]["Labels"]
    names = {f"org.opencontainers.image.{word}" for word in ("title", "version", "revision", "licenses", "created")}
    assert names <= set(labels)
    assert labels["org.opencontainers.image.version"].startswith(f"{TORCH}+maca")
    assert "maca.build" not in labels
    if os.path.exists(CHECKOUT / ".git"):
        revision = labels["org.opencontainers.image.revision"]
        assert subprocess.run(["git", "cat-file", "-e", f"{revision}^{{commit}}"], cwd=CHECKOUT).returncode == 0
    assert facts["Config"]["User"] not in ("", "root", "0")
    words = json.dumps(facts).lower()
    assert not re.search(r"password|secret|token|_proxy|http://|https://", words)


def test_the_list_of_contents_names_what_is_installed(built: Built, run: Callable[..., Any]) -> None:
    bom = json.loads(built.contents.read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    listed = {component["purl"].split("?")[0] for component in bom["components"]}
    debian = run(["dpkg-query", "-W", "-f", "${Package}=${Version}\n"]).output.split()
    assert {word.split("=")[0] for word in debian} == {
        purl.split("/")[2].split("@")[0].replace("%2B", "+") for purl in listed if purl.startswith("pkg:deb/")
    }
    python_packages = json.loads(run(["python", "-m", "pip", "list", "--format=json", "--path", _site(run)]).output)
    assert {package["name"].lower().replace("_", "-") for package in python_packages} == {
        purl.split("/")[1].split("@")[0] for purl in listed if purl.startswith("pkg:pypi/")
    }
    torch = next(component for component in bom["components"] if component["name"] == "torch")
    wheel = next((CHECKOUT / "wheels").glob(f"torch-{torch['version']}-cp3{_minor(run)}-*.whl"))
    assert torch["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]


def _site(run: Callable[..., Any]) -> str:
    return str(run(python("import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])")).output.strip())


def _minor(run: Callable[..., Any]) -> str:
    return str(run(python("import sys; print(sys.version_info[1])")).output.strip())


def test_the_list_of_contents_is_valid(built: Built) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(built.contents.read_text()) is None


def test_the_install_check_prints_what_it_promises_in_time(run: Callable[..., Any], capsys: Any) -> None:
    run(["true"])
    ended = [run(python(INSTALL_CHECK)) for _ in range(2)]
    assert [each.output.strip() for each in ended] == [INSTALL_CHECK_PRINTS] * 2
    seconds = min(each.seconds for each in ended)
    with capsys.disabled():
        print(f"\n  from start to tensor in {seconds:.1f} s")
    assert seconds <= START_SECONDS * _patience()


def _patience() -> float:
    """How much slower than an idle machine this one is now, by its load."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def test_the_default_command_is_a_shell_of_a_user_with_a_home(engine: Any, image: str, run: Callable[..., Any]) -> None:
    config = engine.api.inspect_image(image)["Config"]
    assert config["Cmd"] == ["/bin/bash"]
    ended = run(["sh", "-c", "id -u; id -Gn; cd && pwd && touch there && ls; [ ! -w /usr/local/lib ] && echo kept"])
    words = ended.output.split()
    assert words[0] != "0" and "video" in words
    assert words[-3:] == ["/home/maca", "there", "kept"]


def test_the_classic_paths_hold_the_toolkit(run: Callable[..., Any]) -> None:
    ended = run(
        [
            "sh",
            "-ec",
            'test "$MACA_PATH" = /opt/maca; test "$CUCC_PATH" = /opt/maca/tools/cu-bridge; '
            'test "$CUDA_PATH" = "$CUCC_PATH"; test -f "$MACA_PATH/lib/libmcruntime.so"; '
            'test -f "$CUDA_PATH/include/cuda_runtime.h"; test -d "$CUDA_PATH/lib64"; '
            "for name in cucc nvcc cmake_maca g++ ninja cmake mx-smi; do command -v $name; done",
        ]
    )
    assert ended.status == 0, ended.output
    assert ended.output.split()[:3] == [
        "/opt/maca/tools/cu-bridge/bin/cucc",
        "/opt/maca/tools/cu-bridge/bin/nvcc",
        "/opt/maca/tools/cu-bridge/tools/cmake_maca",
    ]


def test_the_sdk_lies_in_the_image_once(layers: Any) -> None:
    copies = [m.name for _, members in layers[1] for m in members if m.name.endswith("/libmcruntime.so") and m.isfile()]
    assert len(copies) == 1


def test_device_variables_pass_through(run: Callable[..., Any]) -> None:
    variables = {"MACA_DEVICE_COUNT": "3", "MACA_DEVICE_PROFILE": "mxc-tiny"}
    ended = run(["mx-smi", "-L"], environment=variables)
    assert ended.status == 0, ended.output
    assert len(ended.output.strip().splitlines()) == 3


def test_device_nodes_and_groups_of_the_hardware_do_no_harm(run: Callable[..., Any]) -> None:
    nodes = ["/dev/null:/dev/mxcd", "/dev/zero:/dev/dri/card0"]
    ended = run(python(INSTALL_CHECK), devices=nodes, group_add=["video"])
    assert ended.output.strip() == INSTALL_CHECK_PRINTS


def test_pip_check_finds_nothing_broken(run: Callable[..., Any]) -> None:
    ended = run(["python", "-m", "pip", "check"])
    assert (ended.status, ended.output.strip()) == (0, "No broken requirements found.")


def _wheel(folder: Path, name: str, version: str, requires: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    requirement = f"Requires-Dist: {requires}\n" if requires else ""
    members = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirement}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    }
    with zipfile.ZipFile(str(folder / f"{name}-{version}-py3-none-any.whl"), "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)


def test_pip_keeps_the_torch_of_the_image(run: Callable[..., Any], tmp_path: Path) -> None:
    """A package that depends on torch, and an index with a newer torch that pip would take, if it were let."""
    tmp_path.chmod(0o755)
    _wheel(tmp_path, "needs_torch", "1.0", "torch>=2")
    _wheel(tmp_path, "needs_newer", "1.0", "torch>=99")
    _wheel(tmp_path, "torch", "99.0")
    volumes = {str(tmp_path): {"bind": "/packages", "mode": "ro"}}
    install = "python -m pip install --no-index --find-links /packages --upgrade --upgrade-strategy eager"
    used = "python -c 'import torch, needs_torch; print(torch.__version__)'"
    script = f"{install} needs_torch && {used} && {install} needs_newer"
    ended = run(["sh", "-c", script], volumes=volumes)
    assert re.search(rf"^{re.escape(TORCH)}\+maca\S+$", ended.output, re.MULTILINE), ended.output
    assert (
        ended.status != 0 and "torch>=99" in ended.output and "Successfully installed needs_newer" not in ended.output
    )


@pytest.fixture(scope="session")
def learning(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Any]) -> Path:
    """scikit-learn for the image's Python, fetched here: the containers of these tests have no network."""
    folder = tmp_path_factory.mktemp("scikit-learn")
    folder.chmod(0o755)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--dest", str(folder)]
    command += ["--only-binary=:all:", "--python-version", f"3.{_minor(run)}", "--platform", "manylinux2014_x86_64"]
    command += ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_27_x86_64", "scikit-learn"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return folder


def test_the_digits_model_trains(run: Callable[..., Any], learning: Path) -> None:
    volumes = {
        str(learning): {"bind": "/packages", "mode": "ro"},
        str(CHECKOUT / "tests" / "demo"): {"bind": "/demo", "mode": "ro"},
    }
    script = (
        "python -m pip install --quiet --no-index --find-links /packages scikit-learn && "
        "python /demo/digits.py --amp --epochs 4 --results results.json >/dev/null && cat results.json"
    )
    ended = run(["sh", "-c", script], volumes=volumes, shm_size="256m")
    assert ended.status == 0, ended.output
    results = json.loads(ended.output.strip().splitlines()[-1])
    assert results["score"] > 0.9
    assert sum(results["losses"][-10:]) < 0.3 * sum(results["losses"][:10])


CPP_EXTENSION = """
    import torch
    from torch.utils.cpp_extension import load_inline
    source = "at::Tensor scaled(const at::Tensor& x, double by) { return x * by + 1; }"
    module = load_inline("scaled", source, functions=["scaled"], verbose=False)
    print(module.scaled(torch.arange(3.0, device="cuda"), 2.0))
"""
CPP_EXTENSION_PRINTS = "tensor([1., 3., 5.], device='cuda:0')"


def test_a_cpp_extension_builds_and_runs(run: Callable[..., Any]) -> None:
    ended = run(python(CPP_EXTENSION))
    assert ended.status == 0, ended.output
    assert ended.output.strip().splitlines()[-1] == CPP_EXTENSION_PRINTS


CUDA_EXTENSION = """
    import torch
    from torch.utils.cpp_extension import load_inline
    cuda = r'''
    __global__ void scale(const float* x, float* y, int n, float by) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = x[i] * by + 1;
    }
    torch::Tensor scaled(torch::Tensor x, double by) {
      auto y = torch::empty_like(x);
      int n = x.numel();
      scale<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, by);
      return y;
    }
    '''
    header = "torch::Tensor scaled(torch::Tensor x, double by);"
    module = load_inline("scaled", header, cuda, functions=["scaled"], verbose=False)
    print(module.scaled(torch.arange(100.0, device="cuda"), 2.0)[[0, 1, 99]])
"""
CUDA_EXTENSION_PRINTS = "tensor([  1.,   3., 199.], device='cuda:0')"


def test_a_cuda_extension_builds_and_runs(run: Callable[..., Any]) -> None:
    ended = run(python(CUDA_EXTENSION), seconds=600)
    assert ended.status == 0, ended.output
    assert ended.output.strip().splitlines()[-1] == CUDA_EXTENSION_PRINTS


def test_it_works_read_only_without_a_network_for_any_user(run: Callable[..., Any]) -> None:
    options = {"read_only": True, "tmpfs": {"/tmp": "exec"}}
    for user in (None, "4242:4242"):
        ended = run(python(INSTALL_CHECK), user=user, **options)
        assert (ended.status, ended.output.strip()) == (0, INSTALL_CHECK_PRINTS), ended.output
    ended = run(python("import pathlib; home = pathlib.Path.home(); (home / 'a').touch(); print(home)"), **options)
    assert ended.output.startswith("/tmp/"), ended.output
    assert run(["touch", "/home/maca/a"], **options).status != 0


def test_bytecode_is_there_and_fits_its_sources(run: Callable[..., Any]) -> None:
    """What is not is compiled again at every start, since the user may not write it."""
    code = """
        import importlib.util, pathlib, struct, sys, sysconfig, torch
        stale, count = [], 0
        for root in (pathlib.Path(torch.__file__).parent, pathlib.Path(sysconfig.get_path("stdlib")) / "json"):
            for source in root.rglob("*.py"):
                compiled = pathlib.Path(importlib.util.cache_from_source(str(source)))
                facts = struct.unpack("<4sIII", compiled.read_bytes()[:16]) if compiled.exists() else None
                status = source.stat()
                if facts is None or facts[1:] != (0, int(status.st_mtime), status.st_size):
                    stale.append(str(source))
                count += 1
        print(count > 1000, stale)
    """
    assert run(python(code)).output.strip() == "True []"


def _stopped(engine: Any, image: str, command: list, ready: str) -> Tuple[int, str, float]:
    container = engine.containers.create(image, command, network_mode="none")
    try:
        container.start()
        end = time.monotonic() + 60
        while ready not in container.logs().decode() and time.monotonic() < end:
            time.sleep(0.1)
        started = time.monotonic()
        container.stop(timeout=30)
        return container.wait()["StatusCode"], container.logs().decode(), time.monotonic() - started
    finally:
        container.remove(force=True)


def test_a_signal_reaches_the_command(engine: Any, image: str) -> None:
    handles = python(
        """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(3)))
        print("ready", flush=True)
        time.sleep(100)
        """
    )
    status, output, _ = _stopped(engine, image, handles, "ready")
    assert (status, output.split()) == (3, ["ready", "saved"])


def test_a_command_that_knows_no_signals_ends_as_well(engine: Any, image: str) -> None:
    sleeps = python("print('ready', flush=True); import time; time.sleep(100)")
    status, _, seconds = _stopped(engine, image, sleeps, "ready")
    assert status == 143
    assert seconds < 15


def test_the_commands_exit_status_is_the_containers(run: Callable[..., Any]) -> None:
    assert run(["sh", "-c", "exit 42"]).status == 42
    assert run(["no-such-program"]).status == 127


def test_the_base_is_the_one_that_was_asked_for(run: Callable[..., Any]) -> None:
    assert f"VERSION_CODENAME={SUITE}" in run(["cat", "/etc/os-release"]).output


def test_the_engine_holds_the_layers_of_the_archive(engine: Any, image: str, layers: Any) -> None:
    assert engine.api.inspect_image(image)["RootFS"]["Layers"] == layers[0]["rootfs"]["diff_ids"]
