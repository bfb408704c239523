"""A checkout in small: libraries, upstream's wheel and a release of a few kilobytes that builds in seconds."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Dict, List, Optional, Sequence

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from build_scripts import platforms  # noqa: E402
from build_scripts.factory.stripped import C_SHIMS  # noqa: E402
from build_scripts.factory.wheel import record_hash  # noqa: E402

DEVICE_CODE_SIZE = 3 * 4096 + 1234


def compiler(architecture: str = "") -> str:
    """A C compiler, for another architecture if that is named; empty where there is none."""
    if architecture:
        return shutil.which(f"{platforms.architecture(architecture).triplet}-gcc") or ""
    return shutil.which("gcc") or shutil.which("cc") or ""


def patchelf() -> str:
    from build_scripts.factory.patchelf import find

    return find()[0]


def compile_library(
    folder: Path, name: str, source: str, *options: str, language: str = "c", architecture: str = ""
) -> Path:
    """A shared library of that file name."""
    folder.mkdir(exist_ok=True)
    target = folder / name
    command = [compiler(architecture), "-x", language, "-shared", "-fPIC", "-O1", "-o", str(target), "-"]
    command += [f"-Wl,-soname,{name}", f"-L{folder}", *options]
    done = subprocess.run(command, input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return target


# A library laid out as upstream's: device code amid read-only data, functions that point into it and past it.
DEVICE_SOURCE = """
extern const unsigned char device_code[], device_code_end[], relocatable_code[];
__asm__(".section .nv_fatbin,\\"a\\"\\n.balign 8\\n.global device_code\\n.hidden device_code\\ndevice_code:\\n"
        ".quad 0x00100001ba55ed50\\n.fill {words}, 8, 0x0123456789abcdef\\n"
        ".global device_code_end\\n.hidden device_code_end\\ndevice_code_end:\\n.byte 7\\n.previous\\n"
        ".section __nv_relfatbin,\\"a\\"\\n.balign 8\\n.global relocatable_code\\n.hidden relocatable_code\\n"
        "relocatable_code:\\n.fill {words}, 8, -1\\n.previous\\n");
static const unsigned char *wrapper __attribute__((section(".nvFatBinSegment"), used)) = device_code;
static const char text[] = "what stands in .rodata";
static int initialised = 41;
static int *pointer = &initialised;
__thread int local = 5;
int answer(void) {{ return *pointer + 1; }}
int thread_local_value(void) {{ return local; }}
const char *read_only(void) {{ return text; }}
int device_byte(long at) {{ return device_code[at]; }}
long device_size(void) {{ return device_code_end - device_code; }}
int through_wrapper(void) {{ return wrapper[96]; }}
int relocatable_byte(void) {{ return relocatable_code[5000]; }}
"""


def device_library(
    folder: Path,
    name: str = "libdevice.so",
    *options: str,
    extra: str = "",
    through_patchelf: bool = True,
    architecture: str = "",
) -> Path:
    """A library with device code, passed through patchelf as upstream's are."""
    source = DEVICE_SOURCE.format(words=DEVICE_CODE_SIZE // 8) + extra
    library = compile_library(folder, name, source, *options, architecture=architecture)
    if through_patchelf:
        # Twice, and a long path: patchelf leaves room behind the program headers when it moves sections.
        for rpath in ("$ORIGIN/../../nvidia/one/lib:" * 40, "$ORIGIN/../../nvidia/cudnn/lib:" * 400 + "$ORIGIN"):
            subprocess.run([patchelf(), "--force-rpath", "--set-rpath", rpath, str(library)], check=True)
    return library


def write_zip(path: Path, members: Dict[str, bytes], executables: Sequence[str] = ()) -> Path:
    """A plain wheel of those members, with a RECORD of its own."""
    dist_info = next((name.split("/")[0] for name in members if ".dist-info/" in name), "x-1.dist-info")
    rows = [f"{n},{record_hash(hashlib.sha256(c).digest())},{len(c)}" for n, c in members.items()]
    with zipfile.ZipFile(str(path), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, f"{dist_info}/RECORD": "\n".join(rows).encode()}.items():
            info = zipfile.ZipInfo(name, (2024, 1, 2, 3, 4, 6))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name in executables else 0o100664) << 16
            archive.writestr(info, content)
    return path


METADATA = """Metadata-Version: 2.1
Name: torch
Version: 9.9.0
Requires-Python: >=3.8.0
Requires-Dist: filelock
Requires-Dist: nvidia-cublas-cu12 (==12.4.5.8) ; platform_system == "Linux"
Requires-Dist: cuda-bindings<14,>=13.0.3; platform_system == "Linux"
Requires-Dist: triton (==3.2.0) ; platform_system == "Linux" and platform_machine == "x86_64"
Provides-Extra: optree
Requires-Dist: optree (>=0.13.0) ; extra == 'optree'

A description: with a colon.
"""
VERSION_PY = "__version__ = '9.9.0+cu124'\ncuda = '12.4'\n"
INIT_PY = "import os\n\n\ndef load():\n    pass\n"


class SmallRelease:
    """A checkout in small: one release with one wheel of a few kilobytes, its patches, SDK and operators."""

    def __init__(self, folder: Path, wheel: Path, architecture: str = "x86_64") -> None:
        self.checkout, self.wheel, self.architecture = folder, wheel, architecture
        self.output = folder / "wheels"
        self.write_table()

    def write_table(self, sha256: Optional[str] = None) -> None:
        text = (CHECKOUT / "build_scripts" / "releases.toml").read_text(encoding="utf-8")
        head = text[: text.index("\n[[release]]") + 1]
        digest = sha256 or hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        row = f'python = "3.11", size = {self.wheel.stat().st_size}, sha256 = "{digest}", file = "{self.wheel.name}"'
        release = (
            f'[[release]]\ntorch = "9.9.0"\ncuda = "12.4"\ncxx11_abi = 1\ncompanions = {{ triton = "0.9.9" }}\n'
            f"wheels = [{{ {row} }}]\n"
        )
        self.table.parent.mkdir(exist_ok=True)
        self.table.write_text(head + release, encoding="utf-8")

    @property
    def table(self) -> Path:
        return self.checkout / "build_scripts" / "releases.toml"

    def run(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """The factory on this checkout, in a process of its own."""
        environment = {**os.environ, **variables}
        command = [sys.executable, "-m", "build_scripts", *arguments]
        return subprocess.run(
            command, cwd=str(self.checkout), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def build(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        given = () if "--from" in arguments else ("--from", str(self.wheel))
        chosen = ("--torch", "9.9.0", "--python", "3.11", "--arch", self.architecture)
        return self.run("build", *chosen, *given, *arguments, **variables)

    @property
    def built(self) -> Path:
        return self.output / f"torch-9.9.0+maca1.0.0-cp311-cp311-linux_{self.architecture}.whl"

    @property
    def sdk(self) -> Path:
        return self.output / f"mxmaca-1.0.0-py3-none-linux_{self.architecture}.whl"

    def leftovers(self) -> List[str]:
        """What a build that failed must not leave: wheels, parts of wheels, intermediate files."""
        cache = Path(os.environ["MACATORCH_CACHE"])
        found = [*self.output.glob("*.whl"), *self.output.glob(".*.part"), *cache.glob("work/*")]
        return [path.name for path in found]


SDK_CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(sdk C CXX)
add_library(cudart SHARED cudart.c)
set_target_properties(cudart PROPERTIES PREFIX "" OUTPUT_NAME libcudart.so.12 SUFFIX "" NO_SONAME ON)
target_link_options(cudart PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cudart.map -Wl,-soname,libcudart.so.12)
install(TARGETS cudart DESTINATION mxmaca/lib/cuda12)
install(FILES python/__init__.py VERSION DESTINATION mxmaca)
"""
OPERATORS_CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(macatorch CXX)
add_library(macatorch SHARED csrc/operators.cpp)
if(NOT EXISTS ${TORCH_DIR}/include/torch.h OR NOT EXISTS ${MXMACA_DIR}/VERSION)
  message(FATAL_ERROR "error: no headers")
endif()
target_include_directories(macatorch PRIVATE ${TORCH_DIR}/include)
add_library(macatorch_autograd SHARED csrc/autograd/engine.cpp)
"""


def small_release(folder: Path, architecture: str = "") -> SmallRelease:
    """A release that builds in seconds, in an empty folder: ``checkout`` and upstream's wheel.

    ``architecture``: another one than this machine's.
    """
    compiled = folder / "compiled"
    library_of = partial(compile_library, architecture=architecture)
    cudart = "int cudaMalloc(void) { return 0; }\nint cudaFree(void) { return 0; }\n"
    script = folder / "cudart.map"
    script.write_text("libcudart.so.12 { global: *; };\n")
    library_of(compiled, "libcudart.so.12", cudart, f"-Wl,--version-script={script}")
    library_of(compiled, "libtorch_cpu.so", "int cpu(void) { return 1; }\nint execute(void) { return 3; }\n")
    uses = "extern int cudaMalloc(void);\nint uses_cuda(void) { return cudaMalloc(); }\n"
    uses += "int aoti_torch_cuda_sort(void) { return 1; }\n"
    needed = ("-l:libcudart.so.12", "-l:libtorch_cpu.so")
    cuda = device_library(compiled, "libtorch_cuda.so", *needed, extra=uses, architecture=architecture)
    torch = library_of(
        compiled, "libtorch.so", "int torch(void) { return 2; }", "-Wl,--no-as-needed", "-l:libtorch_cuda.so"
    )
    calls = "extern int execute(void);\nint calls(void) { return execute(); }\n"
    python = library_of(compiled, "libtorch_python.so", calls, "-l:libtorch_cpu.so")
    members = {
        "torch/__init__.py": INIT_PY.encode(),
        "torch/version.py": VERSION_PY.encode(),
        "torch/include/torch.h": b"#define TORCH 9\n",
        C_SHIMS: b"AOTI_TORCH_EXPORT AOTITorchError aoti_torch_cuda_sort(void);\n",
        "torch/bin/ptxas": b"NVIDIA's",
        "torch/lib/libtorch.so": torch.read_bytes(),
        "torch/lib/libtorch_cpu.so": (torch.parent / "libtorch_cpu.so").read_bytes(),
        "torch/lib/libtorch_cuda.so": cuda.read_bytes(),
        "torch/lib/libtorch_python.so": python.read_bytes(),
        "torch-9.9.0.dist-info/METADATA": METADATA.encode(),
        "torch-9.9.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
        "torch-9.9.0.dist-info/top_level.txt": b"torch\n",
        "torch-9.9.0.dist-info/entry_points.txt": b"[console_scripts]\ntorchrun = torch:load\n",
    }
    platform = f"manylinux_2_28_{architecture}" if architecture else "manylinux1_x86_64"
    wheel = write_zip(folder / f"torch-9.9.0-cp311-cp311-{platform}.whl", members)
    checkout = folder / "checkout"
    shutil.copytree(str(CHECKOUT / "build_scripts"), str(checkout / "build_scripts"))
    files = {
        "cu_bridge/VERSION": "1.0.0\n",
        "cu_bridge/CMakeLists.txt": SDK_CMAKE,
        "cu_bridge/cudart.c": cudart,
        "cu_bridge/cudart.map": script.read_text(),
        "cu_bridge/python/__init__.py": '__version__ = "1.0.0"\n',
        "cu_bridge/python/METADATA.in": "Metadata-Version: 2.1\nName: mxmaca\nVersion: @VERSION@\n",
        "macatorch/CMakeLists.txt": OPERATORS_CMAKE,
        "macatorch/csrc/operators.cpp": (
            '#include <torch.h>\nextern "C" int operators() { return TORCH; }\n'
            'extern "C" int aoti_torch_cuda_sort() { return 2; }\n'
        ),
        "macatorch/csrc/autograd/engine.cpp": 'extern "C" int execute() { return 4; }\n',
        "macatorch/macatorch/__init__.py": "def preload() -> None:\n    pass\n",
        "patches/9.9.0/series": "0001-version.patch\n0002-load.patch # why\n",
        "patches/9.9.0/0001-version.patch": (
            "The version names the distribution.\n\n--- a/torch/version.py\n+++ b/torch/version.py\n@@ -1,2 +1,3 @@\n"
            "-__version__ = '9.9.0+cu124'\n+__version__ = '9.9.0+maca@MACA_VERSION@'\n cuda = '12.4'\n"
            "+maca = '@MACA_VERSION@'\n"
        ),
        "patches/9.9.0/0002-load.patch": (
            "--- a/torch/__init__.py\n+++ b/torch/__init__.py\n@@ -3,3 +3,3 @@\n \n def load():\n-    pass\n"
            "+    return os.name\n"
        ),
    }
    for name, text in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text, encoding="utf-8")
    return SmallRelease(checkout, wheel, architecture or "x86_64")
