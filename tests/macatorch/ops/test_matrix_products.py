"""Matrix products that upstream has for CUDA only: another result dtype, scales, groups, packed 4-bit weights."""

from __future__ import annotations

from typing import Any

import pytest
import release_facts
import torch

aten = torch.ops.aten
NEWER = hasattr(aten.mm, "dtype")


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


@pytest.mark.skipif(not NEWER, reason="torch 2.8 and later")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_product_with_a_float_result_is_not_rounded(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b, c = randn(4, 8, dtype=dtype), randn(8, 5, dtype=dtype), randn(4, 5, dtype=dtype)
    batch = [torch.stack([t, -t]).cuda() for t in (c, a, b)]
    A, B, C = a.cuda(), b.cuda(), c.cuda()
    want = a.float() @ b.float()
    got = torch.mm(A, B, out_dtype=torch.float32)
    assert got.dtype == torch.float32 and torch.equal(got.cpu(), want)
    out = torch.empty(0, device="cuda")
    assert aten.mm.dtype_out(A, B, torch.float32, out=out) is out and torch.equal(out.cpu(), want)
    torch.testing.assert_close(torch.bmm(*batch[1:], out_dtype=torch.float32)[1].cpu(), want)
    summed = aten.addmm.dtype(C, A, B, torch.float32, beta=2, alpha=3)
    torch.testing.assert_close(summed.cpu(), 2 * c.float() + 3 * want)
    summed = aten.baddbmm.dtype(*batch, torch.float32, beta=2, alpha=3)
    torch.testing.assert_close(summed[0].cpu(), 2 * c.float() + 3 * want)
    assert torch.mm(A, B, out_dtype=dtype).dtype == dtype
    with pytest.raises(RuntimeError, match="out_dtype must be the same as input dtype or fp32"):
        torch.mm(A, B, out_dtype=torch.float64)


def float8(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.float8_e4m3fn)


def scaled_mm(*arguments: Any, **options: Any) -> torch.Tensor:
    """Up to torch 2.4 the product comes with its largest magnitude, taken before the result's scale."""
    got = torch._scaled_mm(*arguments, **options)
    if isinstance(got, torch.Tensor):
        return got
    if got[0].dtype != torch.float8_e4m3fn:
        torch.testing.assert_close(got[1], got[0].abs().max().float(), rtol=1e-2, atol=0)
    assert got[1].dtype == torch.float32 and got[1].shape == ()
    return got[0]


SCALES = {
    "one each": ((), ()),
    "rows and columns": ((32, 1), (1, 48)),
    "blocks of 128": ((32, 2), (2, 48)),
}


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("out_dtype", [torch.bfloat16, torch.float32], ids=str)
def test_scaled_product_equals_the_formula(name: str, out_dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b = float8(randn(32, 256)), float8(randn(48, 256)).t()
    scale_a, scale_b = (torch.rand(shape) + 0.5 for shape in SCALES[name])
    bias = randn(48, dtype=out_dtype)
    got = scaled_mm(
        a.cuda(), b.cuda(), scale_a=scale_a.cuda(), scale_b=scale_b.cuda(), bias=bias.cuda(), out_dtype=out_dtype
    )
    blocks = name == "blocks of 128"
    left = a.double() * (scale_a.repeat_interleave(128, 1) if blocks else scale_a)
    right = b.double() * (scale_b.repeat_interleave(128, 0) if blocks else scale_b)
    assert got.dtype == out_dtype
    torch.testing.assert_close(got.cpu().double(), left @ right + bias, rtol=1e-2, atol=1e-2 if blocks else 1e-3)


def test_scaled_product_in_float8_saturates() -> None:
    a = float8(torch.full((16, 16), 400.0))
    one, half = torch.ones((), device="cuda"), torch.full((), 2.0**-9, device="cuda")
    got = scaled_mm(a.cuda(), a.cuda().t(), scale_a=one, scale_b=one, scale_result=one, out_dtype=torch.float8_e4m3fn)
    assert got.dtype == torch.float8_e4m3fn and set(got.float().unique().tolist()) == {448.0}
    got = scaled_mm(
        a.cuda(), a.cuda().t(), scale_a=one, scale_b=half * half, scale_result=one, out_dtype=torch.float8_e4m3fn
    )
    assert set(got.float().unique().tolist()) == {a[0, 0].float().item() ** 2 * 16 * 2.0**-18}


@pytest.mark.skipif(not hasattr(aten, "_scaled_grouped_mm"), reason="torch 2.7 and later")
@pytest.mark.parametrize("case", ["2d 3d", "3d 2d", "2d 2d", "3d 3d"])
def test_scaled_grouped_product_equals_its_groups(case: str) -> None:
    torch.manual_seed(0)
    ends = [16, 16, 48]
    groups = list(zip([0, *ends], ends))
    rows, columns = (48 if case == "2d 3d" else 32), (48 if case == "3d 2d" else 16)
    flat_a, flat_b = case.startswith("2d"), case.endswith("2d")
    inner = 48 if case == "2d 2d" else 64
    a = float8(randn(rows, inner) if flat_a else randn(3, rows, inner))
    b = float8(randn(columns, inner).t() if flat_b else randn(3, columns, inner).transpose(1, 2))
    both = flat_a and flat_b
    scale_a = torch.rand(3 * rows if both else (rows if flat_a else (3, rows))) + 0.5
    scale_b = torch.rand(3 * columns if both else (columns if flat_b else (3, columns))) + 0.5
    offs = None if case == "3d 3d" else torch.tensor(ends, dtype=torch.int32, device="cuda")
    got = torch._scaled_grouped_mm(
        a.cuda(), b.cuda(), scale_a.cuda(), scale_b.cuda(), offs=offs, out_dtype=torch.bfloat16
    )
    for g, (start, end) in enumerate(groups):
        part = slice(start, end)
        if both:
            left, right, out = a[:, part], b[part], got[g]
            sa, sb = scale_a.view(3, rows)[g], scale_b.view(3, columns)[g]
        else:
            left = a[part] if flat_a else a[g]
            right = b[:, part] if flat_b else b[g]
            sa = scale_a[part] if flat_a else scale_a[g]
            sb = scale_b[part] if flat_b else scale_b[g]
            out = got[part] if flat_a else got[:, part] if flat_b else got[g]
        want = (left.float() * sa[:, None]) @ (right.float() * sb)
        torch.testing.assert_close(out.cpu().float(), want, rtol=1e-2, atol=1e-2)


@release_facts.wants("products_with_weights_of_few_bits")
@pytest.mark.parametrize("inner", [2, 4, 8])
def test_4_bit_weights_are_packed_and_multiplied(inner: int) -> None:
    torch.manual_seed(0)
    n, k, group = 24, 256, 64
    numbers = torch.randint(0, 16, (n, k))
    nibbles = (numbers[:, ::2] << 4 | numbers[:, 1::2]).to(torch.uint8)
    packed = torch._convert_weight_to_int4pack(nibbles.cuda(), inner)
    assert packed.dtype == torch.int32 and packed.shape == (n // 8, k // (inner * 16), 32, inner // 2)
    parameters = randn(k // group, n, 2, dtype=torch.bfloat16)
    scale, zero = (p.float().t().repeat_interleave(group, 1) for p in parameters.unbind(2))
    weights = ((numbers - 8) * scale + zero).bfloat16().float()
    a = randn(5, k, dtype=torch.bfloat16)
    got = torch._weight_int4pack_mm(a.cuda(), packed, group, parameters.cuda())
    torch.testing.assert_close(got.cpu(), (a.float() @ weights.t()).bfloat16(), rtol=1e-2, atol=1e-2)


@release_facts.wants("products_with_weights_of_few_bits")
def test_4_bit_weights_lie_as_upstreams_kernel_lays_them() -> None:
    # Column 8 of row 0 is the second number of lane 0 in the order 0, 8, 16, 24, 1, 9, 17, 25 of its half-bytes.
    numbers = torch.zeros(8, 32, dtype=torch.int64)
    numbers[0, [0, 1, 8, 9, 16, 17, 24, 25]] = torch.tensor([1, 2, 3, 4, 5, 6, 7, 9])
    nibbles = (numbers[:, ::2] << 4 | numbers[:, 1::2]).to(torch.uint8)
    packed = torch._convert_weight_to_int4pack(nibbles.cuda(), 2).cpu()
    assert packed[0, 0, 0, 0].item() & 0xFFFFFFFF == 0x96427531
    assert packed.ne(0).sum() == 1


SHAPES = [((8,), 64, 64), ((3,), 128, 192), ((2, 5), 192, 64), ((2, 1, 7), 256, 128)]


@release_facts.wants("products_with_weights_of_few_bits")
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("batch", "n", "k"), SHAPES, ids=str)
def test_linear_with_weights_of_8_and_4_bits(batch, n: int, k: int, dtype: torch.dtype, bits: int) -> None:
    from torch.quantization._quantized_conversions import (
        pack_int4_to_int8,
        quantized_weight_reorder_for_mixed_dtypes_linear_cutlass,
    )

    torch.manual_seed(0)
    x, scale, bias = randn(*batch, k, dtype=dtype), randn(n, dtype=dtype), randn(n, dtype=dtype)
    numbers = torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), (n, k), dtype=torch.int8)
    rows = numbers.cuda() if bits == 8 else pack_int4_to_int8(numbers.cuda())
    of = torch.int8 if bits == 8 else torch.quint4x2
    weight = quantized_weight_reorder_for_mixed_dtypes_linear_cutlass(rows, of, transpose=True)
    scaled = (numbers.to(dtype) * scale[:, None]).double()  # rounded to the dtype, as the kernel does
    for activation, function in [("none", lambda t: t), ("relu", torch.relu), ("silu", torch.nn.functional.silu)]:
        want = function(x.double() @ scaled.T + bias.double())
        got = aten._mixed_dtypes_linear(x.cuda(), weight, scale.cuda(), bias=bias.cuda(), activation=activation)
        assert got.dtype == dtype and got.shape == (*batch, n)
        allowed = want.abs() * torch.finfo(dtype).eps * 0.51 + want.abs().max() * 1e-5
        assert ((got.cpu().double() - want).abs() <= allowed).all()
    plain = aten._mixed_dtypes_linear(x.cuda(), weight, scale.cuda())
    torch.testing.assert_close(plain.cpu().double(), x.double() @ scaled.T, rtol=1e-2, atol=1e-2)


@release_facts.wants("products_with_weights_of_few_bits")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": torch.zeros(3, 64)}, "expected an input"),
        ({"x": torch.zeros(3, 128).half()}, r"expected a weight of \(128, 64\) for 8 bits or \(128, 32\) for 4"),
        ({"weight": torch.zeros(64, 64, dtype=torch.int8)}, "expected a contiguous weight matrix of Byte"),
        ({"scale": torch.zeros(64)}, "expected scales"),
        ({"bias": torch.zeros(63).half()}, "expected a bias"),
        ({"activation": "gelu"}, "unknown activation 'gelu'; known are none, relu and silu"),
    ],
)
def test_linear_with_weights_of_few_bits_refuses_in_words(change, words: str) -> None:
    given = {
        "x": torch.zeros(3, 64).half(),
        "weight": torch.zeros(64, 64, dtype=torch.uint8),
        "scale": torch.zeros(64).half(),
        "bias": None,
        "activation": None,
        **change,
    }
    moved = {name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    with pytest.raises(RuntimeError, match=words):
        aten._mixed_dtypes_linear(
            moved["x"], moved["weight"], moved["scale"], bias=moved["bias"], activation=moved["activation"]
        )


def test_products_of_bytes_have_the_limits_of_cublas() -> None:
    a, b = torch.randint(-9, 9, (17, 8), dtype=torch.int8), torch.randint(-9, 9, (8, 32), dtype=torch.int8)
    want = a.long() @ b.long()
    out = torch.empty(17, 32, dtype=torch.int32, device="cuda")
    assert torch._int_mm(a.cuda(), b.cuda(), out=out) is out
    for got in (out, torch._int_mm(a.cuda(), b.cuda()), torch._int_mm(a.cuda(), b.t().contiguous().cuda().t())):
        assert got.dtype == torch.int32 and torch.equal(got.cpu().long(), want)
    refused = [
        ((16, 8), (8, 32), r"self.size\(0\) needs to be greater than 16, but got 16"),
        ((17, 7), (7, 32), r"self.size\(1\) needs to be greater than 0 and a multiple of 8, but got 7"),
        ((17, 8), (7, 32), r"self.size\(1\) needs to match mat2.size\(0\) but got 8 and 7"),
        ((17, 8), (8, 31), r"mat2.size\(1\) needs to be greater than 0 and a multiple of 8, but got 31"),
    ]
    for first, second, words in refused:
        with pytest.raises(RuntimeError, match=words):
            torch._int_mm(*(torch.ones(size, dtype=torch.int8, device="cuda") for size in (first, second)))
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS_NOT_SUPPORTED when calling cublasLtMatmul"):
        torch._int_mm(a.t().contiguous().cuda().t(), b.cuda())
    with pytest.raises(RuntimeError, match="expected scalar type Char but found Float"):
        torch._int_mm(a.cuda(), b.cuda().float())
    with pytest.raises(RuntimeError, match="Expected result dtype to be of type kInt but got float"):
        torch._int_mm(a.cuda(), b.cuda(), out=out.float())
