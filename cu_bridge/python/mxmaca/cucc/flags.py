"""What the preprocessor, the compiler and the rewriting are told, from the command line."""

import re
from pathlib import Path
from typing import List, Optional

from . import rewriting, toolkit
from .options import CUDA, CXX, C, Input, Options
from .toolchain import Toolchain

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
OWN_WARNINGS = {
    "default-stream-launch": "warn_default_stream",
    "missing-launch-bounds": "warn_launch_bounds",
    "stacks": "warn_stacks",
}
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
# The device's compute capability, times ten. Code for an older one runs on it as well.
CAPABILITY = toolkit.limit("kCapability")
CODES = re.compile(r"(?:sm|compute|lto)_\d+[af]?")


# What CUDA's headers are written in here is C++17, and so is what they are compiled as.
BEFORE_CXX17 = ("c++03", "c++11", "c++14")


class Flags:
    """The flags of one run of cucc."""

    def __init__(self, options: Options, tools: Toolchain) -> None:
        self.options, self.tools = options, tools
        self.major = toolkit.cuda_major()
        self._architecture: Optional[int] = None

    def architecture(self) -> int:
        """`__CUDA_ARCH__`: the highest that was asked for and that the device can run."""
        if self._architecture is None:
            self._architecture = self._highest_architecture()
        return self._architecture

    def codes(self) -> List[str]:
        """What the object was asked to hold code for, as CUDA names it: `sm_80` a processor's, `compute_80` PTX."""
        found: List[str] = []
        for text in self.options.all("generate_code"):
            virtual, _, real = text.replace(" ", "").partition(",code=")
            found += CODES.findall(real) or CODES.findall(virtual)
        chosen = [word for text in self.options.all("code") for word in CODES.findall(text)]
        for text in self.options.all("architecture"):
            named = CODES.findall(text)
            # A real architecture alone means its virtual one as well.
            found += chosen or [*named, *(word.replace("sm_", "compute_") for word in named if word.startswith("sm_"))]
        own = [f"sm_{CAPABILITY}"]
        return list(dict.fromkeys(found)) or own

    def _highest_architecture(self) -> int:
        texts = self.options.all("architecture") + self.options.all("code") + self.options.all("generate_code")
        numbers = []
        for text in texts:
            for word in text.replace("[", ",").replace("]", ",").replace("=", ",").split(","):
                digits = word.partition("_")[2].rstrip("af")
                if word.startswith(("sm_", "compute_", "lto_")) and digits.isdigit():
                    numbers.append(int(digits))
        fit = [number for number in numbers if number <= CAPABILITY]
        if numbers and not fit:
            self.tools.warn(
                f"the device has compute capability {CAPABILITY / 10}; code for sm_{min(numbers)} would not run on it, "
                f"so it is compiled for sm_{CAPABILITY}"
            )
        return max(fit) * 10 if fit else CAPABILITY * 10

    @property
    def relocatable(self) -> bool:
        """Whether device code of several files calls each other."""
        options = self.options
        return options.value("relocatable") == "true" or any(map(options.flag, ("device_c", "relocatable_link", "lto")))

    def _macros(self, device: bool, cuda: bool) -> List[str]:
        options = self.options
        release, build = toolkit.RELEASES[self.major]
        macros = [f"MXMACA_CUDA_MAJOR={self.major}", "__NVCC__=1"]
        if cuda:
            macros += ["__MXMACA_CUCC__=1", "__CUDACC__=1", f"__CUDACC_VER_MAJOR__={self.major}"]
            macros += [f"__CUDACC_VER_MINOR__={release.split('.')[1]}", f"__CUDACC_VER_BUILD__={build}"]
            macros += [f"__CUDA_ARCH_LIST__={self.architecture()}", *SPECIFIERS]
            macros.append("__host__=__mxmaca_host__" if self.relocatable else "__host__=")
            if device:
                macros += [f"__CUDA_ARCH__={self.architecture()}", "__assert_fail=__cudaAssertFail"]
            for flag, macro in (
                ("relaxed_constexpr", "__CUDACC_RELAXED_CONSTEXPR__=1"),
                ("extended_lambda", "__CUDACC_EXTENDED_LAMBDA__=1"),
                ("device_debug", "__CUDACC_DEBUG__=1"),
                ("fast_math", "__USE_FAST_MATH__=1"),
            ):
                if options.flag(flag):
                    macros.append(macro)
            if self.relocatable:
                macros.append("__CUDACC_RDC__=1")
            if options.flag("extended_lambda"):
                macros += CLOSURE_TYPES
            if options.value("default_stream") == "per-thread":
                macros.append("CUDA_API_PER_THREAD_DEFAULT_STREAM=1")
        return [f"-D{macro}" for macro in macros]

    def shared(self, cuda: bool = True) -> List[str]:
        """What both the preprocessor and the compiler want to know."""
        options = self.options
        given = [*options.host, *options.all("compiler_options")]
        standard = options.value("standard")
        if cuda and standard in BEFORE_CXX17:
            standard = "c++17"
        flags = [f"-std={standard}"] if standard else []
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

    def warning(self) -> List[str]:
        """What the host compiler shall warn about, in both passes."""
        options, kinds = self.options, self.options.all("errors")
        if options.flag("no_warnings"):
            return ["-w"]
        flags = ["-Wreorder"] if options.flag("warn_reorder") else []
        flags += ["-Wno-deprecated-declarations"] if options.flag("no_deprecated") else []
        flags += ["-Werror"] if "all-warnings" in kinds else []
        flags += [f"-Werror={kind}" for kind in ("reorder", "deprecated-declarations") if kind in kinds]
        if options.value("brief") == "true":
            flags.append("-fno-caret-diagnostics" if self.tools.is_clang else "-fno-diagnostics-show-caret")
        return flags

    def preprocess(self, source: Input, device: bool, output: Optional[str], only: bool = False) -> List[str]:
        options, cuda = self.options, source.language == CUDA
        command = [self.tools.compiler, "-E", "-x", "c" if source.language == C else "c++"]
        if source.language not in (C, CXX, CUDA):
            command[3] = source.language
        command += self._macros(device, cuda)
        command += [f"-D{value}" for value in options.all("define")] + [
            f"-U{value}" for value in options.all("undefine")
        ]
        command += [f"-I{value}" for value in options.all("include")]
        for value in options.all("system_include"):
            command += ["-isystem", value]
        command += ["-isystem", str(toolkit.include())]
        command += self.shared(cuda)
        if cuda:
            command += ["-include", "cuda_runtime.h"]
        for value in options.all("pre_include"):
            command += ["-include", value]
        command += self.optimisation(device)
        for flag, short in (("dependencies", "-M"), ("user_dependencies", "-MM")):
            if options.flag(flag):
                command.append(short)
        if not device:
            command += self.dependency(source, only)
        if output is not None:
            command += ["-o", output]
        return [*command, source.path]

    def dependency(self, source: Input, only: bool) -> List[str]:
        options, flags = self.options, []
        for flag, short in (
            ("dependencies_too", "-MD"),
            ("user_dependencies_too", "-MMD"),
            ("dependency_targets", "-MP"),
        ):
            if options.flag(flag):
                flags.append(short)
        file, target = options.value("dependency_file"), options.value("dependency_target")
        made = options.value("output") or options.beside(source.path, ".o")
        if flags and ("-MD" in flags or "-MMD" in flags) and not only:
            file = file or str(Path(made).with_suffix(".d"))
            target = target or made
        if file:
            flags += ["-MF", file]
        if target:
            flags += ["-MT", target]
        return flags

    def optimisation(self, device: bool) -> List[str]:
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

    def language(self) -> List[str]:
        """What makes the host compiler take memory as CUDA's compiler takes it in device code, for both passes.

        CUDA code reads one type through another (a uint4 as four floats), and objects out of memory that nobody has
        made them in. The host pass compiles the same functions where they are `__host__ __device__`.
        """
        return ["-fno-strict-aliasing"] + ([] if self.tools.is_clang else ["-fno-lifetime-dse"])

    def device(self) -> List[str]:
        options = self.options
        # Behind the user's options, which speak of the host's code.
        flags = self.language()
        # The device's arithmetic sets no errno and raises no signals.
        flags += ["-ffunction-sections", "-fdata-sections", "-fno-math-errno", "-fno-trapping-math"]
        flags += ["-fvisibility=hidden", "-fno-semantic-interposition"]
        # Static variables of templates, the blocks' shared memory among them, belong to this object alone.
        # A short vector loop that crosses a line of the instruction cache takes a quarter longer.
        flags += [] if self.tools.is_clang else ["-fno-gnu-unique", "-falign-loops=32"]
        # Kernels and device variables are all that is wanted (they are marked as used): the host's functions, and what
        # they reach, need not be optimised to be thrown away afterwards.
        flags += [] if self.tools.is_clang or self.relocatable else ["-fwhole-program"]
        if options.value("stack_protector"):
            flags.append(
                "-fstack-protector-strong" if options.value("stack_protector") == "true" else "-fno-stack-protector"
            )
        if options.all("reports"):
            flags.append("-Rpass=inline" if self.tools.is_clang else "-fopt-info-inline-optimized")
        if options.value("fuse").lower() == "false":
            flags.append("-ffp-contract=off")
        return flags

    def compile(self, device: bool) -> List[str]:
        """The command that compiles rewritten text, but for warnings and files."""
        command = [self.tools.compiler, "-c", "-x", "c++-cpp-output"]
        # Before the user's options: who asks for type-based aliasing in host code gets it there.
        command += [] if device else self.language()
        command += [*self.shared(), *self.optimisation(device), *(self.device() if device else [])]
        # Behind them: both passes' objects are joined, so they must hold machine code.
        return [*command, "-fno-lto"]

    def pass_warnings(self, device: bool) -> List[str]:
        """What is warned about in one of the two passes; what both say is said once (messages.py)."""
        flags = ["-Wno-unknown-pragmas"]
        if self.tools.is_clang:
            flags += ["-Wno-unknown-warning-option", "-Wno-unknown-attributes", "-Wno-ignored-attributes"]
        if device:
            flags += [f"-Wno-{name}" for name in BY_PATHS]
        return [*self.warning(), *flags]

    def choices(self) -> rewriting.Choices:
        """What the rewriting is told."""
        options = self.options
        asked = frozenset(
            kind for kind, flag in OWN_WARNINGS.items() if options.flag(flag) or kind in options.all("errors")
        )
        return rewriting.Choices(
            at_run_time="__CUDACC_RTC__" in self.options.all("define"),
            relocatable=self.relocatable,
            static_stubs=options.value("static_stub") == "true",
            hidden=options.value("hidden") == "true",
            # clang numbers the lambdas of a file, in the names of kernels too: there may be none in one pass alone.
            named=self.tools.is_clang or (options.flag("device_debug") and not options.value("device_optimize")),
            warn=asked,
            phases=not options.flag("device_debug"),
        )

    def drops_bodies(self) -> bool:
        """Whether the device pass may leave the host's functions out: where unused ones leave no trace."""
        checked = "cross-execution-space-call" in self.options.all("errors")
        return not (self.tools.is_clang or self.relocatable or checked or self.options.flag("device_debug"))
