"""What recording costs on a GPT-2-small-shaped training step, and how fast gen_report compares.

python tests/benchmarks/accuracy.py [--layers 12] [--length 128] [--device cuda]
python tests/benchmarks/accuracy.py --small        # only level 1 on a small transformer, half a minute
Prints each figure beside the figure that it has to keep. The record goes to a temporary folder on --disk.
"""

import argparse
import copy
import mmap
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import nn

from maca_tools import accuracy
from maca_tools.accuracy.compare import report
from maca_tools.accuracy.data import record_dir

_BLOCK = 8 << 20


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, layers: int, length: int, width: int = 768, words: int = 50257, heads: int = 12) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.layers(x)))


def _on_disk(folder: str) -> List[int]:
    """Wait until every file is on the disk; their sizes."""
    sizes = []
    for entry in os.scandir(folder):
        with open(entry.path, "rb") as file:
            os.fsync(file.fileno())
        sizes.append(entry.stat().st_size)
    return sizes


def _disk_seconds(folder: str, sizes: List[int]) -> float:
    """What this disk needs for the same files from one block of memory, nothing computed, until all are on it.

    Past the page cache where that is possible: through it the copy into its pages costs more than most disks do.
    """
    block = memoryview(mmap.mmap(-1, _BLOCK))
    block[:] = os.urandom(_BLOCK)
    place = os.path.join(folder, "rate")
    os.mkdir(place)
    began = time.perf_counter()
    for number, size in enumerate(sizes):
        direct = os.O_DIRECT if size >= 1 << 20 else 0
        try:
            file = os.open(os.path.join(place, str(number)), os.O_WRONLY | os.O_CREAT | direct)
        except OSError:
            file = os.open(os.path.join(place, str(number)), os.O_WRONLY | os.O_CREAT)
        for start in range(0, size, _BLOCK):
            length = min(_BLOCK, size - start)
            os.write(file, block[: -(-length // 4096) * 4096 if direct else length])
        os.close(file)
    _on_disk(place)
    took = time.perf_counter() - began
    shutil.rmtree(place)
    return took


class _Memory:
    """The most memory of its own that this process had meanwhile, in bytes above the start; mapped files are not."""

    def __enter__(self) -> "_Memory":
        self._ended = threading.Event()
        self._start = self._now()
        self.most = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    @staticmethod
    def _now() -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, self._now() - self._start)


def _cost(what: Callable[[], Any]) -> Tuple[float, float]:
    """Seconds of the clock, and of all cores together: the second does not depend on who else uses them."""
    clock, cores = time.perf_counter(), time.process_time()
    what()
    return time.perf_counter() - clock, time.process_time() - cores


def _calls(what: Callable[[], Any]) -> int:
    """Functions, of Python and of C, that this thread calls meanwhile."""
    found = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        what()
    finally:
        sys.setprofile(None)
    return found


def _switched_off(device: str, folder: str, rounds: int = 60) -> Tuple[float, float, float]:
    """What switched off costs a step that is almost all calls: a small model, where a percent can be measured.

    Calls, processor time, and processor time of plain steps over that of others: how far the measurement can be
    trusted. The three kinds of steps alternate; a ratio is the median over the rounds.
    """
    model = Model(2, 8, 48, 100).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 100, (1, 8)).to(device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens).view(-1, 100), tokens.view(-1)).backward()
        optimizer.step()

    def switched(on: bool) -> None:
        if on:
            accuracy.start_record(output_dir=folder, record_level=1)
            accuracy.record_switch(False)
        else:
            accuracy.start_record(enabled=False)

    for _ in range(10):
        step()
    calls = [0, 0]
    for on in (False, True):
        switched(on)
        step()
        calls[on] = _calls(step)
    off, plain = [], []
    for number in range(rounds):
        used = {}
        # In another order each time: what runs first after a switch has colder caches.
        kinds = [(False, 0), (True, 0), (False, 1)]
        for kind in kinds[number % 3 :] + kinds[: number % 3]:
            switched(kind[0])
            step()
            used[kind] = _cost(lambda: [step() for _ in range(5)])[1]
        off.append(used[True, 0] / ((used[False, 0] + used[False, 1]) / 2))
        plain.append(used[False, 1] / used[False, 0])
    switched(False)
    return calls[1] / calls[0], statistics.median(off), statistics.median(plain)


class Small(NamedTuple):
    """What level 1 costs steps of a small transformer: the medians over rounds of plain and recorded steps."""

    operators: int
    clock: float
    cores: float
    clock_ms: float
    cores_ms: float


def small_transformer(device: str, folder: str, threads: int, rounds: int, level: int = 1) -> Small:
    """6 layers of 384, 512 tokens, AdamW. Ratios to the plain step, and what an operator costs more, in ms.

    Plain and recorded steps alternate, three at a time, so that both see the same machine. The first recorded step of
    a round is not counted: it finds tensors that changed meanwhile. The others end when their files are complete.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(0)
        model = Model(6, 512, 384, 1000, 6).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        tokens = torch.randint(0, 1000, (1, 512)).to(device)

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(tokens).view(-1, 1000), tokens.view(-1)).backward()
            optimizer.step()

        def three() -> None:
            for _ in range(3):
                step()

        def recorded() -> None:
            three()
            accuracy.record_switch(False)

        def number() -> int:
            return len(record_dir.streams(folder)[""].entries)

        three()
        accuracy.start_record(output_dir=folder, record_level=level)
        step()
        accuracy.record_switch(False)
        operators = number()
        pairs = []
        for _ in range(rounds):
            plain = _cost(three)
            accuracy.record_switch(True)
            step()
            pairs.append((plain, _cost(recorded)))
        operators = round((number() - operators) / (4 * rounds))
        accuracy.start_record(enabled=False)
    finally:
        torch.set_num_threads(before)
    plains = [statistics.median(plain[kind] for plain, _ in pairs) / 3 for kind in (0, 1)]
    ratios = [statistics.median(cost[kind] / plain[kind] for plain, cost in pairs) for kind in (0, 1)]
    more = [(ratio - 1) * plain / operators * 1e3 for ratio, plain in zip(ratios, plains)]
    return Small(operators, ratios[0], ratios[1], more[0], more[1])


def _show_small(device: str, folder: str, rounds: int) -> None:
    for threads in (1, 2):
        found = small_transformer(device, os.path.join(folder, f"small{threads}"), threads, rounds)
        print(
            f"small model, threads: {threads}{found.clock:11.2f} x   {found.cores:6.2f} x "
            f"of all cores   (at most 2.0; {found.operators} operators, {found.clock_ms:.2f} ms each, at most 1.0; "
            f"{found.cores_ms:.2f} ms of all cores)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--disk", default=None)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="only level 1 on the small transformer")
    chosen = parser.parse_args()
    if chosen.small:
        with tempfile.TemporaryDirectory(dir=chosen.disk) as place:
            _show_small(chosen.device, place, 5 * chosen.times)
        return
    torch.manual_seed(0)
    model = Model(chosen.layers, chosen.length).to(chosen.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 50257, (chosen.batch, chosen.length)).to(chosen.device)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(tokens)
        nn.functional.cross_entropy(logits.view(-1, 50257), tokens.view(-1)).backward()
        optimizer.step()

    step()
    plain, cores = (statistics.median(values) for values in zip(*[_cost(step) for _ in range(chosen.times)]))
    print(
        f"plain step                {plain:8.2f} s   {cores:6.2f} s of all cores   "
        f"batch {chosen.batch} x {chosen.length}, {chosen.layers} layers, {chosen.device}",
        flush=True,
    )

    def show(what: str, cost: Sequence[float], most: Optional[float] = None) -> None:
        clock, used = cost
        bar = "" if most is None else f"   (at most {most})"
        print(f"{what:26}{clock / plain:8.2f} x   {used / cores:6.2f} x of all cores{bar}", flush=True)

    def recorded(level: int, place: str) -> None:
        with accuracy.record(output_dir=place, record_level=level):
            step()

    folder = tempfile.mkdtemp(dir=chosen.disk)
    try:
        calls, off, same = _switched_off(chosen.device, os.path.join(folder, "off"))
        print(
            f"switched off, small step  {calls:8.3f} x the calls   {off:.3f} x the processor time   (at most 1.01; two "
            f"kinds of plain steps {same:.3f})",
            flush=True,
        )
        _show_small(chosen.device, folder, 5 * chosen.times)
        for level, most in ((1, 3.0), (0, 4.0)):
            accuracy.start_record(output_dir=os.path.join(folder, f"level{level}"), record_level=level)
            show(f"level {level}, first step", _cost(step))
            # With the end of the record, which waits for what is not yet written.
            later = _cost(lambda: ([step() for _ in range(chosen.times)], accuracy.start_record(enabled=False)))
            show(f"level {level}, each later step", [value / chosen.times for value in later], most)
        # One step each from the same weights: a and b are the same, c has rounding noise in its own.
        start = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        sides = [os.path.join(folder, side) for side in "abc"]
        for side in sides:
            model.load_state_dict(start[0])
            optimizer.load_state_dict(copy.deepcopy(start[1]))
            if side == sides[2]:
                with torch.no_grad():
                    model.words.weight.mul_(1 + 1e-7)
            began, used = time.perf_counter(), time.process_time()
            recorded(2, side)
            sizes = _on_disk(side)
            took, used = time.perf_counter() - began, time.process_time() - used
        disk = _disk_seconds(folder, sizes)
        size = sum(sizes) / 1e9
        print(f"level 2                   {took / plain:8.2f} x   {size:.1f} GB, on the disk after {took:.1f} s")
        print(
            f"  of the disk's bandwidth {disk / (took - plain):8.0%}     (at least 70 %; the same files without a step "
            f"take {disk:.1f} s; recording takes {(used - cores) / size:.2f} s of one core for a GB, "
            f"the disk {disk / size:.2f} s)",
            flush=True,
        )
        for what, other in (("the same", sides[1]), ("different", sides[2])):
            with _Memory() as memory:
                used = time.process_time()
                result = report.generate(sides[0], other, folder)
                used = time.process_time() - used
            print(
                f"gen_report, {what:9}     {result.bytes / result.seconds / 1e9:8.2f} GB/s "
                f"(at least 0.5; {2 * result.bytes / used / 1e9:.2f} if both cores were its own; "
                f"{result.bytes / 1e9:.1f} GB, {memory.most >> 20} MB more memory; same: {result.counts['same']}, "
                f"close: {result.counts['close']}, wrong: {result.counts['wrong']})",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
