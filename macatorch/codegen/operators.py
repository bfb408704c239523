"""Write the C++ registrations of the device operators for one torch release.

Reads the release's own operator list (native_functions.yaml, which the wheel carries under torchgen/packaged),
operators.toml and cpu_dtypes/. Leaves a specification for each operator, shards with the unboxed wrappers, and for each
file of csrc/ops a header that registers its functions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from table import STRIDED, Function, Table, TableError, tomllib

LAYOUTS = (STRIDED, "Sparse", "SparseCsr", "NestedTensor", "Quantized")
AUTOCAST = "Autocast"
# The device whose operators upstream lists; ours are registered for it, or for another one.
UPSTREAMS = "CUDA"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the unpacked wheel: the folder that holds torchgen/")
    parser.add_argument("--table", type=Path, required=True, help="operators.toml")
    parser.add_argument("--library", type=Path, required=True, help="libtorch_cuda.so, for upstream's wrapper names")
    parser.add_argument("--cpu-dtypes", type=Path, required=True, help="folder with a table for each release")
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    parser.add_argument("--report", type=Path, help="leave what was found here, as JSON")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--device", default=UPSTREAMS, help="backend of the dispatch keys to register for")
    parser.add_argument("--host", default="CPU", help="backend of the dispatch keys whose kernels compute")
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="SOURCE", help="files of csrc/ops that are left out"
    )
    return parser.parse_args()


def iterator_operators(yaml: Path) -> Set[str]:
    """Names that native_functions.yaml marks as computed by TensorIterator: the mark is a comment or a base class."""
    names: Set[str] = set()
    for entry in re.split(r"^- func: ", yaml.read_text(), flags=re.M)[1:]:
        name = entry.split("(", 1)[0].strip()
        if (
            re.search(r"device_check:\s*NoCheck\s*#\s*TensorIterator", entry)
            or "structured_inherits: TensorIteratorBase" in entry
        ):
            names.add(name)
    return names


def torch_release(site: Path) -> Tuple[int, ...]:
    """Major, minor and patch number, from the headers: newer releases have them in a file of its own."""
    include = site / "torch" / "include" / "torch"
    headers = [include / "headeronly" / "version.h", include / "csrc" / "api" / "include" / "torch" / "version.h"]
    text = next(path for path in headers if path.exists()).read_text()
    return tuple(int(n) for n in re.findall(r"define TORCH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def unboxable(schema: Any) -> bool:
    """Signatures that Unboxed.h covers: no generator or device argument, and at most one tensor written."""
    text = str(schema)
    if re.search(r"\b(Generator|Device|Storage|Stream)\b|\?\[\]|Tensor\?\[\]", text):
        return False
    written = [a for a in schema.arguments.flat_all if a.annotation is not None and a.annotation.is_write]
    if any(a.type.is_list_like() for a in written) or len(written) > 1:
        return False
    return not (written and len(schema.returns) != 1)


class Upstream:
    """What a release says of its operators."""

    def __init__(self, site: Path) -> None:
        sys.path.insert(0, str(site))
        from torchgen.gen import parse_native_yaml
        from torchgen.model import DispatchKey

        native = site / "torchgen" / "packaged" / "ATen" / "native"
        parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
        self._backends, self._key = parsed.backend_indices, DispatchKey.parse
        self._iterators = iterator_operators(native / "native_functions.yaml")
        self.by_name: Dict[str, Any] = {str(f.func.name): f for f in parsed.native_functions}
        self._functional = {
            f.func.signature(): f for f in parsed.native_functions if f.func.kind().name == "functional"
        }

    def kernel(self, f: Any, key: str) -> Optional[str]:
        found = self._backends[self._key(key)].get_kernel(f)
        return None if found is None else found.kernel

    def has_kernel(self, f: Any, key: str) -> bool:
        if self.kernel(f, key) is not None:
            return True
        return f.structured_delegate is not None and self.has_kernel(self.by_name[str(f.structured_delegate)], key)

    def functional(self, f: Any) -> Any:
        """The form of an operator that returns its result; the operator itself where there is none."""
        return self._functional.get(f.func.signature(), f)

    def is_on_device(self, f: Any, layout: str) -> bool:
        if layout == STRIDED:
            return self.has_kernel(f, UPSTREAMS)
        return self.kernel(f, f"{layout}{UPSTREAMS}") is not None

    def runs_on_cpu(self, f: Any) -> bool:
        composite = f.has_composite_explicit_autograd_kernel or f.has_composite_explicit_autograd_non_functional_kernel
        return composite or self.has_kernel(f, "CPU")

    def is_iterator(self, f: Any) -> bool:
        return str(f.func.name) in self._iterators or str(f.structured_delegate) in self._iterators


def origin_of(function: Function) -> str:
    return f"registered at macatorch/csrc/ops/{function.source}.cpp ({function.treatment})"


class Entry(NamedTuple):
    """What becomes of an operator at the dispatch key of one layout."""

    layout: str
    name: str
    treatment: str
    function: Optional[Function]  # of ours; without one the CPU kernel is called
    unboxed: bool
    f: Any  # torchgen's NativeFunction
    functional: Any  # the same for the form that returns its result

    @property
    def symbol(self) -> str:
        return self._symbol(self.f)

    def _symbol(self, f: Any) -> str:
        symbol: str = f.func.name.unambiguous_name()
        return symbol if self.layout == STRIDED else f"{self.layout}_{symbol}"

    def expression(self) -> str:
        """The C++ function to register."""
        expression = "Unboxed<{op}, {spec}>::call" if self.function is None else self.function.expression
        return expression.format(
            op=f"at::_ops::{self.f.func.name.unambiguous_name()}",
            spec=f"spec_{self.symbol}",
            functional=f"at::_ops::{self.functional.func.name.unambiguous_name()}",
        )

    def key(self, backend: str) -> str:
        return backend if self.layout == STRIDED else f"{self.layout}{backend}"

    def origin(self) -> str:
        """Where the kernel comes from, for who dumps the dispatcher."""
        if self.function is None:
            return f"registered at macatorch/operators.toml ({self.treatment})"
        return origin_of(self.function)


def computes_on_cpu(table: Table, upstream: Upstream, layout: str, name: str, f: Any) -> bool:
    """Whether the operator's CPU kernel takes the place of upstream's CUDA kernel."""
    composite = table.is_treated(name, "composite", layout)
    if layout == STRIDED:
        on_cuda = upstream.has_kernel(f, UPSTREAMS)
        return upstream.runs_on_cpu(f) and (on_cuda or composite)
    cuda, cpu = upstream.kernel(f, f"{layout}{UPSTREAMS}"), upstream.kernel(f, f"{layout}CPU")
    if cuda is None or cpu is None:
        return False
    # One function for both is host code over the operators of the members.
    return cuda != cpu or composite or layout == "Quantized"


def is_special(table: Table, name: str) -> bool:
    """What only the boxed call does."""
    return any(table.has(name, policy) for policy in ("waits", "dense_inputs", "nondeterministic"))


def resolve(table: Table, upstream: Upstream) -> List[Entry]:
    """All operators that are registered, layout by layout, in upstream's order."""
    entries: List[Entry] = []
    for layout in (*LAYOUTS, AUTOCAST):
        for name, f in upstream.by_name.items():
            function = table.function(name, layout)
            if function is not None and function.treatment == "own":
                entries.append(Entry(layout, name, "own", function, False, f, upstream.functional(f)))
                continue
            on_cpu = layout != AUTOCAST and computes_on_cpu(table, upstream, layout, name, f)
            if function is not None and not on_cpu and not upstream.is_on_device(f, layout):
                # The release has no CUDA kernel: it composes other operators, or says that there is none.
                continue
            if function is not None and not on_cpu:
                raise TableError(f"operators.toml: {name} is adapted for {layout}, and has no CPU kernel behind it")
            if not on_cpu or table.is_treated(name, "host", layout):
                continue
            unboxed = layout == STRIDED and table.has(name, "unboxed")
            if unboxed and (is_special(table, name) or not unboxable(f.func)):
                raise TableError(f"operators.toml: {name} cannot be unboxed")
            treatments = [row["treatment"] for row in table.rows(name, layout)]
            treatment = next((t for t in ("adapted", "composite") if t in treatments), "cpu")
            entries.append(Entry(layout, name, treatment, function, unboxed, f, upstream.functional(f)))
    return entries


class Specs:
    """The specification of an operator (OperatorSpec), as C++."""

    def __init__(self, table: Table, upstream: Upstream, wrappers: Set[bytes], lacking: Dict[str, List[str]]) -> None:
        self._table, self._upstream, self._wrappers = table, upstream, wrappers
        self._cpu_lacks: Dict[Any, Set[str]] = {}
        for dtype, listed in lacking.items():
            for name in listed:
                if name not in upstream.by_name:
                    raise SystemExit(f"cpu_dtypes, {dtype}: {name} is no operator of this release")
                # The functional form, the one in place and that with `out` have one kernel.
                self._cpu_lacks.setdefault(upstream.by_name[name].func.signature(), set()).add(dtype)

    def of(self, entry: Entry, host: str) -> List[str]:
        """Definitions: what the specification refers to, and the specification."""
        strided = entry.layout == STRIDED
        arguments = list(entry.f.func.arguments.flat_all)
        assert len(arguments) <= 64, entry.name
        written = [i for i, argument in enumerate(arguments) if self.is_written(entry.f, argument)]
        generators = [i for i, argument in enumerate(arguments) if str(argument.type).startswith("Generator")]
        definitions, alert, rules, results = self.extras(entry, [argument.name for argument in arguments])
        fields = [
            f'"{entry.name}"',
            f'"{self.wrapper(entry.f, entry.key(UPSTREAMS))}"',
            f"c10::DispatchKey::{entry.key(host)}",
            f"DeviceCheck::{self.check(entry)}",
            hex(sum(1 << i for i in written)),
            hex(sum(1 << i for i in generators)),
            str(next((i for i, argument in enumerate(arguments) if argument.name == "dtype"), -1)),
            self.flag(strided and self._table.has(entry.name, "waits")),
            self.flag(self._table.has(entry.name, "widen", entry.layout)),
            self.flag(strided and self._table.has(entry.name, "dense_inputs")),
            self.flag(strided and self.counts_versions(entry.f)),
            self.bits(self._cpu_lacks.get(entry.f.func.signature(), ())) if strided else "0",
            self.lacks(entry),
            alert,
            rules,
            results,
        ]
        return [*definitions, f"extern const OperatorSpec spec_{entry.symbol}{{{', '.join(fields)}}};"]

    @staticmethod
    def is_written(f: Any, argument: Any) -> bool:
        """By the schema, or because the operator keeps running statistics, of which most schemas do not tell."""
        if argument.annotation is not None and argument.annotation.is_write:
            return True
        return argument.name in ("running_mean", "running_var") and "backward" not in str(f.func.name.name)

    def extras(self, entry: Entry, names: List[str]) -> Tuple[List[str], str, str, str]:
        """What few operators have, as definitions and the fields that refer to them: alert, rules, results."""
        definitions: List[str] = []
        alert, rules, results = "nullptr", "{}", "{}"
        found = self.alert(entry, names)
        if found is not None:
            definitions.append(f"static constexpr Alert alert_{entry.symbol}{{{found}}};")
            alert = f"&alert_{entry.symbol}"
        messages = self.messages(entry, names)
        if messages:
            rules = f"rules_{entry.symbol}"
            definitions.append(f"static constexpr DeviceRule {rules}[] = {{{', '.join(messages)}}};")
        row = self._table.policy(entry.name, "results", entry.layout)
        if row is not None:
            results = f"results_{entry.symbol}"
            numbers = [-1 if name == "float" else names.index(name) for name in row["results"].split()]
            definitions.append(f"static constexpr int8_t {results}[] = {{{', '.join(map(str, numbers))}}};")
        return definitions, alert, rules, results

    @staticmethod
    def flag(value: bool) -> str:
        return str(value).lower()

    @staticmethod
    def bits(dtypes: Iterable[str]) -> str:
        return " | ".join(f"dtype_bit(at::k{dtype})" for dtype in sorted(dtypes)) or "0"

    def wrapper(self, f: Any, key: str) -> str:
        """The name of upstream's wrapper, as messages have it."""
        prefix, base, overload = f"wrapper_{key}", str(f.func.name.name), f.func.name.overload_name
        suffix = "_out" if f.func.is_out_fn() else ""
        structured = f"{prefix}_{base}_{overload}" if overload else f"{prefix}_{base}"
        for candidate in (f"{prefix}_{overload}_{base}{suffix}", structured, f"{prefix}_{base}"):
            if candidate.encode() in self._wrappers:
                return candidate
        return f"{prefix}_{overload}_{base}{suffix}"

    def check(self, entry: Entry) -> str:
        from torchgen.model import DeviceCheckType

        f = entry.f
        if entry.layout == STRIDED:
            if self._upstream.is_iterator(f) or self._table.has(entry.name, "iterator"):
                # A reduction, say: it looks at its outputs before an iterator is built, which an iterator does not.
                first = next(iter(f.func.arguments.flat_all))
                checks_out = f.structured and f.structured_inherits is None and str(first.type) == "Tensor"
                return "StructuredOut" if checks_out else "TensorIterator"
            no_cpu_kernel = self._upstream.has_kernel(f, UPSTREAMS) and not self._upstream.has_kernel(f, "CPU")
            if f.device_check != DeviceCheckType.ExactSame and no_cpu_kernel:
                return "Composite"
        return "ExactSame" if f.device_check == DeviceCheckType.ExactSame else "None"

    def messages(self, entry: Entry, names: List[str]) -> List[str]:
        found = []
        for row in self._table.rows(entry.name, entry.layout):
            if "devices" in row:
                one, other = row["devices"].split()
                text = row["message"].replace(f"{{{one}}}", "{0}").replace(f"{{{other}}}", "{1}")
                number = "DeviceRule::kNotOnCpu" if other == "cpu" else names.index(other)
                found.append(f'{{{names.index(one)}, {number}, "{text}"}}')
        return found

    def alert(self, entry: Entry, names: List[str]) -> Optional[str]:
        row = self._table.policy(entry.name, "nondeterministic", entry.layout)
        if row is None:
            return None
        argument, mark, value = re.fullmatch(r"(\w*)([=:]?)(\w*)", row.get("when", "")).groups()  # type: ignore[union-attr]
        if argument and argument not in names:
            return None
        when = {"=": "Equals", ":": "Floating"}.get(mark, "Given" if argument else "Always")
        number = names.index(argument) if argument else -1
        name = self._table.kernel(row, entry.name)
        return f'"{name}", Alert::When::{when}, {number}, {value if mark == "=" else 0}'

    def lacks(self, entry: Entry) -> str:
        row = self._table.policy(entry.name, "refuse", entry.layout)
        return "0, nullptr" if row is None else f'{self.bits(row["refuse"])}, "{self._table.kernel(row, entry.name)}"'

    @staticmethod
    def counts_versions(f: Any) -> bool:
        # Autograd's own layer counts what an operator writes, but for the tensors of a list.
        listed = [a for a in f.func.arguments.flat_all if a.annotation is not None and a.annotation.is_write]
        lists = any(a.type.is_list_like() for a in listed) and f.func.name.name.inplace
        return bool(lists) and str(f.func.name.name.base).startswith("_foreach")


class FunctionTable(NamedTuple):
    """One of upstream's function tables (DispatchStub)."""

    name: str
    header: str  # that declares it
    promotes: bool

    def reroute(self) -> str:
        stub = f"at::native::{self.name}"
        return f'reroute_stub<decltype({stub}), {stub}>("{self.name}", {str(self.promotes).lower()});'


def function_tables(table: Table, include: Path, binary: bytes) -> List[FunctionTable]:
    """The tables that an installed header declares, libtorch_cuda refers to, and no row leaves or sets by hand."""
    declaration = re.compile(r"DECLARE_DISPATCH\(\s*(?:[^()]|\((?:[^()]|\([^()]*\))*\))*?,\s*(\w+)\s*\)")
    # What could be a table's name, once: the library itself is too long to be searched for each of them.
    mangled = b"\n".join(set(re.findall(rb"_ZN2at6native\w+", binary)))
    spoken = [row for row in table.tables if row["treatment"] == "host" or "source" in row]
    seen = {name for row in spoken for name in (*row.get("tables", ()), *row.get("functions", ()))}
    found: List[FunctionTable] = []
    for path in sorted((include / "ATen" / "native").rglob("*.h")):
        for name in declaration.findall(path.read_text(errors="replace")):
            if name not in seen and f"_ZN2at6native{len(name)}{name}E".encode() in mangled:
                seen.add(name)
                found.append(FunctionTable(name, str(path.relative_to(include)), promotes(table, name)))
    return found


def promotes(table: Table, name: str) -> bool:
    return all(row.get("promotes", True) for row in table.tables if name in row.get("tables", ()))


def table_registrations(tables: List[FunctionTable], function: str) -> str:
    tables = sorted(tables, key=lambda table: table.header)
    lines = [
        '#include "dispatch/Stubs.h"',
        "",
        *[f"#include <{header}>" for header in sorted({t.header for t in tables})],
    ]
    lines += ["", "namespace macatorch {", "", f"void {function}() {{", *[f"  {table.reroute()}" for table in tables]]
    return "\n".join([*lines, "}", "", "} // namespace macatorch", ""])


def registration(entry: Entry, device: str) -> str:
    key = f"c10::DispatchKey::{entry.key(device)}"
    return f'  operators_at({key}).impl("{entry.name}", kernel_of<&{entry.expression()}>("{entry.origin()}"));'


def beside_aten(table: Table, source: str, binary: bytes) -> List[Tuple[str, str, Function]]:
    """What a file of csrc/ops registers beside aten's operators: what upstream's library registers in this release. Of
    such operators no list is in the wheel, but their names are among the library's strings, whose beginnings the linker
    merges."""
    return [(library, name, f) for library, name, f in table.beside(source) if f"{name}\0".encode() in binary]


def register_name(source: str) -> str:
    return "register_" + source.replace("/", "_")


def source_header(source: str, table: Table, entries: List[Entry], device: str, binary: bytes) -> str:
    """Registers the functions of one file of csrc/ops, which includes it at its end: they need no declaration then."""
    beside = beside_aten(table, source, binary)
    ours = [e for e in entries if e.function is not None and e.function.source == source]
    lines = [
        f"// Written by codegen/operators.py: the registrations of ops/{source}.cpp.",
        "",
        "namespace macatorch {",
        "",
    ]
    lines += [f"void {register_name(source)}() {{", *[registration(entry, device) for entry in ours]]
    for library in sorted({library for library, _, _ in beside}):
        place = f'torch::Library::IMPL, "{library}", c10::DispatchKey::{device}, "macatorch/operators.toml", 0'
        lines += [f"  static torch::Library {library}({place});"]
    for library, name, f in beside:
        lines += [f'  {library}.impl("{name}", kernel_of<&{f.expression}>("{origin_of(f)}"));']
    known = {entry.function.expression for entry in ours if entry.function} | {f.expression for _, _, f in beside}
    for expression in table.expressions(source):
        if expression not in known and "{" not in expression:  # an operator that this release does not have
            lines.append(f"  static_cast<void>(&{expression});")
    for row in table.tables:
        if row.get("source") != source:
            continue
        setter = f"set_{device.lower()}_dispatch_ptr"
        lines += [f"  at::native::{name}.{setter}(&{f});" for name, f in row.get("functions", {}).items()]
        lines += [f"  {FunctionTable(name, '', promotes(table, name)).reroute()}" for name in row.get("tables", ())]
    return "\n".join([*lines, "}", "", "} // namespace macatorch", ""])


def operators_source(entries: List[Entry], specs: Specs, table: Table, options: argparse.Namespace) -> str:
    lines = ['#include "registered/Specs.h"', "", "namespace macatorch {"]
    lines += [line for entry in entries if entry.treatment != "own" for line in specs.of(entry, options.host)]
    sources = [source for source in table.sources() if source not in options.without]
    calls = [f"register_shard_{i}" for i in range(options.shards)] + [register_name(source) for source in sources]
    calls += ["register_stubs_0", "register_stubs_1"]
    lines += ["", *[f"void {call}();" for call in calls], "", "void register_operators() {"]
    boxed: Dict[Tuple[str, str], List[Entry]] = {}
    for entry in entries:
        if entry.function is None and not entry.unboxed:
            boxed.setdefault((entry.key(options.device), entry.origin()), []).append(entry)
    for number, ((key, origin), group) in enumerate(boxed.items()):
        lines += [f"  static const OperatorSpec* const group_{number}[] = {{"]
        lines += [*[f"      &spec_{entry.symbol}," for entry in group], "  };"]
        lines += [f"  for (const OperatorSpec* spec : group_{number}) {{"]
        call = f'boxed_kernel(*spec).debug("{origin}")'
        lines += [f"    operators_at(c10::DispatchKey::{key}).impl(spec->name, {call});", "  }"]
    return "\n".join([*lines, *[f"  {call}();" for call in calls], "}", "} // namespace macatorch", ""])


def report(entries: List[Entry], table: Table, upstream: Upstream) -> str:
    """For who adds a release: the operators' names, rows without an operator, CUDA kernels that nothing stands for."""
    ours = {entry.name for entry in entries if entry.layout == STRIDED}
    uncovered = [
        name
        for name, f in upstream.by_name.items()
        if upstream.has_kernel(f, UPSTREAMS) and name not in ours and not table.is_treated(name, "host")
    ]
    names = sorted(upstream.by_name)
    return json.dumps({"operators": names, "missing": table.missing(set(names)), "uncovered": sorted(uncovered)})


def specs_header(entries: List[Entry]) -> str:
    lines = ["#pragma once", "", '#include "dispatch/Operators.h"', "", "namespace macatorch {"]
    lines += [f"extern const OperatorSpec spec_{entry.symbol};" for entry in entries if entry.treatment != "own"]
    return "\n".join([*lines, "} // namespace macatorch", ""])


def shard_source(number: int, shard: List[Entry], device: str) -> str:
    roots = sorted({entry.f.root_name for entry in shard})
    lines = ['#include "dispatch/Unboxed.h"', "", *[f"#include <ATen/ops/{root}_ops.h>" for root in roots], ""]
    lines += ["namespace macatorch {", *[f"extern const OperatorSpec spec_{entry.symbol};" for entry in shard], ""]
    lines += [f"void register_shard_{number}() {{", *[registration(entry, device) for entry in shard]]
    return "\n".join([*lines, "}", "} // namespace macatorch", ""])


def write(path: Path, text: str) -> None:
    """Leave an unchanged file alone, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main() -> int:
    arguments = parse_arguments()
    release = torch_release(arguments.site)
    table, upstream = Table(arguments.table, release), Upstream(arguments.site)
    binary = arguments.library.read_bytes()
    lacking = arguments.cpu_dtypes / f"{'.'.join(map(str, release))}.toml"
    if not lacking.exists():
        raise SystemExit(f"{lacking} is missing: make an empty one, build, then run codegen/cpu_dtypes.py --write")
    wrappers = set(re.findall(rb"wrapper_\w*CUDA_\w+", binary))
    specs = Specs(table, upstream, wrappers, tomllib.loads(lacking.read_text()))
    entries = resolve(table, upstream)
    missing = table.missing(set(upstream.by_name))
    if missing:
        print(f"operators.toml: not in this release: {', '.join(missing)}")

    if arguments.report:
        write(arguments.report, report(entries, table, upstream))
    write(arguments.out / "operators.cpp", operators_source(entries, specs, table, arguments))
    write(arguments.out / "registered" / "Specs.h", specs_header(entries))
    for source in table.sources():
        header = source_header(source, table, entries, arguments.device, binary)
        write(arguments.out / "registered" / f"{source}.h", header)
    tables = function_tables(table, arguments.site / "torch" / "include", binary)
    apart = {header for row in table.tables for header in row.get("apart", ())}
    for number, part in enumerate((False, True)):
        chosen = [found for found in tables if (found.header in apart) == part]
        write(arguments.out / f"stubs_{number}.cpp", table_registrations(chosen, f"register_stubs_{number}"))
    unboxed = [entry for entry in entries if entry.unboxed]
    for i in range(arguments.shards):
        write(arguments.out / f"unboxed_{i}.cpp", shard_source(i, unboxed[i :: arguments.shards], arguments.device))
    counts = (
        f"{len(entries)} operators, {len(unboxed)} of them unboxed and {sum(e.function is not None for e in entries)}"
    )
    print(f"{counts} by functions of ours; {len(tables)} function tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
