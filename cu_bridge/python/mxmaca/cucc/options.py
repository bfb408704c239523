"""The command line: nvcc's options as a table."""

import os
import re
import shlex
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .errors import CuccError

FLAG, VALUE, LIST, JOINED = "flag", "value", "list", "joined"
NOTHING, NOTHING_VALUE, REFUSED = "nothing", "nothing, with a value", "refused"
CUDA, CXX, C, OBJECT = "cu", "c++", "c", "object"
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
    ".s": "assembler",
    ".S": "assembler-with-cpp",
}
TRUTH = ("true", "false")
ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_\d+[af]?|all|all-major|native|arch|code")


class Option(NamedTuple):
    """One option: how it is stored, what it takes, how it is written.

    `values` are the only ones it takes, if there are any. `why` is the reason of an option that is taken and changes
    nothing, or that is refused.
    """

    name: str
    kind: str
    spellings: Tuple[str, ...]
    values: Tuple[str, ...] = ()
    why: str = ""


def _option(name: str, kind: str, spellings: str, values: Tuple[str, ...] = (), why: str = "") -> Option:
    return Option(name, kind, tuple(spellings.split()), values, why)


def _nothing(why: str, flags: str = "", values: str = "", only: Tuple[str, ...] = ()) -> Iterator[Option]:
    """Flags, and options with a value, that change nothing for the same reason."""
    if flags:
        yield _option("", NOTHING, flags, why=why)
    if values:
        yield _option("", NOTHING_VALUE, values, only, why)


def _refused(why: str, spellings: str) -> Option:
    return _option("", REFUSED, spellings, why=why)


# VALUE keeps the last, LIST all, split at commas; JOINED may have its value attached (-Ifoo).
TABLE: Tuple[Option, ...] = (
    # What to make
    _option("compile", FLAG, "-c --compile"),
    _option("device_c", FLAG, "-dc --device-c"),
    _option("device_w", FLAG, "-dw --device-w"),
    _option("device_link", FLAG, "-dlink --device-link"),
    _option("link", FLAG, "-link --link"),
    _option("preprocess", FLAG, "-E --preprocess"),
    _option("dependencies", FLAG, "-M --generate-dependencies"),
    _option("user_dependencies", FLAG, "-MM --generate-nonsystem-dependencies"),
    _option("dependencies_too", FLAG, "-MD --generate-dependencies-with-compile"),
    _option("user_dependencies_too", FLAG, "-MMD --generate-nonsystem-dependencies-with-compile"),
    _option("dependency_targets", FLAG, "-MP --generate-dependency-targets"),
    _option("dependency_file", VALUE, "-MF --dependency-output"),
    _option("dependency_target", VALUE, "-MT --dependency-target-name"),
    _option("library", FLAG, "-lib --lib"),
    _option("relocatable_link", FLAG, "-r --relocatable-link"),
    _option("shared", FLAG, "-shared --shared"),
    _option("cubin", FLAG, "-cubin --cubin"),
    _option("fatbin", FLAG, "-fatbin --fatbin"),
    _option("ptx", FLAG, "-ptx --ptx"),
    _option("run", FLAG, "-run --run"),
    _option("run_arguments", LIST, "-run-args --run-args"),
    _option("clean", FLAG, "-clean --clean-targets"),
    _option("output", VALUE, "-o --output-file"),
    _option("output_directory", VALUE, "-odir --output-directory"),
    _option("beside_output", FLAG, "-objtemp --objdir-as-tempdir"),
    _option("language", VALUE, "-x --x", values=("c", "c++", "cu")),
    # Preprocessor and libraries
    _option("define", JOINED, "-D --define-macro"),
    _option("undefine", JOINED, "-U --undefine-macro"),
    _option("include", JOINED, "-I --include-path"),
    _option("system_include", LIST, "-isystem --system-include"),
    _option("pre_include", LIST, "-include --pre-include"),
    _option("library_path", JOINED, "-L --library-path"),
    _option("link_library", JOINED, "-l --library"),
    # Language and code
    _option("standard", VALUE, "-std --std"),
    _option("template_depth", VALUE, "-ftemplate-depth --ftemplate-depth"),
    _option("template_backtrace", VALUE, "-ftemplate-backtrace-limit --ftemplate-backtrace-limit"),
    _option("random_seed", VALUE, "-frandom-seed --frandom-seed"),
    _option("no_exceptions", FLAG, "-noeh --no-exceptions"),
    _option("optimize", JOINED, "-O --optimize"),
    _option("device_optimize", VALUE, "-dopt --dopt", values=("on",)),
    _option("fast_compile", VALUE, "-Ofc --Ofast-compile", values=("0", "max", "mid", "min")),
    _option("reports", LIST, "-opt-info --optimization-info"),
    _option("debug", FLAG, "-g --debug"),
    _option("device_debug", FLAG, "-G --device-debug"),
    _option("line_info", FLAG, "-lineinfo --generate-line-info"),
    _option("profile", FLAG, "-pg --profile"),
    _option("stack_protector", VALUE, "-device-stack-protector --device-stack-protector", values=TRUTH),
    _option("machine", VALUE, "-m --machine", values=("64",)),
    _option("machine64", FLAG, "-m64 --m64"),
    _option("relocatable", VALUE, "-rdc --relocatable-device-code", values=TRUTH),
    _option("static_stub", VALUE, "-static-global-template-stub --static-global-template-stub", values=TRUTH),
    _option(
        "hidden", VALUE, "-device-entity-has-hidden-visibility --device-entity-has-hidden-visibility", values=TRUTH
    ),
    _option("architecture", VALUE + "s", "-arch --gpu-architecture"),
    _option("code", LIST, "-code --gpu-code"),
    _option("generate_code", VALUE + "s", "-gencode --generate-code"),
    _option("fast_math", FLAG, "-use_fast_math --use_fast_math"),
    _option("fuse", VALUE, "-fmad --fmad", values=TRUTH),
    _option("default_stream", VALUE, "-default-stream --default-stream", values=("legacy", "null", "per-thread")),
    _option("extended_lambda", FLAG, "-extended-lambda --extended-lambda -expt-extended-lambda --expt-extended-lambda"),
    _option("relaxed_constexpr", FLAG, "-expt-relaxed-constexpr --expt-relaxed-constexpr"),
    _option("run_time", VALUE, "-cudart --cudart", values=("none", "shared", "static")),
    # Tools
    _option("host_compiler", VALUE, "-ccbin --compiler-bindir"),
    _option("archiver", VALUE, "-arbin --archiver-binary"),
    _option("compiler_options", LIST, "-Xcompiler --compiler-options"),
    _option("linker_options", LIST, "-Xlinker --linker-options"),
    _option("archive_options", LIST, "-Xarchive --archive-options"),
    _option("unknown_to_compiler", FLAG, "-forward-unknown-to-host-compiler --forward-unknown-to-host-compiler"),
    _option("unknown_to_linker", FLAG, "-forward-unknown-to-host-linker --forward-unknown-to-host-linker"),
    _option("unknown_to_both", FLAG, "-forward-unknown-opts --forward-unknown-opts"),
    _option("options_file", LIST, "-optf --options-file"),
    _option("dry_run", FLAG, "-dryrun --dryrun"),
    _option("verbose", FLAG, "-v --verbose"),
    _option("time", VALUE, "-time --time"),
    _option("version", FLAG, "-V --version"),
    _option("help", FLAG, "-h --help"),
    _option("keep", FLAG, "-keep --keep -save-temps --save-temps"),
    _option("keep_directory", VALUE, "-keep-dir --keep-dir"),
    _option("list_architectures", FLAG, "-arch-ls --list-gpu-arch"),
    _option("list_codes", FLAG, "-code-ls --list-gpu-code"),
    # Messages
    _option("no_warnings", FLAG, "-w --disable-warnings"),
    _option(
        "errors",
        LIST,
        "-Werror --Werror",
        values=("all-warnings", "cross-execution-space-call", "default-stream-launch", "deprecated-declarations")
        + ("ext-lambda-captures-this", "missing-launch-bounds", "reorder"),
    ),
    _option("warn_reorder", FLAG, "-Wreorder --Wreorder"),
    _option("warn_default_stream", FLAG, "-Wdefault-stream-launch --Wdefault-stream-launch"),
    # Of cucc's own: why a kernel that waits is no loop for each stretch between two waits.
    _option("warn_stacks", FLAG, "-Wstacks --Wstacks"),
    _option("warn_launch_bounds", FLAG, "-Wmissing-launch-bounds --Wmissing-launch-bounds"),
    _option("no_deprecated", FLAG, "-Wno-deprecated-declarations --Wno-deprecated-declarations"),
    _option("brief", VALUE, "-brief-diag --brief-diagnostics", values=TRUTH),
    # Taken, and without effect on this device
    *_nothing(
        "the tools that they speak to do not run: no PTX, no machine code of NVIDIA's is made",
        values="-Xptxas --ptxas-options -Xnvlink --nvlink-options -Xcudafe --cudafe-options -Xfatbin --fatbin-options "
        "-Xcicc",
    ),
    *_nothing(
        "the device has no registers to share out", "-res-usage --resource-usage", "-maxrregcount --maxrregcount"
    ),
    *_nothing(
        "denormals are kept, divisions and roots rounded to nearest, whatever is asked for: values are those of "
        "false, true, true",
        values="-ftz --ftz -prec-div --prec-div -prec-sqrt --prec-sqrt",
        only=TRUTH,
    ),
    *_nothing(
        "device code is always compiled for speed, and file by file; no value depends on it",
        "-extra-device-vectorization --extra-device-vectorization -restrict --restrict -gen-opt-lto --gen-opt-lto",
        "-jtd --jump-table-density",
    ),
    *_nothing(
        "both passes run at once, and there is one architecture",
        "-jobserver --jobserver",
        "-t --threads -split-compile --split-compile -split-compile-extended --split-compile-extended",
    ),
    *_nothing(
        "numbers of messages of NVIDIA's front end, which does not run",
        "-err-no --display-error-number -no-err-no --no-display-error-number",
        "-diag-error --diag-error -diag-suppress --diag-suppress -diag-warn --diag-warn",
    ),
    *_nothing("device code is not compressed", "-no-compress --no-compress", "-compress-mode --compress-mode"),
    *_nothing(
        "the toolkit's folders are fixed, and its device functions are headers",
        "-noprof --dont-use-profile",
        "-target-dir --target-directory -ldir --libdevice-directory",
    ),
    *_nothing(
        "there is no device runtime library: kernels launch no kernels",
        values="-cudadevrt --cudadevrt",
        only=("none", "static"),
    ),
    *_nothing("device code of several files is joined by the host's linker", "-nodlink --no-device-link"),
    *_nothing("no PTX is made that it could change", "-src-in-ptx --source-in-ptx -reloc-ptx --relocatable-ptx"),
    *_nothing(
        "no PTX is made that it could change: what no kernel reaches is left out",
        "-keep-device-functions --keep-device-functions",
    ),
    *_nothing("code for all kernels is made, the listed ones among them", values="-e --entries"),
    *_nothing(
        "functions of the standard library may be called in device code, with or without it",
        "-nohdmoveforward --no-host-device-move-forward -nohdinitlist --no-host-device-initializer-list",
    ),
    *_nothing(
        "device code reads the host's memory, so `this` may be captured",
        "-Wext-lambda-captures-this --Wext-lambda-captures-this",
    ),
    *_nothing("no architecture is deprecated", "-Wno-deprecated-gpu-targets --Wno-deprecated-gpu-targets"),
    *_nothing("no version of the host compiler is refused", "-allow-unsupported-compiler --allow-unsupported-compiler"),
    *_nothing(
        "they concern Windows or 32-bit hosts",
        "-use-local-env --use-local-env -force-cl-env-setup --force-cl-env-setup --no-align-double",
        "-idp --input-drive-prefix -ddp --dependency-drive-prefix -dp --drive-prefix",
    ),
    # Link-time optimisation: relocatable code, as with nvcc, but optimised file by file
    _option("lto", FLAG, "-dlto --dlink-time-opt -lto --lto"),
    # Refused
    _refused("there is no single source file between the two passes", "-cuda --cuda"),
    _refused("there is no such code for the simulated device", "-optix-ir --optix-ir -ltoir --ltoir"),
    _refused("kernels launch no kernels, so nothing can be left open", "-ewp --extensible-whole-program"),
    _refused("-fsanitize=address,undefined checks kernels here", "-sanitize --sanitize"),
    _refused("-time writes the time of each phase", "-fdevice-time-trace --fdevice-time-trace"),
    _refused("-Xcompiler -fsyntax-only checks both passes", "-fdevice-syntax-only --fdevice-syntax-only"),
    _refused("the host's linker needs no script for device code", "-hls --host-linker-script"),
    _refused("the host's linker needs no script for device code", "-aug-hls --augment-host-linker-script"),
    _refused("QNX is not supported", "-qpp-config --qpp-config"),
    _refused("there are no tools that load such code", "-astoolspatch --compile-as-tools-patch"),
)
VALUES = VALUE + "s"
BY_SPELLING: Dict[str, Option] = {spelling: option for option in TABLE for spelling in option.spellings}
# Options of the host compiler that go on to it although nvcc would refuse them, by their beginnings.
HOST_PREFIXES = (
    *("-f", "-W", "-m", "-pthread", "-pipe", "-pedantic", "-static", "-nostd", "-rdynamic", "-ansi", "-iquote"),
    *("-idirafter", "-no-pie", "-pie", "-g", "-B", "--param", "--sysroot"),
)
HOST_WORDS = ("-s",)
HOST_VALUES = ("-iquote", "-idirafter", "-imacros", "--param", "-z", "-T", "-u", "-B")
JOINED_SPELLINGS = ("-D", "-U", "-I", "-L", "-l", "-O")


class Input(NamedTuple):
    """An input file and what it is."""

    path: str
    language: str

    @classmethod
    def of(cls, path: str, given: str) -> "Input":
        """The file in the language that is given for it, else in that of its name.

        Raises:
            CuccError: its name says none.
        """
        suffix = Path(path).suffix
        if given or suffix in LANGUAGES:
            return cls(path, given or LANGUAGES[suffix])
        if suffix in (".o", ".obj", ".a", ".lib") or ".so" in Path(path).name:
            return cls(path, OBJECT)
        if suffix in (".ptx", ".cubin", ".fatbin"):
            raise CuccError(f"cucc: fatal: {path}: device code for NVIDIA's hardware cannot be used")
        raise CuccError(f"cucc: fatal: Don't know what to do with '{path}'")


class Options:
    """What the command line asked for."""

    def __init__(self) -> None:
        self.flags: Set[str] = set()
        self.values: Dict[str, str] = {}
        self.lists: Dict[str, List[str]] = {}
        self.inputs: List[Tuple[str, str]] = []  # file and the language given for it
        self.host: List[str] = []
        self.linker: List[str] = []  # unknown options that the linker shall have
        self.link_order: List[str] = []  # inputs and -l, as the linker wants them

    def flag(self, name: str) -> bool:
        return name in self.flags

    def value(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)

    def all(self, name: str) -> List[str]:
        return self.lists.get(name, [])

    def beside(self, path: str, suffix: str) -> str:
        """What is made of a file where no name is given for it."""
        return os.path.join(self.value("output_directory"), Path(path).stem + suffix)

    def kept(self, path: str) -> List[str]:
        """The intermediate files that -keep keeps: text and object of the device pass and of the host pass."""
        folder, stem = Path(self.value("keep_directory") or "."), Path(path).stem
        return [str(folder / f"{stem}.{name}{suffix}") for name in ("device", "host") for suffix in (".ii", ".o")]


def split_commas(text: str) -> List[str]:
    """Split at commas that no backslash and no quotes protect."""
    parts, current, quote, at = [], "", "", 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text) and text[at + 1] == ",":
            current += ","
            at += 1
        elif quote:
            if char == quote:
                quote = ""
            current += char
        elif char in "\"'":
            quote = char
            current += char
        elif char == ",":
            parts.append(current)
            current = ""
        else:
            current += char
        at += 1
    return [part for part in [*parts, current] if part]


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line.

    Raises:
        CuccError: an option is unknown or lacks its value; the message names it.
    """
    options = Options()
    # These hold for the whole command line, also for what stands before them.
    for option in map(BY_SPELLING.get, arguments):
        if option is not None and option.name.startswith("unknown_to_"):
            options.flags.add(option.name)
    _read(options, list(arguments), 0)
    return options


def _read(options: Options, arguments: List[str], depth: int) -> None:
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        at += 1
        if not argument.startswith("-") or argument == "-":
            options.inputs.append((argument, options.value("language")))
            options.link_order.append(argument)
            continue
        option, value = _recognised(argument)
        if option is None:
            if argument in HOST_VALUES:
                options.host += [argument, _next(arguments, at, argument)]
                at += 1
            elif argument in HOST_WORDS or argument.startswith(HOST_PREFIXES):
                options.host.append(argument)
            else:
                _unknown(options, argument)
            continue
        if option.kind == REFUSED:
            raise CuccError(f"cucc: fatal: '{argument}' is not supported: {option.why}")
        if option.kind in (FLAG, NOTHING):
            if value is not None:
                raise CuccError(f"cucc: fatal: no argument expected after '{argument.partition('=')[0]}'")
            options.flags.add(option.name)
            continue
        if value is None:
            value = _next(arguments, at, argument)
            at += 1
        _store(options, option, value, depth)


def _recognised(argument: str) -> Tuple[Optional[Option], Optional[str]]:
    """The option that the argument is, and the value that is attached to it."""
    if argument in BY_SPELLING:
        return BY_SPELLING[argument], None
    spelling, equals, attached = argument.partition("=")
    if equals and spelling in BY_SPELLING:
        return BY_SPELLING[spelling], attached
    if argument[:2] == "-t" and argument[2:].isdigit():
        return BY_SPELLING["-t"], argument[2:]
    for prefix in JOINED_SPELLINGS:
        if argument.startswith(prefix):
            return BY_SPELLING[prefix], argument[len(prefix) :]
    return None, None


def _unknown(options: Options, argument: str) -> None:
    known = False
    for flag, where in (("unknown_to_compiler", options.host), ("unknown_to_linker", options.linker)):
        if options.flag(flag) or options.flag("unknown_to_both"):
            where.append(argument)
            known = True
    if not known:
        raise CuccError(f"cucc: fatal: Unknown option '{argument}'")


def _next(arguments: List[str], at: int, option: str) -> str:
    if at >= len(arguments):
        raise CuccError(f"cucc: fatal: '{option}' wants a value")
    return arguments[at]


def _store(options: Options, option: Option, value: str, depth: int) -> None:
    if option.name == "options_file":
        if depth > 20:
            raise CuccError(f"cucc: fatal: options file {value} includes itself")
        for name in split_commas(value):
            try:
                text = Path(name).read_text(encoding="utf-8")
            except OSError as error:
                raise CuccError(f"cucc: fatal: options file {name}: {error.strerror}") from None
            _read(options, shlex.split(text, comments=True), depth + 1)
        return
    values = [_unquote(part) for part in split_commas(value)] if option.kind == LIST else [value]
    for part in values:
        if option.values and part not in option.values:
            raise CuccError(
                f"cucc: fatal: Value '{part}' is not defined for option '{option.spellings[-1].lstrip('-')}'; "
                f"it takes {', '.join(option.values)}"
            )
    if option.kind == NOTHING_VALUE:
        return
    if option.kind == VALUE:
        options.values[option.name] = value
        return
    if option.name in ("architecture", "code", "generate_code"):
        _check_architectures(option, value)
    if option.name in ("include", "library_path", "link_library"):
        values = split_commas(value)
    options.lists.setdefault(option.name, []).extend(values)
    if option.name == "link_library":
        options.link_order.extend(f"-l{name}" for name in values)
    elif option.name == "linker_options":
        options.link_order.extend(part for name in values for part in ("-Xlinker", name))
    if option.name == "optimize":
        options.values["optimize"] = value


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _check_architectures(option: Option, value: str) -> None:
    for part in re.split(r"[\[\],=\s\"']+", value):
        if part and not ARCHITECTURE.fullmatch(part):
            raise CuccError(f"cucc: fatal: Unsupported gpu architecture '{part}' ({option.spellings[0]})")


def describe() -> str:
    """The table as text, for --help."""
    lines = ["usage: cucc [options] file...", "", "Options that act, as nvcc's do:"]
    lines += ["  " + ", ".join(option.spellings) for option in TABLE if not option.why]
    for kinds, title in (
        ((NOTHING, NOTHING_VALUE), "Options that are taken and change nothing on this device:"),
        ((REFUSED,), "Options that are refused:"),
    ):
        reasons: Dict[str, List[str]] = {}
        for option in TABLE:
            if option.kind in kinds:
                reasons.setdefault(option.why, []).extend(option.spellings)
        lines += ["", title]
        for why, spellings in reasons.items():
            lines += [f"  {', '.join(spellings)}", f"      {why}"]
    return "\n".join(lines)
