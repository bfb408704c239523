"""From the command line to commands of the host compiler and the linker."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import messages, objects, rewriting, toolkit
from .errors import CuccError
from .options import Options, describe, parse
from .rewriting import bodies
from .rewriting.source import Source as Text
from .rewriting.variables import CONSTANT_INITIALISERS

CUDA, CXX, C, ASSEMBLER, OBJECT = "cu", "c++", "c", "assembler", "object"
LANGUAGES = {
    ".cu": CUDA,
    ".cuh": CUDA,
    ".cpp": CXX,
    ".cc": CXX,
    ".cxx": CXX,
    ".c++": CXX,
    ".C": CXX,
    ".ii": "c++-cpp-output",
    ".c": C,
    ".s": ASSEMBLER,
    ".S": "assembler-with-cpp",
}
# On the command line and not in a header, because for a system header's macro the preprocessor writes line markers into
# the middle of declarations.
SPECIFIERS = tuple(
    f"__{word}__=__mxmaca_{word}__" for word in ("device", "global", "shared", "constant", "managed")
) + (
    "__launch_bounds__(...)=__mxmaca_launch_bounds__(__VA_ARGS__)",
    "__forceinline__=inline __attribute__((always_inline))",
    "__align__(n)=__attribute__((aligned(n)))",
    "__grid_constant__=",
)
# The warnings that rewriting finds, by kind: the flag that asks for each.
OWN_WARNINGS = {"default-stream-launch": "warn_default_stream", "missing-launch-bounds": "warn_launch_bounds"}
TIME_HEADING = "source file name , phase name , phase input files , phase output file , arch , tool, metric , unit"
# Warnings that the optimiser finds by the paths it sees: in the device pass, which is optimised whatever -O says, they
# would speak of host code that the host pass is silent about.
BY_PATHS = (
    *("maybe-uninitialized", "array-bounds", "stringop-overflow", "stringop-overread", "restrict", "nonnull"),
    *("null-dereference", "free-nonheap-object", "dangling-pointer", "use-after-free", "infinite-recursion"),
)
# What nvcc tells of extended lambdas: here every lambda can be called on both sides, with its return type kept.
CLOSURE_TYPES = (
    "__nv_is_extended_device_lambda_closure_type(T)=false",
    "__nv_is_extended_device_lambda_with_preserved_return_type(T)=false",
    "__nv_is_extended_host_device_lambda_closure_type(T)=__is_class(T)",
)
# The device's compute capability. Code for an older one runs on it as well.
CAPABILITY = 80
PREAMBLE_END = """
extern "C" const mcModuleTable __mxmaca_table_{identity} __attribute__((visibility("hidden")));
static mcModule_t __mxmaca_module;
__attribute__((constructor(101))) static void __mxmaca_load() {{
  __mxmaca_module = __cudaModuleLoad(&__mxmaca_table_{identity});
}}
__attribute__((destructor(101))) static void __mxmaca_unload() {{ __cudaModuleUnload(__mxmaca_module); }}
"""


class Failed(Exception):
    """A tool has failed and said why; its exit status."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Source(NamedTuple):
    """An input file and what it is."""

    path: str
    language: str


class Driver:
    """One run of the compiler."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.major = toolkit.cuda_major()
        self.compiler = self._host_compiler()
        self._clang: Optional[bool] = None
        self.folder = Path()
        self.times: List[str] = []
        self.output = ""  # what is being made

    # ---- Tools ------------------------------------------------------------------------------------------------------

    def _host_compiler(self) -> str:
        chosen = self.options.value("host_compiler") or os.environ.get("NVCC_CCBIN", "")
        # The compiler that the user's other sources are compiled with; of `ccache g++` the last word.
        own = shlex.split(os.environ.get("CXX", ""))
        if not chosen and own and shutil.which(own[-1]):
            chosen = own[-1]
        if chosen:
            path = Path(chosen)
            if path.is_dir():
                chosen = str(path / "g++")
            # The C driver does not link the C++ library.
            base = os.path.basename(chosen)
            if base in ("gcc", "cc", "clang"):
                better = chosen[: len(chosen) - len(base)] + {"gcc": "g++", "cc": "c++", "clang": "clang++"}[base]
                chosen = better if shutil.which(better) else chosen
        found = (
            shutil.which(chosen) if chosen else next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
        )
        if found is None:
            raise CuccError(
                f"cucc: fatal: no host compiler: {chosen or 'g++'} was not found. "
                "Install GCC 9 or later (apt install g++), or name one with -ccbin."
            )
        return found

    @property
    def is_clang(self) -> bool:
        if self._clang is None:
            done = subprocess.run([self.compiler, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._clang = b"clang" in done.stdout
        return self._clang

    def warn(self, text: str, kind: str = "", where: str = "cucc") -> None:
        """Say a warning of cucc's own; it is an error if -Werror names its kind.

        Raises:
            CuccError: it is one.
        """
        kinds = self.options.all("errors")
        if kind in kinds or "all-warnings" in kinds:
            raise CuccError(f"{where}: error: {text} [-Werror {kind if kind in kinds else 'all-warnings'}]")
        if not self.options.flag("no_warnings"):
            print(f"{where}: warning: {text}", file=sys.stderr)

    def show(self, command: Sequence[str]) -> None:
        if self.options.flag("verbose") or self.options.flag("dry_run"):
            print("#$ " + " ".join(shlex.quote(str(part)) for part in command), file=sys.stderr)

    def run(self, command: Sequence[str]) -> None:
        text = self.capture(command)
        if text:
            sys.stderr.write(text)

    def capture(self, command: Sequence[str], phase: str = "", source: str = "") -> str:
        """Run a tool and return what it said on stderr. -time names its phase.

        Raises:
            Failed: its exit status is not 0.
        """
        self.show(command)
        if self.options.flag("dry_run"):
            return ""
        try:
            begin = time.monotonic()
            done = subprocess.run([str(part) for part in command], stderr=subprocess.PIPE, stdout=None)
            self.timed(phase or os.path.basename(str(command[0])), time.monotonic() - begin, source)
        except OSError as error:
            raise CuccError(f"cucc: fatal: {command[0]}: {error.strerror}") from None
        text = done.stderr.decode("utf-8", "replace")
        if done.returncode:
            if not text:
                text = f"cucc: error: {command[0]} ended with status {done.returncode} and no message\n"
            raise Failed(done.returncode if done.returncode > 0 else 1, text)
        return text

    def timed(self, phase: str, seconds: float, source: str = "") -> None:
        self.times.append(f"{source} , {phase} , {source} , {self.output} , , cucc , {seconds * 1000:.4f} , ms")

    def _write_times(self) -> None:
        name = self.options.value("time")
        if not name or self.options.flag("dry_run"):
            return
        if name == "-":
            print("\n".join([TIME_HEADING, *self.times]))
            return
        try:
            with open(name, "a", encoding="utf-8") as file:
                heading = [TIME_HEADING] if file.tell() == 0 else []
                file.writelines(line + "\n" for line in [*heading, *self.times])
        except OSError as error:
            raise CuccError(f"cucc: fatal: -time: {name}: {error.strerror}") from None

    # ---- What is asked for ------------------------------------------------------------------------------------------

    def main(self) -> int:
        options = self.options
        if options.flag("version"):
            print(toolkit.version_text(self.major), end="")
            return 0
        if options.flag("help"):
            print(describe())
            return 0
        if options.flag("list_architectures") or options.flag("list_codes"):
            both = options.flag("list_architectures") and options.flag("list_codes")
            one = "compute_80" if options.flag("list_architectures") else "sm_80"
            print("arch=compute_80,code=sm_80" if both else one)
            return 0
        sources = [Source(path, self._language(path, given)) for path, given in options.inputs]
        if not sources:
            raise CuccError("cucc: fatal: No input files specified; use option --help for more information")
        for source in sources:
            missing = not os.path.exists(source.path) and source.path != "-" and not source.path.startswith("-l")
            if missing and not options.flag("dry_run") and not options.flag("clean"):
                raise CuccError(f"cucc: fatal: {source.path}: No such file or directory")
        if options.flag("verbose") or options.flag("dry_run"):
            self._show_setting()
        if options.flag("clean"):
            return self._clean(sources)
        parent = None
        if options.flag("beside_output") and self._objects_only():
            parent = os.path.dirname(os.path.abspath(options.value("output") or sources[0].path))
        try:
            temporary = tempfile.TemporaryDirectory(prefix="cucc-", dir=parent)
        except OSError as error:
            raise CuccError(f"cucc: fatal: no folder for intermediate files: {error}") from None
        with temporary as folder:
            self.folder = Path(folder)
            status = self._make(sources)
        self._write_times()
        return status

    def _objects_only(self) -> bool:
        return any(map(self.options.flag, ("compile", "device_c", "device_w")))

    def _clean(self, sources: Sequence[Source]) -> int:
        """Remove what the same command without -clean makes."""
        options, names = self.options, []
        made = [source for source in sources if source.language != OBJECT]
        if self._objects_only():
            names = [options.value("output") or self._beside(source.path, ".o") for source in made]
            for source in made:
                flags = self._dependency_flags(source, only=False)
                names += [flags[at + 1] for at, flag in enumerate(flags) if flag == "-MF"]
        elif any(map(options.flag, ("preprocess", "dependencies", "user_dependencies"))):
            names = [name for name in (options.value("output"), options.value("dependency_file")) if name]
        else:
            names = [self._linked_name(sources)]
        if options.flag("keep"):
            names += [str(name) for source in made for name in self._kept(source)]
        for name in names:
            if options.flag("verbose") or options.flag("dry_run"):
                self.show(["rm", name])
            if os.path.isfile(name) and not options.flag("dry_run"):
                os.remove(name)
        return 0

    def _linked_name(self, sources: Sequence[Source]) -> str:
        options = self.options
        default = "a.out"
        if options.flag("library"):
            default = "a.a"
        elif options.flag("relocatable_link"):
            default = "a.o"
        elif options.flag("device_link"):
            default = "a_dlink.o"
        elif options.flag("cubin") or options.flag("fatbin"):
            default = self._beside(sources[0].path, ".cubin" if options.flag("cubin") else ".fatbin")
        return options.value("output") or default

    def _kept(self, source: Source) -> List[Path]:
        """The intermediate files that -keep keeps: both passes' text and object."""
        folder, stem = Path(self.options.value("keep_directory") or "."), Path(source.path).stem
        return [folder / f"{stem}.{name}{suffix}" for name in ("device", "host") for suffix in (".ii", ".o")]

    def _show_setting(self) -> None:
        top = toolkit.tree(self.major) if toolkit.tree(self.major).is_dir() else toolkit.root()
        for line in (
            "_NVVM_BRANCH_=nvvm",
            "_SPACE_= ",
            "_CUDART_=cudart",
            f"_HERE_={top / 'bin'}",
            f"_THERE_={top / 'bin'}",
            "_TARGET_SIZE_=",
            "_TARGET_DIR_=",
            "_TARGET_SIZE_=64",
            f"TOP={top}",
            f'INCLUDES="-I{top / "include"}"  ',
            # CMake takes the line that holds this text for the link line.
            "LIBRARIES=  " + shlex.quote(f"-L{top / 'lib64'}"),
            "CUDAFE_FLAGS=",
            "PTXAS_FLAGS=",
        ):
            print("#$ " + line, file=sys.stderr)

    def _make(self, sources: List[Source]) -> int:
        options = self.options
        objects_only = self._objects_only()
        if options.flag("preprocess") or options.flag("dependencies") or options.flag("user_dependencies"):
            for source in sources:
                self.run(
                    self._preprocess_command(source, device=False, output=options.value("output") or None, only=True)
                )
            return 0
        if options.flag("device_link"):
            return self._device_link(sources)
        image = options.flag("cubin") or options.flag("fatbin")
        compiled: Dict[str, str] = {}
        to_compile = [source for source in sources if source.language != OBJECT]
        if objects_only and options.value("output") and len(to_compile) > 1:
            raise CuccError(
                "cucc: fatal: A single input file is required for a non-link phase when an outputfile is specified"
            )
        for source in to_compile:
            if objects_only:
                output = options.value("output") or self._beside(source.path, ".o")
            else:
                output = str(self.folder / f"{len(compiled)}.{Path(source.path).stem}.o")
            # What becomes a module of its own shows its variables to cuModuleGetGlobal.
            alone = not objects_only and len(to_compile) == 1
            self._compile(source, output, force_pic=image, exported=alone)
            compiled[source.path] = output
        if objects_only:
            return 0
        output = self.output = self._linked_name(sources)
        if options.flag("library"):
            archiver = options.value("archiver") or "ar"
            parts = [compiled.get(source.path, source.path) for source in sources]
            self.run([archiver, "rcs", *options.all("archive_options"), output, *parts])
            return 0
        if options.flag("relocatable_link"):
            parts = [compiled.get(part, part) for part in options.link_order]
            flags = [*self._shared_flags(), *(part for option in options.linker for part in ("-Xlinker", option))]
            self.run([self.compiler, "-r", "-nostdlib", *flags, *parts, "-o", output])
            return 0
        self._link(compiled, output, shared=image or options.flag("shared"))
        if options.flag("run") and not options.flag("dry_run"):
            return subprocess.call([os.path.abspath(output), *options.all("run_arguments")])
        return 0

    def _beside(self, path: str, suffix: str) -> str:
        folder = self.options.value("output_directory")
        return os.path.join(folder, Path(path).stem + suffix)

    @staticmethod
    def _language(path: str, given: str) -> str:
        if given:
            return {"cu": CUDA, "c": C, "c++": CXX}[given]
        suffix = Path(path).suffix
        if suffix in LANGUAGES:
            return LANGUAGES[suffix]
        if suffix in (".o", ".obj", ".a", ".lib") or ".so" in Path(path).name:
            return OBJECT
        if suffix in (".ptx", ".cubin", ".fatbin"):
            raise CuccError(f"cucc: fatal: {path}: device code for NVIDIA's hardware cannot be used")
        raise CuccError(f"cucc: fatal: Don't know what to do with '{path}'")

    # ---- Flags ------------------------------------------------------------------------------------------------------

    def _architecture(self) -> int:
        """`__CUDA_ARCH__`: the highest that was asked for and that the device can run."""
        texts = self.options.all("architecture") + self.options.all("code") + self.options.all("generate_code")
        numbers = []
        for text in texts:
            for word in text.replace("[", ",").replace("]", ",").replace("=", ",").split(","):
                digits = word.partition("_")[2].rstrip("af")
                if word.startswith(("sm_", "compute_", "lto_")) and digits.isdigit():
                    numbers.append(int(digits))
        fit = [number for number in numbers if number <= CAPABILITY]
        if numbers and not fit:
            self.warn(
                f"the device has compute capability 8.0; code for sm_{min(numbers)} would not run on it, so it is "
                "compiled for sm_80"
            )
        return max(fit) * 10 if fit else CAPABILITY * 10

    def _relocatable(self) -> bool:
        options = self.options
        return options.value("relocatable") == "true" or any(map(options.flag, ("device_c", "relocatable_link", "lto")))

    def _macros(self, device: bool, cuda: bool) -> List[str]:
        options = self.options
        release, build = toolkit.RELEASES[self.major]
        macros = [f"MXMACA_CUDA_MAJOR={self.major}", "__NVCC__=1"]
        if cuda:
            macros += ["__MXMACA_CUCC__=1", "__CUDACC__=1", f"__CUDACC_VER_MAJOR__={self.major}"]
            macros += [f"__CUDACC_VER_MINOR__={release.split('.')[1]}", f"__CUDACC_VER_BUILD__={build}"]
            macros += [f"__CUDA_ARCH_LIST__={self._arch}", *SPECIFIERS]
            macros.append("__host__=__mxmaca_host__" if self._relocatable() else "__host__=")
            if device:
                macros += [f"__CUDA_ARCH__={self._arch}", "__assert_fail=__cudaAssertFail"]
            for flag, macro in (
                ("relaxed_constexpr", "__CUDACC_RELAXED_CONSTEXPR__=1"),
                ("extended_lambda", "__CUDACC_EXTENDED_LAMBDA__=1"),
                ("device_debug", "__CUDACC_DEBUG__=1"),
                ("fast_math", "__USE_FAST_MATH__=1"),
            ):
                if options.flag(flag):
                    macros.append(macro)
            if self._relocatable():
                macros.append("__CUDACC_RDC__=1")
            if options.flag("extended_lambda"):
                macros += CLOSURE_TYPES
            if options.value("default_stream") == "per-thread":
                macros.append("CUDA_API_PER_THREAD_DEFAULT_STREAM=1")
        return [f"-D{macro}" for macro in macros]

    def _shared_flags(self, cuda: bool = True) -> List[str]:
        """What both the preprocessor and the compiler want to know."""
        options = self.options
        given = [*options.host, *options.all("compiler_options")]
        flags = [f"-std={options.value('standard')}"] if options.value("standard") else []
        # nvcc's default, whatever the host compiler's is.
        if cuda and not flags and not any(option.startswith(("-std=", "--std=", "-ansi")) for option in given):
            flags = ["-std=gnu++17"]
        for name, flag in (("template_depth", "-ftemplate-depth"), ("random_seed", "-frandom-seed")):
            flags += [f"{flag}={options.value(name)}"] if options.value(name) else []
        if options.value("template_backtrace"):
            limit = "-ftemplate-backtrace-limit"
            flags.append(f"{limit}={options.value('template_backtrace')}")
        flags += ["-fno-exceptions"] if options.flag("no_exceptions") else []
        return flags + given

    def _warning_flags(self) -> List[str]:
        """What the host compiler shall warn about, in both passes."""
        options, kinds = self.options, self.options.all("errors")
        if options.flag("no_warnings"):
            return ["-w"]
        flags = ["-Wreorder"] if options.flag("warn_reorder") else []
        flags += ["-Wno-deprecated-declarations"] if options.flag("no_deprecated") else []
        flags += ["-Werror"] if "all-warnings" in kinds else []
        flags += [f"-Werror={kind}" for kind in ("reorder", "deprecated-declarations") if kind in kinds]
        if options.value("brief") == "true":
            flags.append("-fno-caret-diagnostics" if self.is_clang else "-fno-diagnostics-show-caret")
        return flags

    def _preprocess_command(self, source: Source, device: bool, output: Optional[str], only: bool = False) -> List[str]:
        options, cuda = self.options, source.language == CUDA
        if cuda and not hasattr(self, "_arch"):
            self._arch = self._architecture()
        command = [self.compiler, "-E", "-x", "c" if source.language == C else "c++"]
        if source.language in ("c++-cpp-output", ASSEMBLER, "assembler-with-cpp"):
            command[3] = source.language
        command += self._macros(device, cuda)
        command += [f"-D{value}" for value in options.all("define")] + [
            f"-U{value}" for value in options.all("undefine")
        ]
        command += [f"-I{value}" for value in options.all("include")]
        for value in options.all("system_include"):
            command += ["-isystem", value]
        command += ["-isystem", str(toolkit.include())]
        command += self._shared_flags(cuda)
        if cuda:
            command += ["-include", "cuda_runtime.h"]
        for value in options.all("pre_include"):
            command += ["-include", value]
        command += self._optimisation(device)
        for flag, short in (("dependencies", "-M"), ("user_dependencies", "-MM")):
            if options.flag(flag):
                command.append(short)
        if not device:
            command += self._dependency_flags(source, only)
        if output is not None:
            command += ["-o", output]
        return [*command, source.path]

    def _dependency_flags(self, source: Source, only: bool) -> List[str]:
        options, flags = self.options, []
        for flag, short in (
            ("dependencies_too", "-MD"),
            ("user_dependencies_too", "-MMD"),
            ("dependency_targets", "-MP"),
        ):
            if options.flag(flag):
                flags.append(short)
        file, target = options.value("dependency_file"), options.value("dependency_target")
        made = options.value("output") or self._beside(source.path, ".o")
        if flags and ("-MD" in flags or "-MMD" in flags) and not only:
            file = file or str(Path(made).with_suffix(".d"))
            target = target or made
        if file:
            flags += ["-MF", file]
        if target:
            flags += ["-MT", target]
        return flags

    def _optimisation(self, device: bool) -> List[str]:
        options = self.options
        # -dopt=on keeps the optimisation under -G, with line numbers alone.
        slow = options.flag("device_debug") and not options.value("device_optimize")
        if device:
            level = "0" if slow else {"max": "0", "mid": "1", "min": "2"}.get(options.value("fast_compile"), "3")
            flags = [f"-O{level}"]
        else:
            flags = [f"-O{options.value('optimize')}"] if options.value("optimize") else []
        if options.flag("device_debug") and device and not slow:
            flags.append("-g1")
        elif options.flag("debug") or options.flag("device_debug"):
            flags.append("-g")
        elif options.flag("line_info") and device:
            flags.append("-g1")
        return flags

    def _language_flags(self) -> List[str]:
        """What makes the host compiler take memory as CUDA's compiler takes it in device code, for both passes.

        CUDA code reads one type through another (a uint4 as four floats), and objects out of memory that nobody has
        made them in. The host pass compiles the same functions where they are `__host__ __device__`.
        """
        return ["-fno-strict-aliasing"] + ([] if self.is_clang else ["-fno-lifetime-dse"])

    @staticmethod
    def _object_flags() -> List[str]:
        """What both passes need behind the user's options: their objects are joined, so they must hold machine code."""
        return ["-fno-lto"]

    def _device_flags(self) -> List[str]:
        options = self.options
        # Behind the user's options, which speak of the host's code.
        flags = self._language_flags()
        # The device's arithmetic sets no errno and raises no signals.
        flags += ["-ffunction-sections", "-fdata-sections", "-fno-math-errno", "-fno-trapping-math"]
        flags += ["-fvisibility=hidden", "-fno-semantic-interposition"]
        # Static variables of templates, the blocks' shared memory among them, belong to this object alone.
        # A short vector loop that crosses a line of the instruction cache takes a quarter longer.
        flags += [] if self.is_clang else ["-fno-gnu-unique", "-falign-loops=32"]
        # Kernels and device variables are all that is wanted (they are marked as used): the host's functions, and what
        # they reach, need not be optimised to be thrown away afterwards.
        flags += [] if self.is_clang or self._relocatable() else ["-fwhole-program"]
        if options.value("stack_protector"):
            flags.append(
                "-fstack-protector-strong" if options.value("stack_protector") == "true" else "-fno-stack-protector"
            )
        if options.all("reports"):
            flags.append("-Rpass=inline" if self.is_clang else "-fopt-info-inline-optimized")
        if options.value("fuse").lower() == "false":
            flags.append("-ffp-contract=off")
        return flags

    def _pass_warnings(self, device: bool) -> List[str]:
        """What is warned about in one of the two passes; what both say is said once (messages.py)."""
        flags = ["-Wno-unknown-pragmas"]
        if self.is_clang:
            flags += ["-Wno-unknown-warning-option", "-Wno-unknown-attributes", "-Wno-ignored-attributes"]
        if device:
            flags += [f"-Wno-{name}" for name in BY_PATHS]
        return [*self._warning_flags(), *flags]

    def _rewriting(self) -> rewriting.Choices:
        options = self.options
        asked = frozenset(
            kind for kind, flag in OWN_WARNINGS.items() if options.flag(flag) or kind in options.all("errors")
        )
        return rewriting.Choices(
            relocatable=self._relocatable(),
            static_stubs=options.value("static_stub") == "true",
            hidden=options.value("hidden") == "true",
            # clang numbers the lambdas of a file, in the names of kernels too: there may be none in one pass alone.
            named=self.is_clang or (options.flag("device_debug") and not options.value("device_optimize")),
            warn=asked,
            phases=not options.flag("device_debug"),
        )

    # ---- Compiling --------------------------------------------------------------------------------------------------

    def _compile(self, source: Source, output: str, force_pic: bool = False, exported: bool = False) -> None:
        options = self.options
        if source.language != CUDA:
            command = self._preprocess_command(source, device=False, output=output)
            command[1] = "-c"
            command += ["-fPIC"] if force_pic else []
            command += ["-pg"] if options.flag("profile") else []
            command += self._warning_flags()
            self._said(self._try(command))
            return
        self._arch = self._architecture()
        pic = ["-fPIC"] if force_pic else []
        if options.flag("dry_run"):
            self._dry_compile(source, output, pic)
            return
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        passes = [Pass(self, source, folder, device, pic) for device in (True, False)]
        threads = [threading.Thread(target=one.run) for one in passes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        device, host = passes
        if device.dropped and self._wants_bodies(device, host, folder):
            device = passes[0] = Pass(self, source, folder, True, pic, whole=True)
            device.run()
        for one in passes:
            if one.problem is not None and not isinstance(one.problem, Failed):
                raise one.problem
        sys.stderr.write(messages.merged(host.said, device.said))
        for one in passes:
            if isinstance(one.problem, Failed):
                raise Failed(one.problem.status)
        for warning in device.result.warnings:
            self.warn(warning.text, warning.kind, warning.where)
        if not host.object.exists():  # -fsyntax-only
            return
        if "cross-execution-space-call" in self.options.all("errors"):
            self._check_calls(device, host, folder)
        if not any(word in device.result.text for word in CONSTANT_INITIALISERS):
            for name in objects.started_variables(device.object, device.result.variables):
                raise CuccError(f"{source.path}: error: device variable '{name}' needs code to start with")
        part = folder / "joined.o"
        objects.join(
            host.object,
            device.object,
            part,
            folder,
            host.identity,
            host.result.variables,
            host.result.device_functions,
            objects.Sharing(self._relocatable(), exported, device.result.declared_both),
            self.run,
        )
        self._place(part, output)
        if options.flag("keep"):
            files = [file for one in passes for file in (one.text, one.object)]
            for file, kept in zip(files, self._kept(source)):
                self._place(file, str(kept))

    def _drops_bodies(self) -> bool:
        """Whether the device pass may leave the host's functions out: where unused ones leave no trace."""
        checked = "cross-execution-space-call" in self.options.all("errors")
        return not (self.is_clang or self._relocatable() or checked or self.options.flag("device_debug"))

    def _wants_bodies(self, device: "Pass", host: "Pass", folder: Path) -> bool:
        """Whether the device pass went wrong without the host's bodies, or its kernels need some of them."""
        if device.problem is not None:
            return not messages.only_repeats(host.said, device.said)
        made = host.problem is None and host.object.exists()  # not under -fsyntax-only
        return made and objects.lacks_bodies(host.object, device.object, folder, self.run)

    def _check_calls(self, device: "Pass", host: "Pass", folder: Path) -> None:
        """-Werror cross-execution-space-call: the device pass once more without inlining, and what its kernels call.

        Raises:
            CuccError: a kernel calls functions of the host.
        """
        checked = folder / "checked.o"
        command = [self.compiler, "-c", "-x", "c++-cpp-output", *self._shared_flags(), *self._device_flags()]
        # Inline functions and templates must be seen as such.
        self.run([*command, "-fno-whole-program", "-w", "-O0", "-g1", str(device.text), "-o", str(checked)])
        names = [name for name, _, _ in objects.kernels(objects.symbols(host.object))]
        found = objects.host_calls(checked, names, device.result.device_functions, folder, self.run)
        if found:
            names = [objects.demangled(name) for name, _ in found]
            lines = [
                f'{where}: error: calling a __host__ function("{name}") from device code is not '
                "allowed [-Werror cross-execution-space-call]"
                for name, (_, where) in zip(names, found)
            ]
            raise CuccError("\n".join(lines))

    @staticmethod
    def _place(part: Path, output: str) -> None:
        try:
            if os.path.exists(output) and not os.path.isfile(output):
                shutil.copyfile(str(part), output)  # /dev/null
                return
            unfinished = f"{output}.{os.getpid()}.part"
            shutil.copyfile(str(part), unfinished)
            os.replace(unfinished, output)
        except OSError as error:
            raise CuccError(f"cucc: fatal: {output}: {error.strerror}") from None

    def _dry_compile(self, source: Source, output: str, pic: List[str]) -> None:
        for device in (True, False):
            self.show(self._preprocess_command(source, device, f"{'device' if device else 'host'}.ii"))
            self.show(
                [
                    self.compiler,
                    "-c",
                    "-x",
                    "c++-cpp-output",
                    *([] if device else self._language_flags()),
                    *self._shared_flags(),
                    *self._optimisation(device),
                    *(self._device_flags() if device else []),
                    *self._object_flags(),
                    *self._warning_flags(),
                    *pic,
                    f"{'device' if device else 'host'}.ii",
                ]
            )
        self.show(["ld", "-r", "host.o", "device.o", "-o", output])

    def _try(self, command: Sequence[str]) -> Tuple[int, str]:
        try:
            return 0, self.capture(command)
        except Failed as failed:
            return failed.status, failed.text

    @staticmethod
    def _said(result: Tuple[int, str]) -> None:
        status, text = result
        sys.stderr.write(text)
        if status:
            raise Failed(status)

    # ---- Linking ----------------------------------------------------------------------------------------------------

    def _device_link(self, sources: Sequence[Source]) -> int:
        """An object for build systems that link device code in a step of its own: there is nothing left to do in it."""
        output = self.options.value("output") or "a_dlink.o"
        empty = self.folder / "empty.s"
        empty.write_text('.section .note.GNU-stack,"",@progbits\n', encoding="utf-8")
        made = self.folder / "dlink.o"
        self.run(["as", str(empty), "-o", str(made)])
        if not self.options.flag("dry_run"):
            self._place(made, output)
        return 0

    def _link(self, compiled: Dict[str, str], output: str, shared: bool) -> None:
        options = self.options
        libraries = toolkit.libraries(self.major)
        # The linker that CMake finds in this line and uses by itself: it knows the libraries' folder.
        launcher = toolkit.tree(self.major) / "bin" / "cucc-link"
        own = launcher.is_file() and self.compiler == shutil.which("g++")
        command = [str(launcher) if own else self.compiler, "-o", output] + (["-shared"] if shared else [])
        command += self._shared_flags()
        command += ["-pg"] if options.flag("profile") else []
        command += [compiled.get(part, part) for part in options.link_order]
        command += [part for option in options.linker for part in ("-Xlinker", option)]
        command += [f"-L{path}" for path in options.all("library_path")]
        if options.value("run_time", "static") != "none":
            names = [path.name for path in sorted(libraries.glob("libcudart.so.*"))]
            if not names and not options.flag("dry_run"):
                raise CuccError(f"cucc: fatal: no CUDA {self.major} libraries in {libraries}")
            tree = toolkit.tree(self.major) / "lib64"
            command += [f"-L{tree}"] if tree.is_dir() else []
            command += ["-lcudart"] if tree.is_dir() else [f"-L{libraries}", f"-l:{names[0]}"]
            command += [f"-Wl,-rpath,{libraries}"]
            command += [f"-Wl,-rpath-link,{libraries.parent}", "-pthread", "-ldl", "-lrt"]
        self._said(self._try(command))


class Pass:
    """The host pass or the device pass over one file."""

    def __init__(
        self, driver: Driver, source: Source, folder: Path, device: bool, extra: Sequence[str], whole: bool = False
    ) -> None:
        self.driver, self.source, self.device, self.extra, self.whole = driver, source, device, list(extra), whole
        self.dropped = False  # the host's bodies (bodies.py)
        name = "device" if device else "host"
        self.preprocessed, self.text, self.object = folder / f"{name}.i", folder / f"{name}.ii", folder / f"{name}.o"
        self.problem: Optional[Exception] = None
        self.said = ""
        self.identity = ""
        self.result: rewriting.Result

    def run(self) -> None:
        try:
            self._run()
        except Failed as problem:
            self.said += problem.text
            self.problem = problem
        except Exception as problem:  # a thread's exception would be lost
            self.problem = problem

    def _run(self) -> None:
        driver, options = self.driver, self.driver.options
        path, name = self.source.path, "device" if self.device else "host"
        self.said = driver.capture(
            driver._preprocess_command(self.source, self.device, str(self.preprocessed)), f"preprocess ({name})", path
        )
        begin = time.monotonic()
        text = self.preprocessed.read_bytes().decode("latin-1")
        if self.device and not self.whole and driver._drops_bodies():
            source = Text(text)
            edits = bodies.drop(source)
            self.dropped = bool(edits)
            text = source.edited(edits)
        self.result = rewriting.rewrite(Text(text), self.device, driver._rewriting())
        written = self.result.text
        if not self.device:
            where = os.path.abspath(options.value("output") or path)
            self.identity = hashlib.sha256(written.encode("latin-1") + where.encode()).hexdigest()[:16]
            written += PREAMBLE_END.format(identity=self.identity)
        self.text.write_bytes(written.encode("latin-1"))
        driver.timed(f"rewrite ({name})", time.monotonic() - begin, path)
        command = [
            driver.compiler,
            "-c",
            "-x",
            "c++-cpp-output",
            # Before the user's options: who asks for type-based aliasing in host code gets it there.
            *([] if self.device else driver._language_flags()),
            *driver._shared_flags(),
            *driver._optimisation(self.device),
        ]
        command += [*(driver._device_flags() if self.device else []), *driver._object_flags()]
        command += driver._pass_warnings(self.device)
        command += ["-pg"] if options.flag("profile") and not self.device else []
        self.said += driver.capture(
            [*command, *self.extra, str(self.text), "-o", str(self.object)], f"compile ({name})", path
        )


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Compile and link as the command line says. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name, position in (("NVCC_PREPEND_FLAGS", 0), ("NVCC_APPEND_FLAGS", len(words))):
        extra = shlex.split(os.environ.get(name, ""))
        words[position:position] = extra
    try:
        return Driver(parse(words)).main()
    except Failed as failed:
        if failed.text:
            sys.stderr.write(failed.text)
        return failed.status
    except CuccError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
