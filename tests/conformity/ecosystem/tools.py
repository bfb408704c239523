"""Diffusion models, Gaussian processes, image operators, trainers and metrics."""

import tempfile
from typing import Any, Callable, Dict, Tuple

import torch
from compare import Program, moved, training
from torch import Tensor, nn


def _drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def _of_tensors(function: Callable[..., Any], *inputs: Any) -> Program:
    """A program that calls a function and, where the first result has one, takes the gradient of its sum."""

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        given = [moved(value, device, dtype) for value in inputs]
        first = given[0]
        if first.is_floating_point():
            first.requires_grad_()
        outputs = function(*given)
        whole = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        watched = [part for part in whole if isinstance(part, Tensor) and part.requires_grad]
        gradients = []
        if watched:
            total = sum((part * part).sum() for part in watched)
            gradients = [g for g in torch.autograd.grad(total, [first], allow_unused=True) if g is not None]
        return {"outputs": whole, "gradients": gradients}

    return program


def diffusers(name: str) -> Program:
    """Training steps of a small model of the class, or a pipeline's whole sampling loop."""
    import diffusers as package

    blocks = {"block_out_channels": (32, 64), "norm_num_groups": 8, "layers_per_block": 1}
    image = _drawn(2, 3, 16, 16)

    def unet() -> nn.Module:
        return package.UNet2DModel(
            sample_size=16,
            in_channels=3,
            out_channels=3,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            **blocks,
        )

    def denoised(module: nn.Module, given: Dict[str, Any]) -> Tuple[Tensor, Any]:
        outputs = module(**given)
        parts = outputs.sample if hasattr(outputs, "sample") else outputs.mid_block_res_sample
        return (parts**2).mean(), parts

    steps = torch.tensor([10, 500])
    latent, text = _drawn(2, 4, 16, 16), _drawn(2, 7, 16, seed=2)
    conditional = {
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "cross_attention_dim": 16,
        "attention_head_dim": 8,
        **blocks,
    }
    if name.endswith("Pipeline"):
        scheduler = package.DDIMScheduler if name.startswith("DDIM") else package.DDPMScheduler
        torch.manual_seed(0)
        network = unet().eval()

        def program(device: str, dtype: torch.dtype) -> Any:
            pipeline = getattr(package, name)(network.to(device, dtype), scheduler(num_train_timesteps=50))
            pipeline.set_progress_bar_config(disable=True)
            # The noise is drawn on the CPU, as upstream advises for results that repeat between devices.
            generator = torch.Generator().manual_seed(3)
            return torch.as_tensor(
                pipeline(batch_size=2, generator=generator, num_inference_steps=8, output_type="np").images
            )

        return program
    makers: Dict[str, Tuple[Callable[[], nn.Module], Dict[str, Any]]] = {
        "UNet2DModel": (unet, {"sample": image, "timestep": steps}),
        "AutoencoderKL": (
            lambda: package.AutoencoderKL(
                down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, **blocks
            ),
            {"sample": image},
        ),
        "UNet2DConditionModel": (
            lambda: package.UNet2DConditionModel(
                sample_size=16, up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **conditional
            ),
            {"sample": latent, "timestep": steps, "encoder_hidden_states": text},
        ),
        "ControlNetModel": (
            lambda: package.ControlNetModel(conditioning_embedding_out_channels=(16, 32), **conditional),
            {
                "sample": latent,
                "timestep": steps,
                "encoder_hidden_states": text,
                "controlnet_cond": _drawn(2, 3, 32, 32, seed=4),
            },
        ),
        "DiTTransformer2DModel": (
            lambda: package.DiTTransformer2DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=4,
                num_layers=2,
                sample_size=16,
                num_embeds_ada_norm=10,
            ),
            {"hidden_states": latent, "timestep": steps, "class_labels": torch.tensor([1, 2])},
        ),
    }
    make, given = makers[name]
    return training(make, given, denoised)


def gpytorch(name: str) -> Program:
    """Steps on the marginal likelihood (or its bound) of a Gaussian process, and its predictions."""
    import gpytorch as package

    x, z = _drawn(40, 2), _drawn(9, 2, seed=2)
    y = torch.sin(6 * x[:, 0]) + x[:, 1]

    class Exact(package.models.ExactGP):
        def __init__(self, x: Tensor, y: Tensor, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = package.means.ConstantMean()
            self.covar_module = package.kernels.ScaleKernel(package.kernels.MaternKernel(ard_num_dims=2))

        def forward(self, x: Tensor) -> Any:
            return package.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Variational(package.models.ApproximateGP):
        def __init__(self, points: Tensor) -> None:
            distribution = package.variational.CholeskyVariationalDistribution(points.shape[0])
            super().__init__(package.variational.VariationalStrategy(self, points, distribution))
            self.mean_module = package.means.ZeroMean()
            self.covar_module = package.kernels.ScaleKernel(package.kernels.RBFKernel())

        def forward(self, x: Tensor) -> Any:
            return package.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        there, values, others = (tensor.to(device, dtype) for tensor in (x, y, z))
        torch.manual_seed(0)
        likelihood = package.likelihoods.GaussianLikelihood().to(device, dtype)
        if name == "exact":
            model = Exact(there, values, likelihood).to(device, dtype)
            target = package.mlls.ExactMarginalLogLikelihood(likelihood, model)
        else:
            model = Variational(others.clone()).to(device, dtype)
            # Its first call adds noise to the variational mean, which the devices draw differently.
            model.variational_strategy._variational_distribution.mean_init_std = 0.0
            target = package.mlls.VariationalELBO(likelihood, model, num_data=len(values))
        parameters = {id(p): p for p in [*model.parameters(), *likelihood.parameters()]}.values()
        optimizer = torch.optim.Adam(parameters, lr=0.05)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            value = -target(model(there), values)
            value.backward()
            optimizer.step()
            losses.append(value.detach())
        model.eval()
        with torch.no_grad():
            found = likelihood(model(others))
            return {"losses": losses, "mean": found.mean, "variance": found.variance}

    return program


def kornia(name: str) -> Program:
    """Operators of one part of the package on two images, with their gradients."""
    import kornia as package

    image, other = _drawn(2, 3, 24, 32), _drawn(2, 3, 24, 32, seed=2)
    filters, geometry = package.filters, package.geometry
    functions: Dict[str, Callable[..., Any]] = {
        "color": lambda a: [package.color.rgb_to_lab(a), package.color.rgb_to_hsv(a), package.color.rgb_to_yuv(a)],
        "filters": lambda a: [
            filters.gaussian_blur2d(a, (5, 5), (1.5, 1.5)),
            filters.median_blur(a, (3, 3)),
            filters.bilateral_blur(a, (3, 3), 0.1, (1.5, 1.5)),
            filters.unsharp_mask(a, (3, 3), (1.5, 1.5)),
        ],
        "edges": lambda a: [filters.sobel(a), filters.laplacian(a, 3), filters.canny(a)[0]],
        "geometry": lambda a: [
            geometry.rotate(a, torch.tensor([15.0, -40.0], device=a.device, dtype=a.dtype)),
            geometry.resize(a, (12, 40)),
            geometry.warp_perspective(a, torch.eye(3, device=a.device, dtype=a.dtype).expand(2, 3, 3) * 1.1, (24, 32)),
            geometry.pyrdown(a),
        ],
        "morphology": lambda a: [
            getattr(package.morphology, word)(a, torch.ones(3, 3, device=a.device, dtype=a.dtype))
            for word in ("dilation", "erosion", "opening", "gradient")
        ],
        "features": lambda a: [package.feature.harris_response(a, 0.04), package.feature.gftt_response(a)],
        "losses": lambda a, b: [
            package.losses.ssim_loss(a, b, 5),
            package.losses.psnr_loss(a, b, 1.0),
            package.losses.total_variation(a),
        ],
        "augmentation": lambda a: [
            package.enhance.adjust_contrast(a, 1.3),
            package.enhance.equalize(a.detach()),
            package.enhance.adjust_gamma(a, 0.7),
            package.enhance.posterize(a.detach(), 3),
        ],
    }
    return _of_tensors(functions[name], *((image, other) if name == "losses" else (image,)))


def lightning(name: str) -> Program:
    """An epoch of Lightning's Trainer, or the same loop by Fabric, on the accelerator of the device."""
    import lightning as package

    x, y = _drawn(32, 1, 8, 8), torch.arange(32) % 3

    def network() -> nn.Module:
        torch.manual_seed(0)
        # A view of images behind relu: what the layout rule has to allow.
        layers = (nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
        return nn.Sequential(*layers)

    class Task(package.LightningModule):
        def __init__(self, dtype: torch.dtype) -> None:
            super().__init__()
            self.network = network().to(dtype)
            self.kind = dtype
            self.losses: list = []

        def training_step(self, batch: Any, _: int) -> Tensor:
            value = nn.functional.cross_entropy(self.network(batch[0].to(self.kind)), batch[1])
            self.losses.append(value.detach())
            return value

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
        if name == "trainer":
            task = Task(dtype)
            quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
            with tempfile.TemporaryDirectory() as folder:
                trainer = package.Trainer(
                    accelerator=device,
                    devices=1,
                    max_epochs=2,
                    default_root_dir=folder,
                    enable_model_summary=False,
                    **quiet,
                )
                trainer.fit(task, loader)
            return {"losses": task.losses, "weights": list(task.parameters())}
        fabric = package.Fabric(accelerator=device, devices=1)
        module = network().to(dtype)
        module, optimizer = fabric.setup(module, torch.optim.SGD(module.parameters(), lr=0.1))
        losses = []
        for images, labels in fabric.setup_dataloaders(loader):
            value = nn.functional.cross_entropy(module(images.to(dtype)), labels)
            fabric.backward(value)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(value.detach())
        return {"losses": losses, "weights": list(module.parameters())}

    return program


def torchmetrics(name: str) -> Program:
    """Metrics that are updated twice and then computed."""
    import torchmetrics as package

    scores = _drawn(2, 40, 5).softmax(-1)
    labels = torch.randint(0, 5, (2, 40), generator=torch.Generator().manual_seed(3))
    found, wanted = _drawn(2, 40, seed=4), _drawn(2, 40, seed=5)
    images, others = _drawn(2, 2, 3, 32, 32), _drawn(2, 2, 3, 32, 32, seed=6)
    groups = torch.arange(40).expand(2, 40) // 8

    classes = package.classification
    metrics: Dict[str, Tuple[Dict[str, Any], Tuple[Tensor, ...]]] = {
        "classification": (
            {
                "accuracy": classes.MulticlassAccuracy(5),
                "auroc": classes.MulticlassAUROC(5),
                "f1": classes.MulticlassF1Score(5),
                "confusion": classes.MulticlassConfusionMatrix(5),
                "calibration": classes.MulticlassCalibrationError(5),
                "average precision": classes.MulticlassAveragePrecision(5, thresholds=20),
            },
            (scores, labels),
        ),
        "regression": (
            {
                "mse": package.MeanSquaredError(),
                "r2": package.R2Score(),
                "pearson": package.PearsonCorrCoef(),
                "spearman": package.SpearmanCorrCoef(),
                "kendall": package.KendallRankCorrCoef(),
            },
            (found, wanted),
        ),
        "image": (
            {
                "psnr": package.image.PeakSignalNoiseRatio(data_range=1.0),
                "ssim": package.image.StructuralSimilarityIndexMeasure(data_range=1.0),
                "tv": package.image.UniversalImageQualityIndex(),
            },
            (images, others),
        ),
        "retrieval": (
            {"map": package.RetrievalMAP(), "ndcg": package.RetrievalNormalizedDCG(), "mrr": package.RetrievalMRR()},
            (found, labels > 2, groups),
        ),
        "text": ({"perplexity": package.text.Perplexity()}, (scores.unsqueeze(1).log(), labels.unsqueeze(1))),
    }
    chosen, inputs = metrics[name]

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        results = {}
        for word, metric in chosen.items():
            there = metric.to(device)
            there.reset()
            for step in range(2):
                given = [moved(value[step], device, dtype) for value in inputs]
                there.update(*given[:2], **({"indexes": given[2]} if len(given) == 3 else {}))
            results[word] = there.compute()
        return results

    return program


def others(name: str) -> Program:
    """einops on images; accelerate with two batches a step and clipped gradients."""
    if name == "einops":
        import einops

        return _of_tensors(
            lambda a: [
                einops.rearrange(a, "b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4),
                einops.reduce(a, "b c (h 2) (w 2) -> b c h w", "max"),
                einops.einsum(a, a, "b c h w, b d h w -> b c d"),
                einops.repeat(a, "b c h w -> b (r c) h w", r=2),
            ],
            _drawn(2, 3, 16, 16),
        )
    import accelerate

    x, y = _drawn(32, 8), torch.arange(32) % 3

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
        worker = accelerate.Accelerator(cpu=device == "cpu", gradient_accumulation_steps=2)
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3)).to(dtype)
        data = torch.utils.data.TensorDataset(x.to(dtype), y)
        module, optimizer, loader = worker.prepare(
            module, torch.optim.AdamW(module.parameters(), lr=1e-2), torch.utils.data.DataLoader(data, batch_size=4)
        )
        losses = []
        for inputs, labels in loader:
            with worker.accumulate(module):
                value = nn.functional.cross_entropy(module(inputs), labels)
                worker.backward(value)
                worker.clip_grad_norm_(module.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(worker.gather(value.detach()))
        return {"losses": losses, "weights": list(module.parameters())}

    return program
