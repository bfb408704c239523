"""The compiler of Triton's IR by itself, without any wheel: what it reads, and what it says of what it cannot lower."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "cu_bridge" / "triton"))
from lowering import LoweringError, lower_module
from lowering.reading.reader import read_module
from lowering.target import target_for

TARGET = target_for(frozenset())
KERNEL = """
#loc = loc("/home/user/kernel.py":3:0)
#loc1 = loc("/home/user/kernel.py":5:11)
#loc2 = loc("name"(#loc1))
module {{
  tt.func public @kernel(%x: !tt.ptr<f32> {{tt.divisibility = 16 : i32}} loc("x"(#loc)), %n: i32 loc(#loc)) attributes {{noinline = false}} {{
    %at = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32> loc(#loc1)
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc1)
    %q = tt.addptr %p, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc1)
    %a = tt.load %q : tensor<64x!tt.ptr<f32>> loc(#loc1)
    {operation} loc(#loc2)
    tt.store %q, %b : tensor<64x!tt.ptr<f32>> loc(#loc1)
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""  # noqa: E501


def kernel(operation: str) -> str:
    return KERNEL.format(operation=operation)


def test_a_kernel_becomes_one_program_with_one_loop() -> None:
    lowered = lower_module(kernel("%b = arith.addf %a, %a : tensor<64xf32>"), TARGET)
    assert lowered.name == "kernel"
    assert lowered.parameters == [8, 4]
    # From load to store nothing goes through memory of a tile.
    assert lowered.scratch == 0
    assert lowered.text.count(" = phi ") == 1


def test_locations_are_the_users() -> None:
    function = read_module(kernel("%b = arith.addf %a, %a : tensor<64xf32>"))[0]
    places = [operation.location for operation in function.blocks[0].operations]
    assert places[4] == ("/home/user/kernel.py", 5)
    assert function.location == ("/home/user/kernel.py", 3)


@pytest.mark.parametrize(
    "operation",
    [
        "%b = tt.unheard_of %a : tensor<64xf32>",
        "%b = arith.unheard_of %a, %a : tensor<64xf32>",
        '%b = tt.extern_elementwise %a {libname = "", libpath = "", pure = true, symbol = "__nv_unheard"} '
        ": (tensor<64xf32>) -> tensor<64xf32>",
        '%b = tt.elementwise_inline_asm "unheard.b32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, '
        "pure = true} %a : tensor<64xf32> -> tensor<64xf32>",
    ],
)
def test_what_has_no_lowering_is_named_with_its_line(operation: str) -> None:
    with pytest.raises(LoweringError, match=r"/home/user/kernel\.py:5: operation .*") as caught:
        lower_module(kernel(operation), TARGET)
    assert operation.split(" = ")[1].split(" ")[0] in str(caught.value)


def test_what_is_no_module_is_an_error() -> None:
    with pytest.raises(ValueError, match="printed module"):
        read_module("module { ` }")


def test_a_tile_that_two_nests_need_is_loaded_once() -> None:
    two = """%b = arith.addf %a, %a : tensor<64xf32>
    %m = "tt.reduce"(%a) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<64xf32>) -> f32
    tt.store %x, %m : !tt.ptr<f32>"""
    lowered = lower_module(kernel(two), TARGET)
    assert lowered.scratch == 64 * 4


@pytest.mark.parametrize(("factor", "bits"), [(256, 16), (257, 32), (16777216, 32), (16777217, 64)])
def test_integers_are_computed_in_as_many_bits_as_hold_them(factor: int, bits: int) -> None:
    lines = f"""%i = arith.fptosi %a : tensor<64xf32> to tensor<64xi8>
    %w = arith.extsi %i : tensor<64xi8> to tensor<64xi64>
    %c = arith.constant dense<{factor}> : tensor<64xi64>
    %m = arith.muli %w, %c : tensor<64xi64>
    %b = arith.sitofp %m : tensor<64xi64> to tensor<64xf32>"""
    [product] = [line for line in lower_module(kernel(lines), TARGET).text.splitlines() if " mul <" in line]
    assert f"x i{bits}>" in product


LEVEL_2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
LEVEL_3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"} | LEVEL_2)
LEVEL_4 = LEVEL_3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def test_vectors_follow_the_processor() -> None:
    text = kernel("%b = arith.addf %a, %a : tensor<64xf32>")
    assert "<4 x float>" in lower_module(text, TARGET).text
    assert "<8 x float>" in lower_module(text, target_for(LEVEL_3)).text
    assert "<16 x float>" in lower_module(text, target_for(LEVEL_4)).text


def test_products_of_bf16_use_what_the_processor_has() -> None:
    def text(columns: int, flags: frozenset) -> str:
        left, right = "tensor<16x16xbf16>", f"tensor<16x{columns}xbf16>"
        shape = f"tensor<16x{columns}xf32>"
        lines = [
            f"%l = arith.constant dense<1.0> : {left} loc(#loc1)",
            f"%r = arith.constant dense<1.0> : {right} loc(#loc1)",
            f"%z = arith.constant dense<0.0> : {shape} loc(#loc1)",
            f"%d = tt.dot %l, %r, %z : {left} * {right} -> {shape} loc(#loc1)",
            '%s = "tt.reduce"(%d) <{axis = 0 : i32}> ({',
            "^bb0(%e: f32 loc(#loc1), %f: f32 loc(#loc1)):",
            "%g = arith.addf %e, %f : f32 loc(#loc1)",
            "tt.reduce.return %g : f32 loc(#loc1)",
            f"}}) : ({shape}) -> tensor<{columns}xf32> loc(#loc1)",
            '%t = "tt.reduce"(%s) <{axis = 0 : i32}> ({',
            "^bb0(%e: f32 loc(#loc1), %f: f32 loc(#loc1)):",
            "%g = arith.addf %e, %f : f32 loc(#loc1)",
            "tt.reduce.return %g : f32 loc(#loc1)",
            f"}}) : (tensor<{columns}xf32>) -> f32 loc(#loc1)",
            "%u = tt.splat %t : f32 -> tensor<64xf32> loc(#loc1)",
            "%b = arith.addf %a, %u : tensor<64xf32>",
        ]
        return lower_module(kernel("\n    ".join(lines)), target_for(flags)).text

    pairs = LEVEL_4 | {"avx512_bf16"}
    assert "dpbf16ps" in text(32, pairs)
    # Too narrow for its vectors; a processor without it; one whose other vectors are narrower.
    assert "dpbf16ps" not in text(8, pairs)
    assert "dpbf16ps" not in text(32, LEVEL_4)
    assert "dpbf16ps" not in text(32, LEVEL_3 | {"avx512_bf16"})
