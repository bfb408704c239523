"""Joining the object files of the host pass and the device pass into one.

Note: two programs in one file
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Both passes compile the same source under different macros, so equal symbols may have different contents. The linker
must merge none of them: the device object's symbols become local, except for what the table of kernels names; its
groups of mergeable sections are dissolved; its start-up code, which would run the host's a second time, goes away
together with all code that no kernel reaches. Managed variables are the exception: both passes mean the host pass's.
"""

import re
import subprocess
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Pattern, Sequence, Set, Tuple

from . import toolkit
from .errors import CuccError
from .rewriting.variables import BOTH_SECTION, FUNCTION_SECTION, TEMPLATE, Variable

MARK = re.compile(r"^_ZZ(.+)E15__mxmaca_kernel(?:_\d+)?$")
# The indices of the running thread, which relocatable objects have in common.
INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim", "_ZN6mxmaca6parkedE")
DEVICE_PREFIX = "__mxmaca_device."
BOTH_SUFFIX = ".device"  # demangled: f(int) [clone .device]
# Functions of the C library that CUDA's device code has under the same name with another meaning. They are exchanged
# where device code calls them, so host code of the same file keeps the C library's.
DEVICE_LIBRARY = {
    "clock": "__cudaClock",  # counts the device's cycles, not the process's time
    "printf": "__cudaPrintf",  # returns the number of arguments, not of characters
    "__printf_chk": "__cudaPrintfChecked",
    "vprintf": "__cudaVprintf",
    # They would end the process; a kernel can only fail.
    "abort": "__cudaAbort",
    "exit": "__cudaExit",
    "_exit": "__cudaExitAtOnce",
    "_Exit": "__cudaExitAtOnceC",
    "quick_exit": "__cudaExitQuickly",
    # The host's would wait for the very grid that calls them, or overtake what its block has launched.
    "cudaDeviceSynchronize": "__cudaDeviceSynchronizeInKernel",
    "cudaMemcpyAsync": "__cudaMemcpyInKernel",
    "cudaMemsetAsync": "__cudaMemsetInKernel",
}
START_UP = (".init_array*", ".ctors*", ".preinit_array*", ".fini_array*", ".dtors*", ".rela.init_array*",
            ".rela.ctors*", ".rela.fini_array*")  # fmt: skip
# Of `objdump -t`.
TABLE_LINE = re.compile(r"^[0-9a-f]+ (.)......\s+(\S+)\s+([0-9a-f]+)\s+(?:\.\w+\s+)?(\S+)$")
STARTING = re.compile(r"\[\.text(?:\.startup|\S*(?:_GLOBAL__sub_I|__static_initialization))")
DATA = (".bss", ".data", ".rodata", ".sbss", ".sdata")
Run = Callable[[Sequence[str]], None]


class Symbol(NamedTuple):
    """One line of `nm`."""

    name: str
    kind: str
    size: int


class Sharing(NamedTuple):
    """What the object shows to others."""

    relocatable: bool  # its device code can be called from other objects' device code
    exported: bool  # the host's names of device variables stay visible
    declared_both: Set[str]  # __host__ __device__ functions of other files, unqualified


class Placed(NamedTuple):
    """A symbol and the section that it lies in."""

    name: str
    binding: str  # l: local, g: global
    section: str
    size: int


def _output(*command: object) -> List[str]:
    """The lines that a tool prints.

    Raises:
        CuccError: it is not there, or has failed.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        raise CuccError(f"cucc: fatal: {command[0]}: {error.strerror}. Is binutils installed?") from None
    if done.returncode:
        raise CuccError(f"cucc: error: {command[0]} {command[-1]}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def symbols(path: Path) -> Dict[str, Symbol]:
    """The symbols that the object file defines."""
    found = {}
    for line in _output("nm", "--defined-only", "-S", "-P", path):
        parts = line.split(" ")
        if len(parts) >= 3:
            size = int(parts[3], 16) if len(parts) > 3 and parts[3] else 0
            found[parts[0]] = Symbol(parts[0], parts[1], size)
    return found


def _table_of(path: Path) -> List[Placed]:
    """The object file's symbol table, with sections."""
    matches = map(TABLE_LINE.match, _output("objdump", "-t", path))
    return [Placed(m.group(4), m.group(1), m.group(2), int(m.group(3), 16)) for m in matches if m]


def variable_symbols(path: Path, wanted: Sequence[Variable]) -> Dict[str, Placed]:
    """The variables that lie in the sections named, by section; those of a template by TEMPLATE and their symbol."""
    sections = {variable.section for variable in wanted}
    templates = [_symbols_of(variable) for variable in wanted if variable.section.startswith(TEMPLATE)]
    found: Dict[str, Placed] = {}
    for one in _table_of(path) if sections else []:
        if one.section in sections and one.name != one.section:
            found.setdefault(one.section, one)
        elif one.section.startswith(DATA) and any(form.match(one.name) for form in templates):
            found[TEMPLATE + one.name] = one
    return found


def _symbols_of(variable: Variable) -> Pattern[str]:
    """The symbols of a template's variables: _ZL5tableIfE, _ZN5space5tableILi3EEE."""
    name = variable.section[len(TEMPLATE) :]
    return re.compile(rf"_Z(?=[NL\d])(?:\w*?[^\d])?{len(name)}{name}I\w+E$")  # no local variable, no guard


def _each(variables: Sequence[Variable], found: Dict[str, Placed]) -> List[Variable]:
    """The variables with those of templates, which `found` has, in the place of the templates."""
    result = []
    for variable in variables:
        if variable.section.startswith(TEMPLATE):
            form = _symbols_of(variable)
            names = [key for key in found if key.startswith(TEMPLATE) and form.match(key[len(TEMPLATE) :])]
            result += [Variable(name, variable.kind) for name in names]
        else:
            result.append(variable)
    return result


def device_functions_in(path: Path, section: str = FUNCTION_SECTION) -> List[str]:
    """The functions that the rewriting has put into sections of their own."""
    form = re.compile(re.escape(section) + r"\d+")
    return [one.name for one in _table_of(path) if one.binding == "g" and form.fullmatch(one.section)]


def started_variables(device: Path, variables: Sequence[Variable]) -> List[str]:
    """The device variables that start-up code of the object sets, for compilers that cannot be asked (GCC 9).

    The device's start-up code never runs.
    """
    known = {section: found.name for section, found in variable_symbols(device, variables).items()}
    known.update({symbol: symbol for symbol in known.values()})
    found, starting = set(), False
    for line in _output("objdump", "-r", device) if known else []:
        if line.startswith("RELOCATION RECORDS FOR"):
            starting = STARTING.search(line) is not None
        elif starting:
            target = re.match(r"^[0-9a-f]{16} \S+\s+(\S+?)(?:[-+]0x[0-9a-f]+)?$", line)
            if target and target.group(1) in known:
                found.add(known[target.group(1)])
    return [demangled(symbol) for symbol in sorted(found)]


def kernels(host: Dict[str, Symbol]) -> List[Tuple[str, str, str]]:
    """The kernels of a host object: function symbol, mangled name, symbol of the facts."""
    found = []
    for name in host:
        match = MARK.match(name)
        if match is None:
            continue
        mangled = "_Z" + match.group(1)
        function = mangled if mangled in host else _plain(match.group(1), host)
        if function:
            found.append((function, function, name))
    return sorted(found)


def _plain(encoding: str, host: Dict[str, Symbol]) -> str:
    """The symbol of a function with C linkage."""
    match = re.match(r"^(\d+)(\w+)$", encoding)
    if match and len(match.group(2)) == int(match.group(1)) and match.group(2) in host:
        return match.group(2)
    return ""


def _table(
    identity: str,
    entries: Sequence[Tuple[str, str, str, str]],
    variables: Sequence[Tuple[str, str, int, str]],
    static_shared: Sequence[int],
) -> str:
    flags = {"device": 0, "constant": 1, "managed": 2}
    lines = ['.section .data.rel.ro.mxmaca,"aw"', ".balign 8", f".globl __mxmaca_table_{identity}"]
    lines += [f".hidden __mxmaca_table_{identity}", f"__mxmaca_table_{identity}:"]
    lines += [f".quad 3, {len(entries)}, .Lkernels, {len(variables)}, .Lvariables, .Lshared"]
    lines += [".Lshared:", *(f".quad {size}" for size in static_shared), ".Lkernels:"]
    for position, (function, device, _, facts) in enumerate(entries):
        pointer = f'"{device}"' if device else "0"
        lines.append(f'.quad "{function}", {pointer}, .Lname{position}, "{facts}"')
    lines.append(".Lvariables:")
    for position, (host, device, size, kind) in enumerate(variables):
        lines.append(f'.quad "{host}", "{device}", {size}, .Lvariable{position}, {flags[kind]}')
    lines.append('.section .rodata.mxmaca,"a"')
    for position, (_, _, name, _) in enumerate(entries):
        lines.append(f'.Lname{position}: .string "{name}"')
    for position, (name, _, _, _) in enumerate(variables):
        lines.append(f'.Lvariable{position}: .string "{name}"')
    lines.append('.section .note.GNU-stack,"",@progbits')
    return "\n".join(lines) + "\n"


def static_shared(device: Path, found: Sequence[Tuple[str, str, str]]) -> List[int]:
    """Bytes of shared memory that each kernel itself declares, functions that it calls left out.

    Raises:
        CuccError: more than a kernel can have.
    """
    # A kernel's body may be there twice (phases.py), with variables of its own each time.
    bodies: Dict[str, int] = {}
    for one in _table_of(device):
        match = re.match(r"(_ZZ(?:Z?)\S+E)\d+\w+$", one.name)
        if match is not None and one.section.startswith((".tbss", ".tdata")):
            bodies[match.group(1)] = bodies.get(match.group(1), 0) + one.size
    sizes = []
    most = toolkit.limit("kSharedPerBlock")
    for _, name, mark in found:
        kernel = MARK.match(mark)
        start = (f"_ZZZ{kernel.group(1)}E", f"_ZZ{kernel.group(1)}E") if kernel else ()
        sizes.append(max((size for body, size in bodies.items() if body.startswith(start)), default=0))
        if sizes[-1] > most:
            raise CuccError(
                f"cucc: error: kernel {demangled(name)} uses {sizes[-1]} bytes of static shared memory, "
                f"{most} is the most; more can be had as dynamic shared memory"
            )
    return sizes


# What device code may take from the host's C++ library.
LIBRARY = re.compile(r"_Z(?:St|NK?St|n[wa]|d[la]|T[IS][a-z]*(?:$|N?St|N10__cxxabiv1)|TVN10__cxxabiv1|N9__gnu_cxx)")


def lacks_bodies(host: Path, device: Path, folder: Path, run: Run) -> bool:
    """Whether kernels want what the device pass was not shown (bodies.py): a kernel, or a C++ function of elsewhere."""
    names, there = [name for name, _, _ in kernels(symbols(host))], symbols(device)
    if any(name not in there for name in names):
        return True
    if not names:
        return False
    reached = _reached(device, names, folder, run)
    # The symbol table still has what only removed code called.
    calls = map(re.compile(r"^[0-9a-f]{16} \S+\s+(_Z\w+)").match, _output("objdump", "-r", reached))
    wanted = {match.group(1) for match in calls if match}
    there = symbols(reached)
    return any(name not in there and not LIBRARY.match(name) for name in wanted)


def _reached(device: Path, roots: Sequence[str], folder: Path, run: Run) -> Path:
    """The device object without start-up code, and with nothing that the roots do not reach."""
    bare, reached = folder / "device.bare.o", folder / "device.reached.o"
    starts = [f"--remove-section={name}" for name in START_UP]
    run(["objcopy", "--wildcard", *starts, *_listed(folder, "globalize-symbols", roots), str(device), str(bare)])
    _write(folder / "keep.ld", [f'-u "{name}"' for name in roots])
    collect = ["--gc-sections", "--force-group-allocation", f"@{folder / 'keep.ld'}", "-e", roots[0]]
    run(["ld", "-r", *collect, str(bare), "-o", str(reached)])
    return reached


def join(
    host: Path,
    device: Path,
    output: Path,
    folder: Path,
    identity: str,
    variables: Sequence[Variable],
    device_functions: Set[str],
    sharing: Sharing,
    run: Run,
) -> None:
    """Make `output` of the two objects. `folder` is for intermediate files."""
    host_symbols, device_symbols = symbols(host), symbols(device)
    found = kernels(host_symbols)
    # Without device code are those that only the host's text launches; they are in the table, to be refused by name.
    missing = {function for function, _, _ in found if function not in device_symbols}
    host_variables = variable_symbols(host, variables)
    device_variables = variable_symbols(device, variables)
    variables = _each(variables, host_variables)
    names = [function for function, _, _ in found if function not in missing]
    shared = [v for v in variables if v.section in host_variables and v.section in device_variables]
    # Storage that both passes share: managed variables, and what device code of other objects refers to by name.
    managed = [
        v for v in shared if v.kind == "managed" or (sharing.relocatable and device_variables[v.section].binding != "l")
    ]
    own = [device_variables[v.section].name for v in shared if v not in managed]
    called = device_functions_in(device) if sharing.relocatable else []
    indices = [name for name in INDICES if name in device_symbols] if sharing.relocatable else []
    # Functions that host code has as well: the device's versions have other names in all objects.
    both = device_functions_in(device, BOTH_SECTION) if sharing.relocatable else []
    roots = names + [device_variables[v.section].name for v in shared] + called + both

    # The device object: no start-up code, only what kernels reach, and no name that the host object has.
    prefix = f"{DEVICE_PREFIX}{identity}."
    renamed = {name: prefix + name for name in names + own}
    renamed.update({device_variables[v.section].name: host_variables[v.section].name for v in managed})
    versions = {name: name + BOTH_SUFFIX for name in [*both, *_undefined(device, sharing.declared_both)]}
    renamed.update(versions)
    common = [host_variables[v.section].name for v in managed]
    hidden = folder / "device.hidden.o"
    # A file without device code has none to join.
    if roots:
        reached = _reached(device, roots, folder, run)
        pairs = [f"{old} {new}" for old, new in renamed.items()]
        pairs += [f"{name} {DEVICE_LIBRARY[name]}" for name in _taken(reached) if name in DEVICE_LIBRARY]
        run(["objcopy", *_listed(folder, "redefine-syms", pairs), str(reached), str(hidden)])
        kept = _listed(folder, "keep-global-symbols", [*renamed.values(), *called, *indices] or ["none"])
        run(["objcopy", *kept, *_listed(folder, "weaken-symbols", common), str(hidden)])

    # The host object: what is local must be found by the table; device functions of the same name in other files, each
    # of them its own program on a device, must not clash.
    facts = [mark for _, _, mark in found]
    local = [
        n for n in [*names, *missing, *facts] if host_symbols[n].kind.islower() and host_symbols[n].kind not in "uvw"
    ]
    local += [host_variables[v.section].name for v in shared if host_variables[v.section].binding == "l"]
    weak = _device_only(host_symbols, device_functions)
    # The device's version of a function that other objects call takes the name; nobody calls the host's.
    hidden_names = device_functions_in(host) if called else []
    weak = [name for name in weak if name not in hidden_names]
    prepared = host
    if local or weak or hidden_names:
        prepared = folder / "host.prepared.o"
        changes = _listed(folder, "globalize-symbols", local) + _listed(folder, "weaken-symbols", weak)
        changes += _listed(folder, "localize-symbols", hidden_names)
        run(["objcopy", *changes, str(host), str(prepared)])

    entries = [
        (function, "" if function in missing else prefix + function, name, mark) for function, name, mark in found
    ]
    table_variables = [
        (
            host_variables[v.section].name,
            renamed[device_variables[v.section].name],
            host_variables[v.section].size,
            v.kind,
        )
        for v in shared
    ]
    source, table = folder / "table.s", folder / "table.o"
    source.write_text(_table(identity, entries, table_variables, static_shared(device, found)), encoding="utf-8")
    run(["as", str(source), "-o", str(table)])
    merged = folder / "merged.o"
    parts = [prepared, hidden, table] if roots else [prepared, table]
    run(["ld", "-r", *map(str, parts), "-o", str(merged)])
    inner = [name for name in renamed.values() if name.startswith(prefix)] + local
    if not sharing.relocatable and not sharing.exported:
        # A variable of the same name in another object is another variable.
        inner += [host_variables[v.section].name for v in shared]
    run(["objcopy", *_listed(folder, "localize-symbols", inner), str(merged), str(output)])


def host_calls(
    checked: Path, kernel_names: Sequence[str], device_functions: Set[str], folder: Path, run: Run
) -> List[Tuple[str, str]]:
    """The host's own functions that kernels call, with a place, in a device object compiled without inlining.

    Plain functions are seen, in this file or another; not templates, inline functions, members of the standard library.
    """
    if not kernel_names:
        return []
    reached = folder / "checked.reached.o"
    _write(folder / "check.ld", [f'-u "{name}"' for name in kernel_names])
    roots = [f"@{folder / 'check.ld'}", "-e", kernel_names[0]]
    run(["ld", "-r", "--gc-sections", *roots, str(checked), "-o", str(reached)])
    found = []
    for line in _output("nm", "-l", reached):
        match = re.match(r"^[0-9a-f ]{16} ([TtU]) (_Z\w+)(?:\t(.*))?$", line)
        if match is None or match.group(2) in kernel_names:
            continue
        name, where = match.group(2), match.group(3) or ""
        # What is undefined and has no place belongs to code that no kernel reaches.
        if not where or where.startswith(str(toolkit.include())):
            continue
        words = _name_parts(name)
        # Lambdas, the engine's and the libraries' own.
        if not words or "Ul" in name or words[0] in ("mxmaca", "std", "cuda") or words[-1].startswith("__"):
            continue
        if not set(words).intersection(device_functions):
            found.append((name, where))
    return found


def demangled(name: str) -> str:
    return "".join(_output("c++filt", name)).strip() or name


def _name_parts(mangled: str) -> List[str]:
    """The names in a mangled function name without template arguments: _ZN1a1fEi is a, f."""
    match = re.match(r"^_ZN?K?L?", mangled)
    at = match.end() if match else 0
    parts: List[str] = []
    while True:
        length = re.match(r"L?(\d+)", mangled[at:])
        if length is None:
            return parts
        at += length.end()
        parts.append(mangled[at : at + int(length.group(1))])
        at += int(length.group(1))


def _device_only(host: Dict[str, Symbol], functions: Set[str]) -> List[str]:
    """The host's versions of the device's functions."""
    return [name for name, symbol in host.items() if symbol.kind == "T" and functions.intersection(_parts(name))]


def _taken(path: Path) -> List[str]:
    """The symbols that the object takes from others."""
    return [line.split(" ")[0] for line in _output("nm", "-u", "-P", path)]


def _undefined(path: Path, functions: Set[str]) -> List[str]:
    """The symbols of these functions, by unqualified name, that the object takes from others."""
    return [name for name in _taken(path) if functions.intersection([name, *_parts(name)])] if functions else []


def _parts(symbol: str) -> Iterator[str]:
    """What a mangled name may be made of: the characters behind each number."""
    for match in re.finditer(r"\d+", symbol):
        yield symbol[match.end() : match.end() + int(match.group())]


def _listed(folder: Path, option: str, names: Sequence[str]) -> List[str]:
    """An option of objcopy that takes a file of names; none for no names, since it refuses an empty file."""
    if not names:
        return []
    path = folder / f"{option}.{len(list(folder.iterdir()))}"
    _write(path, names)
    return [f"--{option}={path}"]


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
