"""Write the C functions ``aoti_torch_cuda_*`` for one torch release: by them what AOTInductor compiles calls operators.

Upstream's own call the kernels of CUDA without the dispatcher, where ours are registered. These have the same names and
arguments, which torchgen of the release derives from native_functions.yaml, and call the dispatcher at the device's
key. The factory takes upstream's names out of libtorch_cuda (build_scripts/factory/stripped.py).
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

BEGINNING = """// Written by codegen/c_shims.py.
#include <ATen/ATen.h>
#include <ATen/CompositeExplicitAutogradFunctions.h>
#include <ATen/CompositeExplicitAutogradNonFunctionalFunctions.h>
#include <ATen/CompositeImplicitAutogradFunctions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cuda.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

// Some lengths have no use, as in upstream's.
#pragma GCC diagnostic ignored "-Wunused-parameter"

using namespace torch::aot_inductor;

namespace {
// Upstream's calls know nothing of gradients, of autocast and of Python's modes; nor do these.
struct AtBackend {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                           c10::autocast_dispatch_keyset |
                                           c10::DispatchKeySet({c10::DispatchKey::Python,
                                                                c10::DispatchKey::PythonTLSSnapshot})};
};
}  // namespace
"""
# How each definition of torchgen's begins to compute.
BODY = "AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, required=True, help="the unpacked wheel: the folder that holds torchgen/")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    return parser.parse_args()


def call(function: Callable[..., Any], **known: Any) -> Any:
    """Call a function of torchgen's with those of the arguments that the release's has."""
    return function(**{name: known[name] for name in inspect.signature(function).parameters})


class Shims:
    """What torchgen of a release says of these functions."""

    def __init__(self, site: Path) -> None:
        sys.path.insert(0, str(site))
        import torchgen.gen as gen
        import torchgen.gen_aoti_c_shim as shim
        from torchgen.aoti.fallback_ops import inductor_fallback_ops
        from torchgen.model import DispatchKey, NativeFunctionsGroup, Variant

        native = site / "torchgen" / "packaged" / "ATen" / "native"
        parsed = gen.parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
        self._shim, self._variant, self._versions = shim, Variant, inductor_fallback_ops
        self._backends, self._key = parsed.backend_indices, DispatchKey.CUDA
        self._groups: Dict[Any, Any] = {}
        for group in gen.get_grouped_native_functions(parsed.native_functions):
            if isinstance(group, NativeFunctionsGroup) and group.structured:
                for function in group.functions():
                    if function.structured_delegate is not None:
                        self._groups[function.structured_delegate] = group
        named = {shim.get_fallback_op_name(function): function for function in parsed.native_functions}
        self.functions: List[Tuple[str, Any]] = sorted(
            (name, function) for name, function in named.items() if name in inductor_fallback_ops
        )
        shim.gen_static_dispatch_backend_call = self._call

    def _call(self, function: Any, backend: Any) -> str:
        """What a definition calls: the dispatcher for a kernel of CUDA, upstream's composition otherwise."""
        name = call(self._shim.gen_static_dispatch_backend_call_signature, sig=None, f=function).name()
        if backend.dispatch_key is not self._key:
            return f"at::{backend.dispatch_key.lower()}::{name}"
        if self._variant.function in function.variants:
            return f"at::{name}"
        return f"at::_ops::{function.func.name.unambiguous_name()}::call"

    def definition(self, name: str, function: Any) -> str:
        """The text of an operator's functions, empty where CUDA does not have it."""
        from torchgen.context import native_function_manager

        known = {
            "func": function,
            "func_group_mapping": self._groups,
            "dispatch_key": self._key,
            "backend_indices": self._backends,
            "extend_aoti_c_shim": False,
        }
        backend = call(self._shim.get_backend_index_for_aoti, **known)
        if backend is None:
            return ""
        versions = self._versions[name] if isinstance(self._versions, dict) else {}
        with native_function_manager(function):
            text = call(self._shim.gen_c_shim, **known, header=False, version_info=versions) or ""
        if not text or backend.dispatch_key is not self._key:
            return text
        if BODY not in text:
            raise SystemExit(f"c_shims.py: torchgen writes {name} in a form that is not known here")
        return text.replace(BODY, f"{BODY}\n        const AtBackend at_backend;")


def main() -> None:
    """Write the file; empty for a release whose torchgen does not know these functions (2.1)."""
    arguments = parse_arguments()
    text = ""
    if (arguments.site / "torchgen" / "aoti" / "fallback_ops.py").exists():
        shims = Shims(arguments.site)
        text = BEGINNING + "".join(shims.definition(name, function) for name, function in shims.functions)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    if not arguments.out.exists() or arguments.out.read_text() != text:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
