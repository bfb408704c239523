"""A pytest plugin for Triton's own tests: questions about hardware that the installed release does not know yet.

Tests of a commit near a release import names of ``triton._internal_testing`` that came later. The device is none of the
hardware that these ask about, which is the answer that they get. There is no assembler of NVIDIA's either. Tests near
3.2 name constants by a word that came after it, and ask NumPy for a setting that NumPy 2.2 has no more.
"""

from typing import Any

QUESTIONS = (
    "is_hip_cdna",
    "is_hip_mi200",
    "is_hip_mi300",
    "is_hip_mi350",
    "is_hopper",
    "is_blackwell",
    "is_hopper_or_newer",
    "is_xpu",
)


def pytest_configure() -> None:
    """Answer what is not answered."""
    import triton

    knobs = getattr(triton, "knobs", None)
    if knobs is not None:
        # The tests ask for the assembler's version as they are imported, to know whether it knows tensor maps.
        type(knobs.nvidia).ptxas = knobs.NvidiaTool("", "12.8")
    import triton._internal_testing as testing

    for name in QUESTIONS:
        if not hasattr(testing, name):
            setattr(testing, name, lambda: False)
    if not hasattr(testing, "str_to_triton_dtype"):
        testing.str_to_triton_dtype = _dtype  # type: ignore[attr-defined]
    if not hasattr(testing, "float_dtypes_with_bfloat16"):
        testing.float_dtypes_with_bfloat16 = [*testing.float_dtypes, "bfloat16"]  # type: ignore[attr-defined]
    if knobs is None:
        _take_constexprs()
    import numpy

    if not hasattr(numpy, "_get_promotion_state"):
        # Promotion is by type alone ("weak"), always.
        numpy._get_promotion_state = lambda: "weak"  # type: ignore[attr-defined]
        numpy._set_promotion_state = lambda state: None  # type: ignore[attr-defined]


def pytest_runtest_setup(item: Any) -> None:
    """Have keys of kernels made anew: tests that change sources leave keys behind, and here they run in no order."""
    from triton.runtime.jit import JITFunction

    for value in vars(getattr(item, "module", item)).values():
        if isinstance(value, JITFunction):
            value.hash = None


def pytest_runtest_teardown() -> None:
    """Leave no mode of asynchronous compilation on: one test's failure would be that of all behind it."""
    import sys

    compiling = sys.modules.get("triton.runtime._async_compile")
    if compiling is not None:
        compiling.active_mode.set(None)


def _dtype(name: str) -> Any:
    """Triton's dtype of NumPy's name."""
    import triton.language as tl

    return tl.int1 if name == "bool" else getattr(tl, name)


def _take_constexprs() -> None:
    """Let sources of the release take `constexprs`, which are its `constants`; such arguments have no signature."""
    from triton.compiler import ASTSource

    make = ASTSource.__init__

    def init(
        self: Any, fn: Any, signature: Any, constants: Any = None, attrs: Any = None, constexprs: Any = None
    ) -> None:
        if constexprs is not None:
            constants = constexprs
            signature = {name: kind for name, kind in signature.items() if kind != "constexpr"}
        make(self, fn, signature, constants, attrs)

    ASTSource.__init__ = init
