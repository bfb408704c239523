"""Operators on lists of tensors give what the operator gives for each tensor, and raise CUDA's errors."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
import release_facts
import torch

NAMES = ["abs", "acos", "asin", "atan", "exp", "reciprocal", "sigmoid"]


def numbers(dtype: torch.dtype) -> List[torch.Tensor]:
    """Magnitudes from 1e-9 to 1e9 and the numbers where formulas fail; every second tensor is not contiguous."""
    generator = torch.Generator().manual_seed(5)
    lists = []
    for size in (1, 7, 64):
        parts = torch.randn(2, size, generator=generator) * 10.0 ** torch.randint(-9, 9, (2, size), generator=generator)
        parts[:, 0] = float("inf")
        lists.append(torch.complex(*parts).to(dtype).cuda())
        lists.append(lists[-1].repeat(2, 1).T)
    return lists


def same(got: List[torch.Tensor], want: List[torch.Tensor]) -> None:
    for one, other in zip(got, want):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_list_of_complex_numbers_has_the_values_of_each(name: str, dtype: torch.dtype) -> None:
    tensors = numbers(dtype)
    want = [getattr(torch, name)(tensor) for tensor in tensors]
    same(getattr(torch, f"_foreach_{name}")(tensors), want)
    if name != "abs":
        getattr(torch, f"_foreach_{name}_")(tensors)
        same(tensors, want)


def test_absolute_values_of_booleans_are_taken_in_lists() -> None:
    tensors = [torch.tensor([True, False]).cuda(), torch.tensor([], dtype=torch.bool).cuda()]
    same(torch._foreach_abs(tensors), tensors)


@pytest.mark.parametrize("exponent", [-1, 0.5, 2, 1 + 2j], ids=str)
def test_a_list_of_complex_powers_has_the_values_of_each(exponent: complex) -> None:
    tensors = numbers(torch.complex128)
    want = [torch.pow(tensor, exponent) for tensor in tensors]
    same(torch._foreach_pow(tensors, exponent), want)
    same(torch._foreach_pow(tensors, [exponent] * len(tensors)), want)
    same(torch._foreach_pow(exponent, tensors), [torch.pow(exponent, tensor) for tensor in tensors])
    torch._foreach_pow_(tensors, exponent)
    same(tensors, want)


@pytest.mark.parametrize("name", ["_foreach_addcdiv", "_foreach_addcmul", "_foreach_addcdiv_", "_foreach_addcmul_"])
def test_numbers_for_a_list_are_taken_from_the_host_only(name: str) -> None:
    tensors = [torch.ones(3, device="cuda"), torch.ones(2, device="cuda")]
    given = [tensor.clone() for tensor in tensors]
    with pytest.raises(RuntimeError, match="Expected scalars to be on CPU, got cuda:0 instead."):
        getattr(torch, name)(tensors, tensors, tensors, torch.tensor([1.0, 2.0], device="cuda"))
    same(tensors, given)
    got = getattr(torch, name)(tensors, given, given, torch.tensor([1.0, 2.0]))
    same(tensors if got is None else got, [torch.full((3,), 2.0).cuda(), torch.full((2,), 3.0).cuda()])


@release_facts.wants("lists_take_numbers_of_the_device")
def test_a_number_added_to_a_list_has_to_be_on_its_device() -> None:
    tensors = [torch.ones(3, device="cuda"), torch.ones(2, device="cuda")]
    with pytest.raises(RuntimeError, match="scalar tensor expected to be on cuda:0 but is on cpu"):
        torch._foreach_add(tensors, torch.tensor(1.0), alpha=2.0)
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim but"):
        torch._foreach_add_(tensors, torch.ones(2, device="cuda"))
    torch._foreach_add_(tensors, torch.tensor(1.0, device="cuda"), alpha=2.0)
    same(tensors, [torch.full((3,), 3.0).cuda(), torch.full((2,), 3.0).cuda()])


@release_facts.wants("lists_take_numbers_of_the_device")
def test_lists_of_halves_are_summed_with_a_factor_and_rounded_once() -> None:
    given = [torch.full((size,), 60000.0, dtype=torch.float16, device="cuda") for size in (3, 37)]
    negative = [-tensor for tensor in given]
    number = torch.tensor(-60000.0, dtype=torch.float16, device="cuda")
    want = negative  # 60000 - 120000
    same(torch._foreach_add(given, negative, alpha=2), want)
    same(torch._foreach_sub(given, given, alpha=2), want)
    same(torch._foreach_add(given, number, alpha=2), want)
    same(torch._foreach_add(given, -120000.0), want)
    same(torch._foreach_sub(given, [120000.0, 120000.0]), want)
    for change in (
        lambda tensors: torch._foreach_add_(tensors, negative, alpha=2),
        lambda tensors: torch._foreach_sub_(tensors, given, alpha=2),
        lambda tensors: torch._foreach_add_(tensors, number, alpha=2),
        lambda tensors: torch._foreach_sub_(tensors, 120000.0),
        lambda tensors: torch._foreach_add_(tensors, [-120000.0, -120000.0]),
    ):
        tensors = [tensor.clone() for tensor in given]
        change(tensors)
        same(tensors, want)


@pytest.mark.parametrize("name", ["mul", "div"])
def test_a_number_on_the_device_is_rounded_to_the_dtype_of_a_list_of_halves(name: str) -> None:
    if name == "div":
        release_facts.need("lists_take_numbers_of_the_device")
    generator = torch.Generator().manual_seed(4)
    tensors = [torch.randn(size, generator=generator).half().cuda() for size in (3, 37)]
    number = torch.tensor(1.0003, device="cuda")  # 1 as a half
    assert number.half() != number
    want = [getattr(tensor, name)(number.half()) for tensor in tensors]
    same(getattr(torch, f"_foreach_{name}")(tensors, number), want)
    getattr(torch, f"_foreach_{name}_")(tensors, number)
    same(tensors, want)


IN_PLACE = {
    "_foreach_add_": lambda f, a, b: f(a, 2.0), "_foreach_sub_": lambda f, a, b: f(a, b),
    "_foreach_mul_": lambda f, a, b: f(a, b), "_foreach_div_": lambda f, a, b: f(a, [2.0, 3.0]),
    "_foreach_addcmul_": lambda f, a, b: f(a, b, b), "_foreach_lerp_": lambda f, a, b: f(a, b, 0.5),
    "_foreach_sqrt_": lambda f, a, b: f(a), "_foreach_neg_": lambda f, a, b: f(a),
    "_foreach_zero_": lambda f, a, b: f(a), "_foreach_sigmoid_": lambda f, a, b: f(a),
    "_foreach_copy_": lambda f, a, b: f(a, b), "_foreach_clamp_max_": lambda f, a, b: f(a, 0.5),
    "_foreach_pow_": lambda f, a, b: f(a, 2),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float, torch.half, torch.complex64], ids=str)
@pytest.mark.parametrize("name", IN_PLACE)
def test_autograd_is_told_what_a_list_operator_writes(name: str, dtype: torch.dtype) -> None:
    if dtype.is_complex and "clamp" in name:
        pytest.skip("complex numbers have no order")
    versions = []
    for device in ("cpu", "cuda"):
        lists = [[torch.ones(3, device=device).to(dtype), torch.ones(2, 2, device=device).to(dtype)] for _ in range(2)]
        IN_PLACE[name](getattr(torch, name), *lists)
        versions.append([tensor._version for tensor in lists[0] + lists[1]])
    assert all(version > 0 for version in versions[1][:2]) and versions[1][2:] == [0, 0]
    assert (versions[0][0] > 0) == (versions[1][0] > 0)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_backward_pass_through_what_an_optimizer_changed_raises(kind: str) -> None:
    p = torch.nn.Parameter(torch.ones(3, device="cuda"))
    loss = (p * p * torch.ones(3, device="cuda")).sum()
    optimizer = getattr(torch.optim, kind)([p], lr=0.1, foreach=True)
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_list_that_raises_in_the_middle_counts_as_written(device: str) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch._foreach_mul_([y, torch.ones(2, dtype=torch.uint8, device=device)], 0.5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (y * y).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_lists_keep_a_number_in_float(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(5)
    tensors = [torch.rand(size, generator=generator).to("cuda", dtype) for size in (3, 37)]
    wide = [tensor.float() for tensor in tensors]

    def rounded(values: List[torch.Tensor]) -> List[torch.Tensor]:
        return [value.to(dtype) for value in values]

    same(torch._foreach_add(tensors, 0.1), rounded([x + 0.1 for x in wide]))
    same(torch._foreach_sub(tensors, [0.1, 0.7]), rounded([wide[0] - 0.1, wide[1] - 0.7]))
    same(torch._foreach_pow(tensors, 0.3), rounded([x**0.3 for x in wide]))
    same(torch._foreach_pow(tensors, [0.3, 0.7]), rounded([wide[0] ** 0.3, wide[1] ** 0.7]))
    same(torch._foreach_pow(0.3, tensors), rounded([0.3**x for x in wide]))
    changed = [tensor.clone() for tensor in tensors]
    torch._foreach_pow_(changed, 0.3)
    same(changed, rounded([x**0.3 for x in wide]))
    with pytest.raises(RuntimeError, match="must have"):
        torch._foreach_pow(tensors, [0.3])


FUSED = [
    pytest.param("Adam", {}), pytest.param("Adam", {"amsgrad": True}), pytest.param("AdamW", {}),
    pytest.param("SGD", {}, marks=release_facts.wants("fused_sgd")),
    pytest.param("SGD", {"momentum": 0.9}, marks=release_facts.wants("fused_sgd")),
    pytest.param("Adagrad", {}, marks=release_facts.wants("fused_adagrad_on_the_device")),
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"maximize": True, "weight_decay": 0.1}], ids=str)
@pytest.mark.parametrize("kind, own", FUSED)
def test_a_fused_step_takes_gradients_in_the_order_of_an_image(
    kind: str, own: Dict[str, Any], options: Dict[str, Any]
) -> None:
    generator = torch.Generator().manual_seed(5)
    start, slope = (torch.randn(4, 3, 3, 2, generator=generator) for _ in range(2))
    results = []
    for form in ({"fused": True}, {"foreach": False}):
        images = [torch.nn.Parameter(start.to("cuda", memory_format=torch.channels_last)) for _ in range(2)]
        optimizer = getattr(torch.optim, kind)(images, lr=0.1, **own, **options, **form)
        for step in range(3):
            for image in images:
                image.grad = torch.empty(4, 3, 3, 2, device="cuda").copy_(slope * (step - 2))
                assert image.grad.stride() != image.stride()
            optimizer.step()
        results.append([image.detach() for image in images])
        assert all(image.is_contiguous(memory_format=torch.channels_last) for image in results[-1])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("order", ["transposed", "in steps"])
@pytest.mark.parametrize("kind, own", FUSED)
def test_a_fused_step_refuses_gradients_in_another_order(kind: str, own: Dict[str, Any], order: str) -> None:
    parameter = torch.nn.Parameter(torch.zeros(2, 3, device="cuda"))
    optimizer = getattr(torch.optim, kind)([parameter], lr=0.1, fused=True, **own)
    parameter.grad = torch.ones(3, 2).cuda().t() if order == "transposed" else torch.ones(2, 6).cuda()[:, ::2]
    words = "must have same dtype, device, and layout" if kind != "SGD" else "check_fast_path_restrictions"
    with pytest.raises(RuntimeError, match=words):
        optimizer.step()
    assert not parameter.detach().any()


@pytest.mark.parametrize("kind, own", FUSED)
def test_a_fused_step_unscales_gradients_in_another_order(kind: str, own: Dict[str, Any]) -> None:
    slope = torch.randn(4, 3, 3, 2, generator=torch.Generator().manual_seed(5))
    image = torch.nn.Parameter(torch.zeros(4, 3, 3, 2, device="cuda").to(memory_format=torch.channels_last))
    image.grad = torch.empty(4, 3, 3, 2, device="cuda").copy_(slope)
    optimizer = getattr(torch.optim, kind)([image], lr=0.1, fused=True, **own)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0, device="cuda"), torch.tensor(0.0, device="cuda")
    optimizer.step()
    torch.testing.assert_close(image.grad.cpu(), slope / 2)
