"""A small language model trained in parallel by four ranks has the losses of one rank that is alone."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import release_facts
import torch

release_facts.need_for_module("meshes_of_devices")
if not torch.distributed.is_nccl_available():
    pytest.skip("this build has no NCCL", allow_module_level=True)

RANKS = 4
MODEL = """
import os, torch, torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.distributed.device_mesh import init_device_mesh

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TOKENS, WIDTH, HEADS, LENGTH, STEPS = 48, 32, 4, 12, 4

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 128), nn.Linear(128, WIDTH)

    def forward(self, x):
        y = self.before(x)
        # Under tensor parallelism a rank has a part of the heads, so their number is not given here.
        heads = [f(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.query, self.key, self.value)]
        x = x + self.out(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.between(x))))

def parts():
    "The model as a sequence of four modules, the same on every rank."
    torch.manual_seed(0)
    # With a bias the scores would be a view, and 2.6.0's pipelines detach in place what the last stage gives.
    head = nn.Linear(WIDTH, TOKENS, bias=False)
    return [nn.Embedding(TOKENS, WIDTH).cuda(), Block().cuda(), Block().cuda(), head.cuda()]

def batch(step):
    "Eight rows of tokens, each one more than that before it: (inputs, targets)."
    start = torch.randint(0, TOKENS, (8, 1), generator=torch.Generator().manual_seed(step))
    tokens = (start + torch.arange(LENGTH + 1)) % TOKENS
    return tokens[:, :-1].cuda(), tokens[:, 1:].cuda()

def loss_of(scores, targets):
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())

def optimizer_of(parameters):
    return torch.optim.AdamW(parameters, 1e-2)

def train(model, steps=range(STEPS), part=0, of=1, optimizer=None):
    "Train on one of equal parts of each batch; the mean losses of all ranks, for ranks that have one each."
    optimizer, losses = optimizer or optimizer_of(model.parameters()), []
    for step in steps:
        inputs, targets = (tokens.chunk(of)[part] for tokens in batch(step))
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = loss.detach()
        if of > 1:
            dist.all_reduce(loss, dist.ReduceOp.AVG)
        losses.append(loss.item())
    return losses

torch.cuda.set_device(rank)
alone = train(nn.Sequential(*parts()))
assert alone[-1] < alone[0] - 0.3, alone
dist.init_process_group("nccl")

def check(losses, steps=slice(None)):
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(alone[steps]), rtol=1e-4, atol=1e-4)
"""


def run_ranks(tmp_path: pathlib.Path, code: str, ranks: int = RANKS) -> None:
    path = tmp_path / f"train_{ranks}.py"
    path.write_text(MODEL + textwrap.dedent(code) + "\ndist.destroy_process_group()\n", encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(path)]
    variables = dict(os.environ, MACA_DEVICE_COUNT=str(ranks), OMP_NUM_THREADS="1", FOLDER=str(tmp_path))
    done = subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("ranks", [2, RANKS])
def test_data_parallel(tmp_path: pathlib.Path, ranks: int) -> None:
    run_ranks(
        tmp_path,
        "check(train(nn.parallel.DistributedDataParallel(nn.Sequential(*parts()), [rank]), part=rank, of=ranks))",
        ranks,
    )


SHARDED = """
    import torch.distributed.checkpoint as checkpoints
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard
    path = os.path.join(os.environ["FOLDER"], "checkpoint")
    model = nn.Sequential(*parts())
    for module in model:
        fully_shard(module)
    fully_shard(model)
    optimizer = optimizer_of(model.parameters())
"""


@release_facts.wants("fully_shard")
def test_sharded_parameters_and_a_checkpoint_that_fewer_ranks_go_on_from(tmp_path: pathlib.Path) -> None:
    run_ranks(
        tmp_path,
        SHARDED
        + """
    check(train(model, range(2), rank, ranks, optimizer), slice(2))
    weights, moments = get_state_dict(model, optimizer)
    checkpoints.save({"model": weights, "optimizer": moments}, checkpoint_id=path)
    check(train(model, range(2, STEPS), rank, ranks, optimizer), slice(2, STEPS))
    """,
    )
    run_ranks(
        tmp_path,
        SHARDED
        + """
    weights, moments = get_state_dict(model, optimizer)
    checkpoints.load({"model": weights, "optimizer": moments}, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    check(train(model, range(2, STEPS), rank, ranks, optimizer), slice(2, STEPS))
    """,
        ranks=2,
    )


@release_facts.wants("fully_shard")
def test_tensors_and_data_in_parallel(tmp_path: pathlib.Path) -> None:
    run_ranks(
        tmp_path,
        """
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "tensor"))
    model = nn.Sequential(*parts())
    columns, rows = ColwiseParallel(), RowwiseParallel()
    plan = {"query": columns, "key": columns, "value": columns, "out": rows, "up": columns, "down": rows}
    for block in model[1:3]:
        parallelize_module(block, mesh["tensor"], plan)
    # What is not divided over "tensor" is computed twice; only "data" divides the batch.
    for module in (*model, model):
        fully_shard(module, mesh=mesh["data"])
    # 2.6.0 has no list operators (foreach) over tensors of different meshes.
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, foreach=False)
    check(train(model, part=mesh["data"].get_local_rank(), of=2, optimizer=optimizer))
    """,
    )


@release_facts.wants("pipeline_stages_without_arguments")
def test_stages_in_a_pipeline(tmp_path: pathlib.Path) -> None:
    run_ranks(
        tmp_path,
        """
    from torch.distributed import pipelining
    device = torch.device("cuda", rank)
    for name in ("ScheduleGPipe", "Schedule1F1B", "ScheduleInterleaved1F1B"):
        schedule, modules = getattr(pipelining, name), parts()
        if "Interleaved" in name:  # two stages a rank, of a module each
            own = [modules[rank], modules[2 + rank]]
            stages = [pipelining.PipelineStage(own[i], 2 * i + rank, 4, device) for i in range(2)]
        else:
            own = [nn.Sequential(*modules[2 * rank : 2 * rank + 2])]
            stages = pipelining.PipelineStage(own[0], rank, 2, device)
        pipeline = schedule(stages, 4, loss_fn=loss_of)
        optimizer, losses = optimizer_of([p for module in own for p in module.parameters()]), []
        for step in range(STEPS):
            inputs, targets = batch(step)
            pieces = []
            pipeline.step(*((inputs,) if rank == 0 else ()), **(dict(target=targets, losses=pieces) if rank else {}))
            optimizer.step()
            optimizer.zero_grad()
            if rank:
                losses.append(torch.stack(pieces).mean().item())
        if rank:
            check(losses)
    """,
        ranks=2,
    )
