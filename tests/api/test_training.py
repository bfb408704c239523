"""Models train on the device as they do on the CPU: the same losses, step by step, within upstream's tolerances."""

import copy
import inspect
import itertools
import math
from typing import Callable, List

import pytest
import release_facts
import torch
from torch import nn
from torch.nn import functional as F

DEVICES = ("cpu", "cuda")


def losses_of(
    model: nn.Module,
    loss_of: Callable[[nn.Module, torch.device], torch.Tensor],
    device: str,
    steps: int = 5,
    optimizer: Callable[..., torch.optim.Optimizer] = lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
) -> List[float]:
    model = copy.deepcopy(model).to(device)
    stepper = optimizer(model.parameters())
    losses = []
    for _ in range(steps):
        stepper.zero_grad()
        loss = loss_of(model, torch.device(device))
        loss.backward()
        stepper.step()
        losses.append(loss.item())
    return losses


def assert_trains_alike(
    model: nn.Module, loss_of: Callable[[nn.Module, torch.device], torch.Tensor], **options
) -> None:
    on_cpu, on_cuda = (losses_of(model, loss_of, device, **options) for device in DEVICES)
    torch.testing.assert_close(torch.tensor(on_cuda), torch.tensor(on_cpu), rtol=1e-4, atol=1e-5)
    assert all(map(math.isfinite, on_cuda))
    assert on_cuda[-1] < on_cuda[0], "the loss should go down"


def assert_same_gradients(function: Callable[..., torch.Tensor], *inputs: torch.Tensor, **tolerance: float) -> None:
    """function(*inputs) and its gradients for all floating inputs agree between the devices."""
    found = []
    for device in DEVICES:
        arguments = [
            x.to(device, memory_format=torch.contiguous_format).detach().requires_grad_(x.is_floating_point())
            for x in inputs
        ]
        result = function(*arguments)
        assert result.device.type == device
        torch.manual_seed(1)
        result.backward(torch.randn(result.shape, dtype=result.dtype).to(device))
        found.append([result.detach().cpu()] + [a.grad.cpu() for a in arguments if a.grad is not None])
    torch.testing.assert_close(found[1], found[0], **(tolerance or {"rtol": 1e-4, "atol": 1e-4}))


# Whole models


@pytest.mark.parametrize("dtype, steps", [(torch.float64, 5), (torch.float32, 2)], ids=str)
def test_resnet18_of_torchvision(dtype, steps):
    torchvision = pytest.importorskip("torchvision", reason="its wheel, installed with --no-deps")
    model = torchvision.models.resnet18(num_classes=10).to(dtype)
    images, labels = torch.randn(8, 3, 64, 64, dtype=dtype), torch.arange(8)

    def loss_of(network, device):
        return F.cross_entropy(network(images.to(device, non_blocking=True)), labels.to(device))

    # In single precision few steps: eighteen layers multiply what the order of summation changes, and after five steps
    # the CPU itself is 5e-4 off its loss in double precision, 4e-3 in channels-last (of six seeds).
    assert_trains_alike(model, loss_of, steps=steps, optimizer=lambda p: torch.optim.SGD(p, lr=0.001, momentum=0.9))


def test_transformer():
    model = nn.Transformer(32, 4, 2, 2, 64, dropout=0.0, batch_first=True)
    source, target = torch.randn(4, 7, 32), torch.randn(4, 6, 32)

    def loss_of(network, device):
        mask = nn.Transformer.generate_square_subsequent_mask(6, device=device)
        return F.mse_loss(network(source.to(device), target.to(device), tgt_mask=mask), target.to(device))

    assert_trains_alike(model, loss_of)


def test_transformer_encoder_in_evaluation():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(3, 5, 32)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        result = copy.deepcopy(model).cuda()(x.cuda(), src_key_padding_mask=padding.cuda())
    torch.testing.assert_close(result.cpu()[~padding], expected[~padding], rtol=1e-4, atol=1e-4)


def test_lstm():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 16, padding_idx=0)
            self.lstm = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(48, 5)

        def forward(self, tokens):
            return self.head(self.lstm(self.embedding(tokens))[0])

    tokens, tags = torch.randint(20, (4, 9)), torch.randint(5, (4, 9))

    def loss_of(network, device):
        return F.cross_entropy(network(tokens.to(device)).flatten(0, 1), tags.to(device).flatten())

    assert_trains_alike(Tagger(), loss_of)


# Mixed precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_with_gradient_scaling(dtype):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 4)
    )
    images, labels = torch.randn(16, 3, 8, 8), torch.arange(16) % 4
    reference = losses_of(model, lambda m, d: F.cross_entropy(m(images), labels), "cpu")
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = release_facts.grad_scaler(enabled=dtype is torch.float16)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            output = model(images.cuda())
            assert output.dtype is dtype
            loss = F.cross_entropy(output, labels.cuda())
        assert loss.dtype is torch.float32
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    torch.testing.assert_close(losses, reference, rtol=0.05, atol=0.05)


def test_gradient_scaling_skips_a_step_with_infinities():
    weight = nn.Parameter(torch.ones(3, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = release_facts.grad_scaler(init_scale=1024.0)
    scaler.scale(weight.sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1.0, 1.0, 1.0]
    assert scaler.get_scale() == 512.0


# Optimizers

OPTIMIZERS = {
    "SGD": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.01},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "Adagrad": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.9},
    "Adadelta": {},
    "Adamax": {"lr": 0.01},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "ASGD": {"lr": 0.01},
    "Rprop": {"lr": 0.01},
}
FORMS = [(name, {"foreach": flag}) for name in OPTIMIZERS for flag in (True, False)]
FORMS += [(name, {"fused": True}) for name in ("SGD", "Adam", "AdamW")]
FORMS += [(name, {"capturable": True}) for name in ("Adam", "AdamW", "NAdam", "RAdam")]
# Old releases have fewer forms.
FORMS = [
    (name, form) for name, form in FORMS if set(form) <= set(inspect.signature(getattr(torch.optim, name)).parameters)
]


@pytest.mark.parametrize(("name", "form"), FORMS, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_optimizers_step_alike_in_every_form(name, form):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    settings = OPTIMIZERS[name]
    make = getattr(torch.optim, name)
    loss_of = lambda m, d: F.mse_loss(m(x.to(d)), y.to(d))  # noqa: E731
    expected = losses_of(model, loss_of, "cpu", optimizer=lambda p: make(p, foreach=False, **settings))
    found = losses_of(model, loss_of, "cuda", optimizer=lambda p: make(p, **settings, **form))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


STATES = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


@release_facts.wants("adams_state_in_bfloat16")
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_fused_adam_keeps_the_state_of_floats_in_bfloat16(name):
    torch.manual_seed(0)
    start, slopes = torch.rand(20, 7), torch.rand(4, 20, 7)
    ended = []
    for device in DEVICES:
        parameter = start.clone().to(device).requires_grad_()
        optimizer = getattr(torch.optim, name)([parameter], lr=0.01, weight_decay=0.1, amsgrad=True, fused=True)
        state = optimizer.state[parameter]
        state["step"] = torch.zeros((), device=device)
        state.update({key: torch.zeros_like(start, device=device) for key in STATES})
        for slope in slopes:
            parameter.grad = slope.to(device)
            for key in STATES:
                # On the CPU the kernel takes floats alone, which are rounded between its steps.
                state[key] = state[key].bfloat16() if device == "cuda" else state[key].bfloat16().float()
            optimizer.step()
        assert device == "cpu" or all(state[key].dtype == torch.bfloat16 for key in STATES)
        ended.append([parameter.detach().cpu(), *(state[key].bfloat16().cpu() for key in STATES)])
    for on_cpu, on_cuda in zip(*ended):
        assert torch.equal(on_cuda, on_cpu)


# Dropout

DROPOUTS = {
    "Dropout": (8, 50),
    "Dropout1d": (4, 20, 9),
    "Dropout2d": (4, 20, 5, 5),
    "Dropout3d": (4, 20, 3, 3, 3),
    "AlphaDropout": (8, 50),
    "FeatureAlphaDropout": (4, 20, 5, 5),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_repeats_for_one_seed(name):
    layer = getattr(nn, name)(0.4)
    x = torch.ones(DROPOUTS[name], device="cuda", requires_grad=True)
    torch.cuda.manual_seed(11)
    first, second = layer(x), layer(x)
    torch.cuda.manual_seed(11)
    again = layer(x)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    (gradient,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(gradient == gradient.min(), first == first.min())
    assert torch.equal(layer.eval()(x), x)


def test_dropout_keeps_the_share_and_the_mean():
    y = F.dropout(torch.ones(100_000, device="cuda"), 0.25)
    assert 0.74 < (y != 0).float().mean().item() < 0.76
    assert y.max().item() == pytest.approx(1 / 0.75)


def test_lstm_dropout_repeats_for_one_seed():
    lstm = nn.LSTM(4, 8, num_layers=2, dropout=0.5).cuda()
    x = torch.randn(5, 3, 4, device="cuda")
    torch.cuda.manual_seed(2)
    first = lstm(x)[0]
    torch.cuda.manual_seed(2)
    assert torch.equal(first, lstm(x)[0])


# Attention


BACKENDS = ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"]


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_attention_of_every_backend(backend, causal):
    if backend == "CUDNN_ATTENTION":
        release_facts.need("attention_of_cudnn_is_chosen")
    dtype = torch.float16
    q, k, v = (torch.randn(2, 4, 16, 32) for _ in range(3))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    on_device = [x.to("cuda", dtype, memory_format=torch.contiguous_format).requires_grad_() for x in (q, k, v)]
    with release_facts.attention_by(backend):
        result = F.scaled_dot_product_attention(*on_device, is_causal=causal)
        result.float().sum().backward()
    torch.testing.assert_close(result.float().cpu(), expected, rtol=1e-2, atol=1e-2)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    F.scaled_dot_product_attention(*leaves, is_causal=causal).sum().backward()
    for found, leaf in zip(on_device, leaves):
        torch.testing.assert_close(found.grad.float().cpu(), leaf.grad, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("backend", ["MATH", "EFFICIENT_ATTENTION"])
def test_attention_with_a_mask(backend):
    q, k, v = (torch.randn(2, 4, 16, 32) for _ in range(3))
    bias = torch.randn(2, 4, 16, 16)

    def attend(*tensors):
        if tensors[0].is_cuda:
            with release_facts.attention_by(backend):
                return F.scaled_dot_product_attention(*tensors[:3], attn_mask=tensors[3])
        return F.scaled_dot_product_attention(*tensors[:3], attn_mask=tensors[3])

    assert_same_gradients(attend, q, k, v, bias, rtol=1e-3, atol=1e-3)


def test_multi_head_attention_returns_weights():
    layer = nn.MultiheadAttention(16, 4, batch_first=True)
    x = torch.randn(2, 5, 16)
    expected, weights = layer(x, x, x)
    found, found_weights = copy.deepcopy(layer).cuda()(x.cuda(), x.cuda(), x.cuda())
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found_weights.cpu(), weights, rtol=1e-4, atol=1e-4)


# Layers

CONVOLUTIONS = {
    "1d": (F.conv1d, (2, 4, 12), (6, 4, 3), {"padding": 1}),
    "2d": (F.conv2d, (2, 4, 9, 9), (6, 4, 3, 3), {"stride": 2}),
    "3d": (F.conv3d, (2, 4, 6, 6, 6), (6, 4, 3, 3, 3), {"padding": 1}),
    "2d same padding": (F.conv2d, (2, 4, 9, 9), (6, 4, 3, 3), {"padding": "same"}),
    "dilated": (F.conv2d, (2, 4, 11, 11), (6, 4, 3, 3), {"dilation": 2}),
    "dilated 3d": (F.conv3d, (1, 2, 8, 8, 8), (3, 2, 3, 3, 3), {"dilation": 2}),
    "groups": (F.conv2d, (2, 4, 9, 9), (6, 2, 3, 3), {"groups": 2}),
    "depthwise": (F.conv2d, (2, 4, 9, 9), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    "depthwise multiplier": (F.conv2d, (2, 4, 9, 9), (8, 1, 3, 3), {"groups": 4}),
    "depthwise 3d": (F.conv3d, (2, 4, 6, 6, 6), (4, 1, 3, 3, 3), {"groups": 4}),
    "depthwise 1d": (F.conv1d, (2, 4, 12), (4, 1, 3), {"groups": 4}),
    "pointwise": (F.conv2d, (2, 4, 9, 9), (6, 4, 1, 1), {}),
    "transposed 1d": (F.conv_transpose1d, (2, 4, 12), (4, 6, 3), {"stride": 2}),
    "transposed 2d": (F.conv_transpose2d, (2, 4, 9, 9), (4, 6, 3, 3), {"stride": 2, "output_padding": 1}),
    "transposed 3d": (F.conv_transpose3d, (2, 4, 5, 5, 5), (4, 6, 3, 3, 3), {"padding": 1}),
    "transposed groups": (F.conv_transpose2d, (2, 4, 9, 9), (4, 3, 3, 3), {"groups": 2}),
}


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, channels_last):
    function, input_shape, weight_shape, options = CONVOLUTIONS[name]
    if channels_last and len(input_shape) != 4:
        pytest.skip("channels_last is a layout of four dimensions")
    transposed = function.__name__.startswith("conv_transpose")
    outputs = weight_shape[1] * options.get("groups", 1) if transposed else weight_shape[0]

    def convolve(x, weight, bias):
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        return function(x, weight, bias, **options)

    assert_same_gradients(convolve, torch.randn(input_shape), torch.randn(weight_shape), torch.randn(outputs))


@pytest.mark.parametrize(
    "layer", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
)
def test_lazy_convolutions(layer):
    dimensions = int(layer[-2])
    lazy = getattr(nn, "Lazy" + layer)(4, 3).cuda()
    assert lazy(torch.randn(2, 3, *[7] * dimensions, device="cuda")).device.type == "cuda"
    assert lazy.weight.device.type == "cuda"


def test_unfold_and_fold():
    assert_same_gradients(lambda x: F.unfold(x, 3, padding=1), torch.randn(2, 3, 6, 6))
    assert_same_gradients(lambda x: F.fold(x, (6, 6), 3), torch.randn(2, 27, 16))


@pytest.mark.parametrize("shape", [(8, 6), (4, 6, 7), (4, 6, 5, 5), (2, 6, 4, 4, 4)])
def test_batch_norm(shape):
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
    layer = kind(6)
    on_device = copy.deepcopy(layer).cuda()
    x = torch.randn(shape)
    a, b = x.clone().requires_grad_(), x.cuda().requires_grad_()
    for _ in range(2):
        y, z = layer(a), on_device(b)
        torch.testing.assert_close(z.cpu(), y, rtol=1e-4, atol=1e-4)
    (y**2).sum().backward()
    (z**2).sum().backward()
    torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-3, atol=1e-3)
    for name, buffer in layer.state_dict().items():
        torch.testing.assert_close(on_device.state_dict()[name].cpu(), buffer, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(on_device.eval()(b).cpu(), layer.eval()(a), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x: F.group_norm(x, 3),
        lambda x: F.instance_norm(x),
        lambda x: F.layer_norm(x, x.shape[1:]),
        lambda x: F.local_response_norm(x, 3),
    ],
)
def test_other_norms(norm):
    assert_same_gradients(norm, torch.randn(4, 6, 5, 5))


RECURRENT = list(itertools.product(["RNN", "LSTM", "GRU"], [1, 2], [False, True]))


def assert_recurrent_alike(layer, x):
    """Outputs, final states and all gradients; x is a tensor or a packed sequence."""
    found = []
    for device in DEVICES:
        network = copy.deepcopy(layer).to(device)
        output, states = network(x.to(device))
        if isinstance(output, nn.utils.rnn.PackedSequence):
            output = nn.utils.rnn.pad_packed_sequence(output)[0]
        states = states if isinstance(states, tuple) else (states,)
        (output.square().sum() + sum(s.sum() for s in states)).backward()
        found.append([t.detach().cpu() for t in (output, *states, *(p.grad for p in network.parameters()))])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "layers", "bidirectional"), RECURRENT)
def test_recurrent_layers(kind, layers, bidirectional):
    assert_recurrent_alike(getattr(nn, kind)(5, 7, layers, bidirectional=bidirectional), torch.randn(6, 3, 5))


@pytest.mark.parametrize(("kind", "layers", "bidirectional"), RECURRENT)
def test_recurrent_layers_on_packed_sequences(kind, layers, bidirectional):
    sequences = [torch.randn(n, 5) for n in (6, 2, 4)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    assert_recurrent_alike(getattr(nn, kind)(5, 7, layers, bidirectional=bidirectional), packed)


@pytest.mark.parametrize(
    "layer",
    [
        nn.RNN(5, 7, nonlinearity="relu"),
        nn.LSTM(5, 7, proj_size=3, num_layers=2),
        nn.GRU(5, 7, bias=False),
        nn.LSTM(5, 7, batch_first=True),
    ],
    ids=["relu", "projections", "no bias", "batch first"],
)
def test_recurrent_variants(layer):
    assert_recurrent_alike(layer, torch.randn(6, 3, 5))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_flattened_parameters_share_one_block(kind):
    layer = getattr(nn, kind)(5, 7, 2).cuda()
    layer.flatten_parameters()
    assert len({p.untyped_storage().data_ptr() for p in layer.parameters()}) == 1
    before = copy.deepcopy(layer.state_dict())
    layer(torch.randn(6, 3, 5, device="cuda"))[0].sum().backward()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(kind):
    cell = getattr(nn, kind)(5, 7)

    def step(x):
        network = copy.deepcopy(cell).to(x.device)
        result = network(x)
        return result[0] if isinstance(result, tuple) else result

    assert_same_gradients(step, torch.randn(3, 5))


def test_embeddings():
    index = torch.randint(10, (4, 6))
    assert_same_gradients(lambda w: F.embedding(index.to(w.device), w, padding_idx=2), torch.randn(10, 5))
    for mode in ("sum", "mean", "max"):
        assert_same_gradients(lambda w: F.embedding_bag(index.to(w.device), w, mode=mode), torch.randn(10, 5))  # noqa: B023
    sparse = nn.Embedding(10, 5, sparse=True).cuda()
    sparse(index.cuda()).sum().backward()
    assert sparse.weight.grad.is_sparse
    assert sparse.weight.grad.to_dense().sum().item() == index.numel() * 5


labels = torch.tensor([1, 0, 4, 2])
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(x, labels.to(x.device), label_smoothing=0.1),
    "nll": lambda x: F.nll_loss(x.log_softmax(1), labels.to(x.device), ignore_index=0),
    "mse": lambda x: F.mse_loss(x, torch.ones_like(x)),
    "l1": lambda x: F.l1_loss(x, torch.ones_like(x)),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, torch.ones_like(x)),
    "huber": lambda x: F.huber_loss(x, torch.ones_like(x)),
    "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), torch.full_like(x, 0.3)),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3)),
    "kl_div": lambda x: F.kl_div(x.log_softmax(1), torch.full_like(x, 0.2), reduction="batchmean"),
    "poisson_nll": lambda x: F.poisson_nll_loss(x, torch.ones_like(x)),
    "gaussian_nll": lambda x: F.gaussian_nll_loss(x, torch.ones_like(x), torch.full_like(x, 0.5)),
    "multi_margin": lambda x: F.multi_margin_loss(x, labels.to(x.device)),
    "multilabel_soft_margin": lambda x: F.multilabel_soft_margin_loss(x, torch.ones_like(x)),
    "soft_margin": lambda x: F.soft_margin_loss(x, torch.ones_like(x)),
    "cosine_embedding": lambda x: F.cosine_embedding_loss(x, torch.ones_like(x), torch.ones(4, device=x.device)),
    "triplet_margin": lambda x: F.triplet_margin_loss(x, torch.ones_like(x), torch.zeros_like(x)),
    "margin_ranking": lambda x: F.margin_ranking_loss(x[:, 0], x[:, 1], torch.ones(4, device=x.device)),
    "hinge_embedding": lambda x: F.hinge_embedding_loss(x, torch.ones_like(x)),
    "ctc": lambda x: F.ctc_loss(
        x.reshape(10, 1, 2).log_softmax(2), torch.tensor([[1, 1]]).to(x.device), torch.tensor([10]), torch.tensor([2])
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    assert_same_gradients(LOSSES[name], torch.randn(4, 5))


# The data path


def test_pinned_batches_arrive_without_blocking():
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(12, 2), torch.arange(12))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    seen = []
    for x, y in loader:
        assert x.is_pinned() and y.is_pinned()
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        assert torch.equal(x[:, 0], y * 2.0)
        seen += y.tolist()
    assert seen == list(range(12))


def test_worker_processes_feed_the_device():
    data = torch.utils.data.TensorDataset(torch.arange(12.0))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, pin_memory=True)
    assert sum(x.cuda(non_blocking=True).sum().item() for (x,) in loader) == 66


def test_checkpoints_move_between_devices(tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).cuda()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    state = torch.load(tmp_path / "model.pt")
    assert all(value.is_cuda for value in state.values())
    on_cpu = torch.load(tmp_path / "model.pt", map_location="cpu")
    for name, value in on_cpu.items():
        assert not value.is_cuda
        assert torch.equal(value, state[name].cpu())


def test_a_program_may_end_with_a_backward(process):
    code = """
        import torch
        torch.nn.Linear(2, 2).cuda()(torch.ones(1, 2).cuda()).sum().backward()
    """
    for _ in range(3):
        assert process(code).stderr == ""
