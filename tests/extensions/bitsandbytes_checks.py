"""bitsandbytes on the device beside its CPU backend. Run by test_bitsandbytes.py where the package is installed."""

import sys

import bitsandbytes as bnb
import torch
from bitsandbytes import functional as F

TYPES = (torch.float32, torch.float16, torch.bfloat16)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def close(ours, theirs, tolerance, what):
    ours, theirs = ours.detach().float().cpu(), theirs.detach().float()
    assert ours.shape == theirs.shape, what
    apart = float((ours - theirs).norm() / theirs.norm().clamp_min(1e-30))
    assert apart <= tolerance, f"{what}: {apart:.2g} from the CPU's"


def check_quantisation():
    for dtype in TYPES:
        values = drawn(37, 129).to(dtype)
        for kind in ("nf4", "fp4"):
            for block in (64, 256):
                pairs = [F.quantize_4bit(values.to(d), blocksize=block, quant_type=kind) for d in ("cuda", "cpu")]
                (ours, state), (theirs, other) = pairs
                # A value in the middle between two codes may go either way by rounding, and a zero has two codes.
                again, once = F.dequantize_4bit(ours, state).cpu(), F.dequantize_4bit(theirs, other)
                assert (~torch.isclose(again, once, 1e-2, 1e-5)).float().mean() < 1e-3, (dtype, kind, block)
                close(state.absmax, other.absmax, 0, "absmax")
                close(F.dequantize_4bit(theirs.cuda(), state), F.dequantize_4bit(theirs, other), 1e-3, kind)
        (ours, state), (theirs, other) = [F.quantize_blockwise(values.to(d), blocksize=256) for d in ("cuda", "cpu")]
        apart = (ours.cpu().int() - theirs.int()).abs()
        assert apart.max() <= 1 and apart.float().mean() < 5e-3, dtype
        close(F.dequantize_blockwise(theirs.cuda(), state), F.dequantize_blockwise(theirs, other), 1e-3, "8 bits")


def check_products():
    weights = drawn(96, 128, seed=1)
    for dtype in TYPES:
        for kind in ("nf4", "fp4"):
            for nested in (False, True):
                for rows in (1, 3, 40):
                    packed, state = F.quantize_4bit(
                        weights.to("cuda", dtype), quant_type=kind, compress_statistics=nested
                    )
                    given = drawn(rows, 128, seed=2).to(dtype)
                    wide = F.dequantize_4bit(packed, state).float().cpu()
                    found = bnb.matmul_4bit(given.cuda(), packed.t(), quant_state=state)
                    close(found, given.float() @ wide.t(), 1e-2 if dtype == torch.bfloat16 else 2e-3, (dtype, kind))


def check_int8():
    given, weights = drawn(5, 64).half(), drawn(32, 64, seed=1).half()
    given[2, 7] = 30.0
    for threshold in (0.0, 6.0):
        ours, ours_stats, _ = F.int8_vectorwise_quant(given.cuda(), threshold)
        theirs, stats, _ = F.int8_vectorwise_quant(given.clone(), threshold)
        assert (ours.cpu().int() - theirs.int()).abs().max() <= 1
        close(ours_stats, stats, 1e-6, "statistics of rows")
    a, a_stats, _ = F.int8_vectorwise_quant(given)
    b, b_stats, _ = F.int8_vectorwise_quant(weights)
    exact = a.int() @ b.int().t()
    product = F.int8_linear_matmul(a.cuda(), b.cuda())
    assert torch.equal(product.cpu(), exact)
    found = F.int8_mm_dequant(product, a_stats.cuda(), b_stats.cuda())
    close(found, F.int8_mm_dequant(exact, a_stats, b_stats), 1e-3, "int8 to half")
    layer = bnb.nn.Linear8bitLt(64, 32, has_fp16_weights=False, threshold=6.0)
    layer.weight = bnb.nn.Int8Params(weights.float().clone(), requires_grad=False)
    close(layer.cuda()(given.cuda()), given.float() @ weights.float().t() + layer.bias.cpu().float(), 3e-2, "layer")


def trained(make, device, dtype=torch.float32, size=5000):
    parameter = torch.nn.Parameter(drawn(size, seed=3).to(device, dtype))
    optimizer = make([parameter])
    for step in range(4):
        parameter.grad = drawn(size, seed=10 + step).to(device, dtype)
        optimizer.step()
    return parameter


def check_optimizers():
    # Not LAMB: the package's CPU backend leaves the correction of the bias out of its norm, its CUDA code does not.
    common = {"lr": 1e-2}
    kinds = {
        "Adam": {"weight_decay": 0.1}, "AdamW": {"weight_decay": 0.1}, "Lion": {"weight_decay": 0.1},
        "AdEMAMix": {}, "SGD": {"momentum": 0.9}, "RMSprop": {}, "Adagrad": {}, "LARS": {"momentum": 0.9},
    }  # fmt: skip
    for name, settings in kinds.items():
        for bits in ("32bit", "8bit"):
            if name == "LARS" and bits == "8bit":
                continue  # the package itself has none for CUDA
            kind = getattr(bnb.optim, f"{name}{bits if bits == '8bit' else ''}")
            extra = {} if bits == "8bit" else {"optim_bits": 32}
            try:
                theirs = trained(lambda p: kind(p, **common, **settings, **extra), "cpu")  # noqa: B023
            except (NotImplementedError, ValueError) as error:
                print("the CPU has no", name, bits, error)
                continue
            ours = trained(lambda p: kind(p, **common, **settings, **extra), "cuda")  # noqa: B023
            initial = drawn(5000, seed=3)
            # Of what the steps changed; a state of 8 bits that lies between two codes may go either way.
            limit = 1e-4 if bits == "32bit" else 2e-2
            close(ours.cpu() - initial, theirs.detach() - initial, limit, (name, bits))
    paged = trained(lambda p: bnb.optim.PagedAdamW32bit(p, **common), "cuda", size=200_000)
    plain = trained(lambda p: bnb.optim.AdamW(p, optim_bits=32, **common), "cuda", size=200_000)
    assert torch.equal(paged, plain)


def check_training():
    """A step of QLoRA's kind: a frozen layer of four bits below one that learns."""
    torch.manual_seed(0)
    frozen = bnb.nn.Linear4bit(64, 64, bias=False, quant_type="nf4", compute_dtype=torch.float32)
    frozen.weight = bnb.nn.Params4bit(drawn(64, 64, seed=1), requires_grad=False, quant_type="nf4")
    frozen = frozen.cuda()
    below = torch.nn.Linear(64, 64).cuda()
    given = drawn(8, 64, seed=2).cuda()
    frozen(below(given)).square().mean().backward()
    wide = F.dequantize_4bit(frozen.weight.data, frozen.weight.quant_state).float()
    expected = torch.autograd.grad((below(given) @ wide.t()).square().mean(), below.weight)[0]
    close(below.weight.grad, expected.cpu(), 1e-5, "gradient through four bits")


if __name__ == "__main__":
    for word in sys.argv[1:] or ("quantisation", "products", "int8", "optimizers", "training"):
        globals()[f"check_{word}"]()
        torch.cuda.synchronize()
        print(word, "agrees")
