"""The command line: nvcc's options as a table."""

import shlex
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Set, Tuple

from .errors import CuccError

FLAG, VALUE, LIST, JOINED, HOST, IGNORED, IGNORED_VALUE = (
    "flag",
    "value",
    "list",
    "joined",
    "host",
    "ignored",
    "ignored value",
)


class Option(NamedTuple):
    """One option: how it is stored, what it takes, how it is written."""

    name: str
    kind: str
    spellings: Tuple[str, ...]


def _option(name: str, kind: str, *spellings: str) -> Option:
    return Option(name, kind, spellings)


# VALUE keeps the last, LIST all, split at commas; JOINED may have its value attached (-Ifoo); HOST goes on to the host
# compiler as it is. IGNORED options speak of NVIDIA's tools or hardware alone: nothing that they ask for can be missed.
TABLE: Tuple[Option, ...] = (
    # What to make
    _option("compile", FLAG, "-c", "--compile"),
    _option("device_c", FLAG, "-dc", "--device-c"),
    _option("device_w", FLAG, "-dw", "--device-w"),
    _option("device_link", FLAG, "-dlink", "--device-link"),
    _option("preprocess", FLAG, "-E", "--preprocess"),
    _option("dependencies", FLAG, "-M", "--generate-dependencies"),
    _option("user_dependencies", FLAG, "-MM", "--generate-nonsystem-dependencies"),
    _option("dependencies_too", FLAG, "-MD", "--generate-dependencies-with-compile"),
    _option("user_dependencies_too", FLAG, "-MMD", "--generate-nonsystem-dependencies-with-compile"),
    _option("dependency_targets", FLAG, "-MP", "--generate-dependency-targets"),
    _option("dependency_file", VALUE, "-MF", "--dependency-output"),
    _option("dependency_target", VALUE, "-MT", "--dependency-target-name"),
    _option("library", FLAG, "-lib", "--lib"),
    _option("shared", FLAG, "-shared", "--shared"),
    _option("cubin", FLAG, "-cubin", "--cubin"),
    _option("fatbin", FLAG, "-fatbin", "--fatbin"),
    _option("ptx", FLAG, "-ptx", "--ptx"),
    _option("cuda", FLAG, "-cuda", "--cuda"),
    _option("run", FLAG, "-run", "--run"),
    _option("run_arguments", LIST, "-run-args", "--run-args"),
    _option("output", VALUE, "-o", "--output-file"),
    _option("output_directory", VALUE, "-odir", "--output-directory"),
    _option("language", VALUE, "-x", "--x"),
    # Preprocessor and libraries
    _option("define", JOINED, "-D", "--define-macro"),
    _option("undefine", JOINED, "-U", "--undefine-macro"),
    _option("include", JOINED, "-I", "--include-path"),
    _option("system_include", LIST, "-isystem", "--system-include"),
    _option("pre_include", LIST, "-include", "--pre-include"),
    _option("library_path", JOINED, "-L", "--library-path"),
    _option("link_library", JOINED, "-l", "--library"),
    # Language and code
    _option("standard", VALUE, "-std", "--std"),
    _option("optimize", JOINED, "-O", "--optimize"),
    _option("device_optimize", VALUE, "-dopt", "--dopt"),
    _option("debug", FLAG, "-g", "--debug"),
    _option("device_debug", FLAG, "-G", "--device-debug"),
    _option("line_info", FLAG, "-lineinfo", "--generate-line-info"),
    _option("profile", FLAG, "-pg", "--profile"),
    _option("machine", VALUE, "-m", "--machine"),
    _option("machine64", FLAG, "-m64"),
    _option("relocatable", VALUE, "-rdc", "--relocatable-device-code"),
    _option("architecture", VALUE, "-arch", "--gpu-architecture"),
    _option("code", LIST, "-code", "--gpu-code"),
    _option("generate_code", VALUE + "s", "-gencode", "--generate-code"),
    _option("fast_math", FLAG, "-use_fast_math", "--use_fast_math"),
    _option("flush", VALUE, "-ftz", "--ftz"),
    _option("precise_division", VALUE, "-prec-div", "--prec-div"),
    _option("precise_root", VALUE, "-prec-sqrt", "--prec-sqrt"),
    _option("fuse", VALUE, "-fmad", "--fmad"),
    _option("default_stream", VALUE, "-default-stream", "--default-stream"),
    _option(
        "extended_lambda",
        FLAG,
        "-extended-lambda",
        "--extended-lambda",
        "-expt-extended-lambda",
        "--expt-extended-lambda",
    ),
    _option("relaxed_constexpr", FLAG, "-expt-relaxed-constexpr", "--expt-relaxed-constexpr"),
    _option("run_time", VALUE, "-cudart", "--cudart"),
    # Tools
    _option("host_compiler", VALUE, "-ccbin", "--compiler-bindir"),
    _option("compiler_options", LIST, "-Xcompiler", "--compiler-options"),
    _option("linker_options", LIST, "-Xlinker", "--linker-options"),
    _option("archive_options", LIST, "-Xarchive", "--archive-options"),
    _option("options_file", LIST, "-optf", "--options-file"),
    _option("dry_run", FLAG, "-dryrun", "--dryrun"),
    _option("verbose", FLAG, "-v", "--verbose"),
    _option("version", FLAG, "-V", "--version"),
    _option("help", FLAG, "-h", "--help"),
    _option("keep", FLAG, "-keep", "--keep", "-save-temps", "--save-temps"),
    _option("keep_directory", VALUE, "-keep-dir", "--keep-dir"),
    _option("no_warnings", FLAG, "-w", "--disable-warnings"),
    _option("errors", LIST, "-Werror", "--Werror"),
    _option("list_architectures", FLAG, "-arch-ls", "--list-gpu-arch", "-code-ls", "--list-gpu-code"),
    # Of NVIDIA's own tools and hardware
    _option(
        "",
        IGNORED_VALUE,
        "-Xptxas",
        "--ptxas-options",
        "-Xnvlink",
        "--nvlink-options",
        "-Xcudafe",
        "--cudafe-options",
        "-Xfatbin",
        "--fatbin-options",
        "-Xcicc",
        "-maxrregcount",
        "--maxrregcount",
        "-t",
        "--threads",
        "-split-compile",
        "--split-compile",
        "-diag-suppress",
        "--diag-suppress",
        "-diag-warn",
        "--diag-warn",
        "-diag-error",
        "--diag-error",
        "-compress-mode",
        "--compress-mode",
        "-static-global-template-stub",
        "--static-global-template-stub",
        "-objtemp",
        "--objdir-as-tempdir",
        "-target-dir",
        "--target-directory",
        "-ewp",
        "--extensible-whole-program",
        "-cudadevrt",
        "--cudadevrt",
        "-dlink-time-opt",
        "-err-no",
        "--forward-slash-prefix-opts",
        "-opt-info",
        "--optimization-info",
        "-ofc",
        "--ofast-compile",
        "-time",
        "--time",
        "-jobserver-fds",
    ),
    _option(
        "",
        IGNORED,
        "-res-usage",
        "--resource-usage",
        "-Wno-deprecated-gpu-targets",
        "--Wno-deprecated-gpu-targets",
        "-Wno-deprecated-declarations-gpu",
        "-restrict",
        "--restrict",
        "-allow-unsupported-compiler",
        "--allow-unsupported-compiler",
        "-forward-unknown-to-host-compiler",
        "--forward-unknown-to-host-compiler",
        "-forward-unknown-opts",
        "--forward-unknown-opts",
        "-forward-unknown-to-host-linker",
        "--forward-unknown-to-host-linker",
        "-dlto",
        "--dlink-time-opt",
        "-lto",
        "--lto",
        "-nodlink",
        "--no-device-link",
        "-noprof",
        "--dont-use-profile",
        "-nohdmoveforward",
        "--no-host-device-move-forward",
        "-nohdinitlist",
        "--no-host-device-initializer-list",
        "-src-in-ptx",
        "--source-in-ptx",
        "-extra-device-vectorization",
        "--extra-device-vectorization",
        "-no-compress",
        "--no-compress",
        "-Wreorder",
        "--Wreorder",
        "-Wdefault-stream-launch",
        "--Wdefault-stream-launch",
        "-Wmissing-launch-bounds",
        "--Wmissing-launch-bounds",
        "-Wext-lambda-captures-this",
        "--Wext-lambda-captures-this",
        "-keep-device-functions",
        "--keep-device-functions",
        "-clean",
        "--clean-targets",
        "-minimal",
        "--minimal",
        "-brief-diag",
        "-jobserver",
        "--jobserver",
        "-no-align-double",
        "-display-error-number",
        "--display-error-number",
        "-use-local-env",
        "--use-local-env",
    ),
)
VALUES = VALUE + "s"
BY_SPELLING: Dict[str, Option] = {spelling: option for option in TABLE for spelling in option.spellings}
# Options of the host compiler that nvcc hands on, by their beginnings.
HOST_PREFIXES = (
    "-f",
    "-W",
    "-m",
    "-pthread",
    "-pipe",
    "-pedantic",
    "-static",
    "-nostd",
    "-rdynamic",
    "-ansi",
    "-iquote",
    "-idirafter",
    "-no-pie",
    "-pie",
    "-s",
    "-g",
    "-r",
    "-B",
    "--param",
    "--sysroot",
)
HOST_VALUES = ("-iquote", "-idirafter", "-imacros", "--param", "-z", "-T", "-u", "-B")
JOINED_SPELLINGS = ("-D", "-U", "-I", "-L", "-l", "-O")


class Options:
    """What the command line asked for."""

    def __init__(self) -> None:
        self.flags: Set[str] = set()
        self.values: Dict[str, str] = {}
        self.lists: Dict[str, List[str]] = {}
        self.inputs: List[Tuple[str, str]] = []  # file and the language given for it
        self.host: List[str] = []
        self.link_order: List[str] = []  # inputs and -l, as the linker wants them

    def flag(self, name: str) -> bool:
        return name in self.flags

    def value(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)

    def all(self, name: str) -> List[str]:
        return self.lists.get(name, [])


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
        spelling, equals, attached = argument.partition("=")
        option = BY_SPELLING.get(argument) or (BY_SPELLING.get(spelling) if equals else None)
        value = None
        if option is not None and argument not in BY_SPELLING:
            value = attached
        if option is None:
            prefix = next((p for p in JOINED_SPELLINGS if argument.startswith(p)), None)
            threads = argument[:2] == "-t" and argument[2:].isdigit()
            if prefix is not None:
                option, value = BY_SPELLING[prefix], argument[len(prefix) :]
            elif threads:
                continue
            elif argument.startswith("-std") or argument.startswith("-x") and len(argument) > 2 and argument[1] == "x":
                option, value = BY_SPELLING["-x"], argument[2:]
            elif argument.startswith(HOST_PREFIXES) or argument in HOST_VALUES:
                options.host.append(argument)
                if argument in HOST_VALUES:
                    options.host.append(_next(arguments, at, argument))
                    at += 1
                continue
            else:
                raise CuccError(f"cucc: fatal: Unknown option '{argument}'")
        if option.kind in (FLAG, IGNORED):
            if value is not None and value.lower() not in ("true", "1", "yes"):
                if value.lower() in ("false", "0", "no"):
                    options.flags.discard(option.name)
                    continue
                if option.kind == FLAG:
                    raise CuccError(f"cucc: fatal: '{spelling}' takes no value, and '{value}' was given")
            if option.kind == FLAG:
                options.flags.add(option.name)
            continue
        if value is None:
            value = _next(arguments, at, argument)
            at += 1
        _store(options, option, value, depth)


def _next(arguments: List[str], at: int, option: str) -> str:
    if at >= len(arguments):
        raise CuccError(f"cucc: fatal: '{option}' wants a value")
    return arguments[at]


def _store(options: Options, option: Option, value: str, depth: int) -> None:
    if option.kind == IGNORED_VALUE:
        return
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
    if option.kind == VALUE:
        options.values[option.name] = value
        return
    values = [value]
    if option.kind == LIST:
        values = [_unquote(part) for part in split_commas(value)]
    elif option.name in ("include", "library_path", "link_library"):
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
