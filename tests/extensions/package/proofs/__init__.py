"""Operators with their gradients and their shapes, over the kernels of the extension."""

import torch

from . import _C  # noqa: F401  (registers the operators)

ops = torch.ops.proofs


def _same_shape(x, *others):
    return torch.empty_like(x)


def _swish_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _swish_backward(ctx, grad):
    return ops.swish_backward(grad.contiguous(), ctx.saved_tensors[0])


if hasattr(torch.library, "register_autograd"):
    torch.library.register_fake("proofs::swish", _same_shape)
    torch.library.register_fake("proofs::swish_backward", _same_shape)
    torch.library.register_autograd("proofs::swish", _swish_backward, setup_context=_swish_setup)
else:  # before torch 2.4

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            _swish_setup(ctx, (x,), None)
            with torch._C._AutoDispatchBelowAutograd():
                return ops.swish(x)

        backward = staticmethod(_swish_backward)

    _library = torch.library.Library("proofs", "IMPL")
    _library.impl("swish", _same_shape, "Meta")
    _library.impl("swish_backward", _same_shape, "Meta")
    _library.impl("swish", Swish.apply, "Autograd")


class Lltm(torch.autograd.Function):
    """(gates, old_cell) to (h, cell); gates is (batch, 3, state)."""

    @staticmethod
    def forward(ctx, gates, old_cell):
        h, cell = ops.lltm_cell(gates, old_cell)
        ctx.save_for_backward(cell, gates)
        return h, cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return ops.lltm_cell_backward(grad_h.contiguous(), grad_cell.contiguous(), *ctx.saved_tensors)


class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return ops.row_sum(x)

    @staticmethod
    def backward(ctx, grad):
        return grad[:, None].expand(ctx.shape)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = ops.softmax(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return ops.softmax_backward(grad.contiguous(), *ctx.saved_tensors)


class TiledMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return ops.tiled_mm(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad = grad.contiguous()
        return ops.tiled_mm(grad, b.t().contiguous()), ops.tiled_mm(a.t().contiguous(), grad)


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        y, kept = ops.philox_dropout(x, p)
        ctx.save_for_backward(kept)
        ctx.scale = 1 / (1 - p)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * ctx.scale, None
