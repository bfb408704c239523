"""Write the C++ registrations of the device operators for one torch release.

Reads the release's own operator list (native_functions.yaml, which the wheel carries under torchgen/packaged),
operators.toml and cpu_dtypes/, and writes one file with a row for each operator and shards with the unboxed wrappers.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, List, Set, Tuple

try:
    import tomllib
except ModuleNotFoundError:  # Python < 3.11
    import tomli as tomllib  # type: ignore[no-redef]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the unpacked wheel: the folder that holds torchgen/")
    parser.add_argument("--table", type=Path, required=True, help="operators.toml")
    parser.add_argument("--library", type=Path, required=True, help="libtorch_cuda.so, for upstream's wrapper names")
    parser.add_argument("--cpu-dtypes", type=Path, required=True, help="folder with a table for each release")
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    parser.add_argument("--shards", type=int, default=8)
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


def matches(name: str, patterns: Iterable[str]) -> bool:
    chosen = set(patterns)
    return name in chosen or name.split(".", 1)[0] in {pattern for pattern in chosen if "." not in pattern}


def numbers(version: str) -> Tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


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


def stubs(include: Path, binary: bytes, left: Iterable[str]) -> Dict[str, List[str]]:
    """Header by header, the function tables (DispatchStub) that it declares and libtorch_cuda refers to."""
    declaration = re.compile(r"DECLARE_DISPATCH\(\s*(?:[^()]|\((?:[^()]|\([^()]*\))*\))*?,\s*(\w+)\s*\)")
    found: Dict[str, List[str]] = {}
    seen = set(left)
    for path in sorted((include / "ATen" / "native").rglob("*.h")):
        header = str(path.relative_to(include))
        for name in declaration.findall(path.read_text(errors="replace")):
            if name not in seen and f"_ZN2at6native{len(name)}{name}E".encode() in binary:
                seen.add(name)
                found.setdefault(header, []).append(name)
    return found


def stub_registrations(tables: Dict[str, List[str]], function: str) -> str:
    rows = [
        f'  reroute_stub<at::native::{name}_DECLARE_DISPATCH_type, at::native::{name}>("{name}");'
        for header in sorted(tables)
        for name in tables[header]
    ]
    lines = ['#include "dispatch/Stubs.h"', "", *[f"#include <{header}>" for header in sorted(tables)], ""]
    lines += ["namespace macatorch {", "", f"void {function}() {{", *rows, "}", "", "} // namespace macatorch", ""]
    return "\n".join(lines)


def main() -> int:
    arguments = parse_arguments()
    sys.path.insert(0, str(arguments.site))
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DeviceCheckType, DispatchKey

    native = arguments.site / "torchgen" / "packaged" / "ATen" / "native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    table: Dict[str, Any] = tomllib.loads(arguments.table.read_text())
    iterator = iterator_operators(native / "native_functions.yaml") | set(table["iterators"])
    binary = arguments.library.read_bytes()
    wrappers = set(re.findall(rb"wrapper_\w*CUDA_\w+", binary))

    by_name = {str(f.func.name): f for f in parsed.native_functions}

    def has_kernel(f: Any, key: Any) -> bool:
        if parsed.backend_indices[key].get_kernel(f) is not None:
            return True
        return f.structured_delegate is not None and has_kernel(by_name[str(f.structured_delegate)], key)

    def wrapper(f: Any, key: str = "CUDA") -> str:
        prefix = f"wrapper_{key}"
        name = f.func.name
        base = str(name.name)
        overload = name.overload_name
        suffix = "_out" if f.func.is_out_fn() else ""
        structured = f"{prefix}_{base}_{overload}" if overload else f"{prefix}_{base}"
        for candidate in (f"{prefix}_{overload}_{base}{suffix}", structured, f"{prefix}_{base}"):
            if candidate.encode() in wrappers:
                return candidate
        return f"{prefix}_{overload}_{base}{suffix}"

    def takes_tensor_first(f: Any) -> bool:
        first = next(iter(f.func.arguments.flat_all))
        return str(first.type) == "Tensor"

    def results(name: str) -> str:
        row = next((row for row in table["result_dtypes"] if name in row["operators"]), None)
        return "nullptr" if row is None else f'"{row["results"]}"'

    def alert(name: str) -> str:
        row = next((row for row in table["nondeterministic"] if matches(name, row["operators"])), None)
        if row is None:
            return "nullptr"
        return f'"{row["name"]}|{row["when"]}"' if "when" in row else f'"{row["name"]}"'

    release = torch_release(arguments.site)
    unsupported = [row for row in table["unsupported"] if "until" not in row or release <= numbers(row["until"])]

    def lacks(name: str) -> str:
        base = name.split(".", 1)[0]
        row = next((row for row in unsupported if base in row["kernels"]), None)
        if row is None:
            return "0, nullptr"
        bits = " | ".join(f"dtype_bit(at::k{dtype})" for dtype in row["dtypes"])
        return f'{bits}, "{row["kernels"][base]}"'

    by_signature: Dict[Any, Set[str]] = {}
    lacking = arguments.cpu_dtypes / f"{'.'.join(map(str, release))}.toml"
    if not lacking.exists():
        raise SystemExit(f"{lacking} is missing: make an empty one, build, then run codegen/cpu_dtypes.py --write")
    for dtype, listed in tomllib.loads(lacking.read_text()).items():
        for name in listed:
            if name not in by_name:
                raise SystemExit(f"cpu_dtypes, {dtype}: {name} is no operator of this release")
            by_signature.setdefault(by_name[name].func.signature(), set()).add(dtype)

    def cpu_lacks(f: Any) -> str:
        # The functional form, the one in place and that with `out` have one kernel.
        dtypes = by_signature.get(f.func.signature(), set())
        return " | ".join(f"dtype_bit(at::k{dtype})" for dtype in sorted(dtypes)) or "0"

    def counts_versions(f: Any) -> str:
        # Autograd's own layer counts what an operator writes, but for the tensors of a list.
        listed = [a for a in f.func.arguments.flat_all if a.annotation is not None and a.annotation.is_write]
        lists = any(a.type.is_list_like() for a in listed) and f.func.name.name.inplace
        return str(lists and f.func.name.name.base.startswith("_foreach")).lower()

    rows: List[str] = []
    unboxed: List[Any] = []
    registered: List[str] = []
    for name, f in by_name.items():
        if matches(name, table["keep"]) or matches(name, table["own"]):
            continue
        on_cuda = has_kernel(f, DispatchKey.CUDA)
        on_cpu = (
            has_kernel(f, DispatchKey.CPU)
            or f.has_composite_explicit_autograd_kernel
            or f.has_composite_explicit_autograd_non_functional_kernel
        )
        if not ((on_cuda and on_cpu) or (on_cpu and matches(name, table["composite"]))):
            continue
        is_iterator = name in iterator or (f.structured_delegate is not None and str(f.structured_delegate) in iterator)
        # A reduction, say: it looks at its outputs before an iterator is built, which one that is an iterator does not.
        checks_out = f.structured and f.structured_inherits is None and takes_tensor_first(f)
        if is_iterator:
            check = "StructuredOut" if checks_out else "TensorIterator"
        elif f.device_check == DeviceCheckType.ExactSame:
            check = "ExactSame"
        elif on_cuda and not has_kernel(f, DispatchKey.CPU):
            check = "Composite"
        else:
            check = "None"
        rules = [row for row in table["device_messages"] if matches(name, row["operators"])]
        lines = "\\n".join(f"{row['arguments']} {row['message']}" for row in rules)
        text = f'"{lines}"' if lines else "nullptr"
        symbol = f.func.name.unambiguous_name()
        rows.append(
            f'extern const OperatorSpec spec_{symbol}{{"{name}", "{wrapper(f)}", '
            f"c10::DispatchKey::CPU, DeviceCheck::{check}, "
            f"{str(matches(name, table['synchronises'])).lower()}, {str(name in table['widens']).lower()}, "
            f"{str(matches(name, table['dense_inputs'])).lower()}, {cpu_lacks(f)}, {text}, {results(name)}, "
            f"{alert(name)}, {lacks(name)}, {counts_versions(f)}}};"
        )
        registered.append(symbol)
        special = matches(name, table["synchronises"]) or matches(name, table["dense_inputs"])
        special = special or alert(name) != "nullptr"
        if name in table["unboxed"] and not special and unboxable(f.func):
            unboxed.append(f)

    # Other layouts: the operators whose CUDA kernel is not the CPU's own function, which would be host code.
    layouts: Dict[str, List[str]] = {}
    for layout in ("Sparse", "SparseCsr", "NestedTensor", "Quantized"):
        on_cuda, on_cpu = (
            parsed.backend_indices[DispatchKey.parse(f"{layout}{backend}")] for backend in ("CUDA", "CPU")
        )
        for name, f in by_name.items():
            cuda_kernel, cpu_kernel = on_cuda.get_kernel(f), on_cpu.get_kernel(f)
            if cuda_kernel is None or cpu_kernel is None:
                continue
            if matches(name, table["keep"]):
                continue
            if layout == "Quantized":
                if matches(name, table["keep_quantized"]):
                    continue
            elif cuda_kernel.kernel == cpu_kernel.kernel and name not in table["composite_layouts"]:
                continue
            symbol = f"{layout}_{f.func.name.unambiguous_name()}"
            check = "ExactSame" if f.device_check == DeviceCheckType.ExactSame else "None"
            widens = str(layout in ("Sparse", "SparseCsr") and name in table["widens"]).lower()
            rows.append(
                f'extern const OperatorSpec spec_{symbol}{{"{name}", "{wrapper(f, layout + "CUDA")}", '
                f"c10::DispatchKey::{layout}CPU, "
                f"DeviceCheck::{check}, false, {widens}, false, 0, nullptr, nullptr, nullptr, 0, "
                "nullptr, false};"
            )
            layouts.setdefault(layout, []).append(symbol)

    known = set(by_name)
    for list_name, names in table.items():
        if list_name in ("stubs_left", "stub_headers_apart"):
            continue
        if list_name == "unsupported":
            names = [name for row in names for name in row["kernels"]]
        elif list_name in ("device_messages", "result_dtypes", "nondeterministic"):
            names = [name for row in names for name in row["operators"]]
        missing = [n for n in names if n not in known and not any(k.split(".", 1)[0] == n for k in known)]
        if missing:
            print(f"operators.toml, {list_name}: not in this release: {', '.join(missing)}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    fast = {f.func.name.unambiguous_name() for f in unboxed}
    shards: List[List[Any]] = [unboxed[i :: arguments.shards] for i in range(arguments.shards)]
    lines = ['#include "dispatch/Operators.h"', "", "namespace macatorch {", *rows, ""]
    lines += [f"void register_shard_{i}(torch::Library& library);" for i in range(arguments.shards)]
    lines += ["", "void register_generated() {"]
    groups = [("CUDA", [symbol for symbol in registered if symbol not in fast])]
    groups += [(f"{layout}CUDA", symbols) for layout, symbols in layouts.items()]
    for key, symbols in groups:
        # As upstream's own registrations, they live as long as the process.
        library = f'torch::Library {key}(torch::Library::IMPL, "aten", c10::DispatchKey::{key}, __FILE__, __LINE__);'
        lines += [f"  static {library}"]
        lines += [
            f"  static const OperatorSpec* const {key}_operators[] = {{",
            *[f"      &spec_{symbol}," for symbol in symbols],
            "  };",
        ]
        lines += [
            f"  for (const OperatorSpec* spec : {key}_operators) {{",
            f"    {key}.impl(spec->name, boxed_kernel(*spec));",
            "  }",
        ]
    lines += [f"  register_shard_{i}(CUDA);" for i in range(arguments.shards)]
    lines += ["}", "} // namespace macatorch", ""]
    write(arguments.out / "operators.cpp", "\n".join(lines))
    tables = stubs(arguments.site / "torch" / "include", binary, table["stubs_left"])
    # Some headers cannot be read together: they declare the same name in two ways.
    apart = {header: names for header, names in tables.items() if header in table["stub_headers_apart"]}
    for number, part in enumerate(({h: n for h, n in tables.items() if h not in apart}, apart)):
        write(arguments.out / f"stubs_{number}.cpp", stub_registrations(part, f"register_stubs_{number}"))
    for i, shard in enumerate(shards):
        roots = sorted({f.root_name for f in shard})
        lines = [
            '#include "dispatch/Unboxed.h"',
            "",
            *[f"#include <ATen/ops/{root}_ops.h>" for root in roots],
            "",
            "namespace macatorch {",
        ]
        lines += [f"extern const OperatorSpec spec_{f.func.name.unambiguous_name()};" for f in shard]
        lines += ["", f"void register_shard_{i}(torch::Library& library) {{"]
        for f in shard:
            symbol = f.func.name.unambiguous_name()
            lines.append(
                f'  library.impl("{f.func.name}", TORCH_FN((Unboxed<at::_ops::{symbol}, spec_{symbol}>::call)));'
            )
        lines += ["}", "} // namespace macatorch", ""]
        write(arguments.out / f"unboxed_{i}.cpp", "\n".join(lines))
    print(
        f"{len(registered)} operators, {len(unboxed)} of them unboxed; {sum(map(len, tables.values()))} function tables"
    )
    return 0


def write(path: Path, text: str) -> None:
    """Leave an unchanged file alone, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
