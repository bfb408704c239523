"""A backward pass runs in the thread of the device, unless nothing can tell and the calling thread is faster."""

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import release_facts

FAST_PART = "BACKWARD_THREAD"
BEFORE = """
    import glob, json, threading, time, macatorch.engine_threads, torch
    from torch.utils.checkpoint import checkpoint
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map

    main = threading.get_ident()
    seen = []

    def here(*values):
        seen.append(threading.get_ident())

    def leaf():
        return torch.ones(4, 4, device="cuda", requires_grad=True)

    def engine_threads():
        "Folders of the engine's threads of devices."
        tasks = glob.glob("/proc/self/task/*/")
        return [task for task in tasks if open(task + "comm").read().startswith("pt_autograd")]

    def spent():
        "Nanoseconds that the engine's threads of devices have run."
        return sum(int(open(task + "schedstat").read().split()[0]) for task in engine_threads())

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 2
        @staticmethod
        def backward(ctx, grad):
            here()
            return grad * 2

    class OwnTensor(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        def __init__(self, inner):
            self.inner = inner
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            if torch._C._current_graph_task_id() != -1:
                here()
            args, kwargs = tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
            return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, function(*args, **kwargs))

    class OwnInPlace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.mark_dirty(value)
            return value.mul_(2)
        @staticmethod
        def backward(ctx, grad):
            here()
            return grad * 2

    def part(x):
        "Tells where it is computed again."
        if torch._C._current_graph_task_id() != -1:
            here()
        return x.sin()

    def back(loss):
        loss.sum().backward()

    # The first pass starts the engine's threads, one a device.
    back(leaf() * 2)
    """
# They take a moment to take their names and to lie down.
SETTLED = """
    while len(engine_threads()) < torch.cuda.device_count():
        time.sleep(0.001)
    macatorch.engine_threads.settle()
    """


def run(code: str, threads: int = 2) -> Any:
    """What a program of its own prints at its end, as JSON."""
    settled = SETTLED if release_facts.has("threads_of_autograd_have_names") else ""
    program = textwrap.dedent(BEFORE) + textwrap.dedent(settled) + textwrap.dedent(code)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MACA_DEVICE_COUNT": "2"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


PLAIN = {
    "backward": "back((leaf() @ leaf()).relu())",
    "grad": "x = leaf(); torch.autograd.grad((x * x).sum(), x)",
    "grad of grad": """
        x = leaf()
        (first,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        torch.autograd.grad(first.sum(), x)
        """,
    "by way of the cpu": "back((leaf() * 2).cpu() * 3)",
    "view written to": "x = leaf() * 1; x[0].mul_(2); back(x)",
    "gradient kept": "x = leaf(); y = x * 2; y.retain_grad(); back(y); assert y.grad is not None",
    "model": """
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU()).cuda()
        back(model(leaf()))
        """,
}


@release_facts.wants("threads_of_autograd_have_names")
@pytest.mark.parametrize("program", PLAIN)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_pass_that_nobody_watches_stays_in_the_calling_thread(program: str, threads: int) -> None:
    code = textwrap.dedent(PLAIN[program])
    passes = (
        f"before = spent()\nfor _ in range(3):\n{textwrap.indent(code, '    ')}\nprint(json.dumps(spent() - before))"
    )
    # With one thread to compute there are no pools, and still the pass need not be handed over.
    assert run(passes, threads) == 0


WATCHED = {
    "hook of a tensor": "y = leaf() * 2; y.register_hook(here); back(y)",
    "hook of a leaf": "x = leaf(); x.register_hook(here); back(x * 2)",
    "hook after accumulation": "x = leaf(); x.register_post_accumulate_grad_hook(here); back(x * 2)",
    "hook of a node": "y = leaf() * 2; y.grad_fn.register_hook(here); back(y)",
    "hook before a node": "y = leaf() * 2; y.grad_fn.register_prehook(here); back(y)",
    "hook of a module": "m = torch.nn.Linear(4, 4).cuda(); m.register_full_backward_hook(here); back(m(leaf()))",
    "multi-grad hook": "x = leaf(); torch.autograd.graph.register_multi_grad_hook([x], here); back(x * 2)",
    "custom function": "back(Own.apply(leaf()))",
    "custom function of a view": "x = leaf() * 1; OwnInPlace.apply(x[0]); back(x)",
    "hooks of saved tensors": """
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (here(), t)[1]):
            x = leaf(); y = x * x
        back(y)
        """,
    "hooks of one saved tensor": """
        y = leaf().exp(); y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: (here(), t)[1]); back(y)
        """,
    "checkpoint": "back(checkpoint(part, leaf(), use_reentrant=False))",
    "reentrant checkpoint": "back(checkpoint(part, leaf(), use_reentrant=True))",
    "dispatch mode": """
        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                if function is not torch.ops.aten.is_same_size.default:  # torch 2.1 asks it before the pass
                    here()
                return function(*args, **(kwargs or {}))
        loss = (leaf() * 2).sum()
        gradient = torch.ones_like(loss)
        with Mode():
            loss.backward(gradient)
        """,
    "tensor subclass": """
        x = OwnTensor(torch.ones(4, device="cuda")).requires_grad_()
        torch.autograd.grad(x * x, x, OwnTensor(torch.ones(4, device="cuda")))
        """,
    "gradient of a subclass": """
        x = torch.ones(4, device="cuda", requires_grad=True)
        torch.autograd.grad(x * 2, x, OwnTensor(torch.ones(4, device="cuda")))
        """,
    "profiler": """
        with torch.profiler.profile() as profile:
            back((leaf() * 2).exp())
        threads = {event.thread for event in profile.events() if "evaluate_function" in event.name}
        forward = {event.thread for event in profile.events() if event.name == "aten::exp"}
        assert threads and not threads & forward, (threads, forward)
        here.__globals__["main"] = None
        here()
        """,
}


@pytest.mark.parametrize("program", WATCHED)
def test_python_code_in_a_pass_finds_itself_in_the_thread_of_the_device(program: str) -> None:
    code = textwrap.dedent(WATCHED[program])
    watched = run(code + "\nprint(json.dumps([len(seen), main in seen]))")
    assert watched[0] > 0 and not watched[1]


def test_a_pass_within_a_pass_stays_in_its_thread() -> None:
    assert run(
        """
        class Nested(Own):
            @staticmethod
            def backward(ctx, grad):
                here()
                with torch.enable_grad():
                    x = leaf()
                    loss = (x * 3).sum()
                (found,) = torch.autograd.grad(loss, x)
                assert torch._C._is_multithreading_enabled()
                return grad * found
        x = leaf()
        back(Nested.apply(x))
        print(json.dumps([x.grad.tolist() == [[3.0] * 4] * 4, main in seen]))
        """
    ) == [True, False]


def test_the_switch_for_the_threads_is_as_it_was_also_after_an_error() -> None:
    assert run(
        """
        def state():
            return torch._C._is_multithreading_enabled()
        found = [state()]
        back(leaf() * 2)
        found.append(state())
        x = leaf() * 1
        y = x.exp()
        y.add_(1)
        before = spent()
        try:
            back(y)
        except RuntimeError as error:
            found.append("modified by an inplace operation" in str(error))
        found += [state(), spent() == before]
        with torch.autograd.set_multithreading_enabled(False):
            back(leaf() * 2)
            found.append(state())
        print(json.dumps(found))
        """
    ) == [True, True, True, True, True, False]


def test_running_out_of_memory_in_a_pass_is_the_devices_error() -> None:
    assert run(
        """
        x = torch.ones(1 << 20, device="cuda", requires_grad=True)
        y = x.exp()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (1 << 20)) /
                                                   torch.cuda.get_device_properties(0).total_memory)
        before = spent()
        try:
            big = y.expand(64, -1).clone()
            found = "no error"
        except torch.cuda.OutOfMemoryError:
            found = "forward"
        try:
            y.expand(64, -1).sum(0).backward(torch.ones(1, device="cuda").expand(1 << 20) * 1)
            found = [found, "backward"]
        except torch.cuda.OutOfMemoryError:
            found = [found, "out of memory"]
        torch.cuda.set_per_process_memory_fraction(1.0)
        z = leaf()
        back(z * 2)
        print(json.dumps([found, z.grad.sum().item(), spent() == before]))
        """
    ) == [["forward", "out of memory"], 32.0, True]


@release_facts.wants("threads_of_autograd_have_names")
def test_gradients_are_those_of_the_thread_of_the_device() -> None:
    assert run(
        """
        def gradients(watched):
            torch.manual_seed(0)
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                torch.nn.Linear(8 * 6 * 6, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4)).cuda()
            second = torch.nn.Linear(4, 2).to("cuda:1")
            loss = second(model(torch.randn(5, 3, 8, 8).cuda()).to("cuda:1")).square().mean()
            if watched:
                loss.register_hook(here)
            before = spent()
            loss.backward()
            own = spent() == before
            return own, [p.grad.cpu() for p in [*model.parameters(), *second.parameters()]]
        (plain, a), (watched, b) = gradients(False), gradients(True)
        print(json.dumps([plain, watched, all(torch.equal(x, y) for x, y in zip(a, b)), len(a)]))
        """
    ) == [True, False, True, 10]


def test_threads_of_a_program_may_run_passes_at_the_same_time() -> None:
    assert run(
        """
        shared = leaf()
        def work():
            for _ in range(50):
                (shared * 2).sum().backward()
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(json.dumps(shared.grad.unique().tolist()))
        """
    ) == [400.0]
