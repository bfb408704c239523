"""Random kernels that wait, to compare loops between waits (cucc's phases.py) with a stack for each thread.

    python tests/cu_bridge/random_kernels.py SEED [kernels] > kernels.cu

Every kernel is free of races: in one phase an element of shared memory is written by its own thread alone, or read by
others. So its results may not depend on the order of threads. The program prints a line for each kernel and each block
shape: the kernel's name, the shape, a hash of the results.
"""

import random
import re
import sys
from typing import List

SHAPES = ["dim3(32)", "dim3(33)", "dim3(96)", "dim3(8, 8)", "dim3(5, 7)", "dim3(4, 4, 4)", "dim3(100)", "dim3(1)"]
PRELUDE = """#include <cstdio>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#define SYNC() __syncthreads()
#define EACH(i, n) for (int i = 0; i < (n); ++i)
#define XOR(v, d) __shfl_xor_sync(0xffffffffu, v, d)
struct Pair { int a, b; };
struct Sum {
  int b;
  __device__ Sum(int begin) : b(begin) {}
  __device__ void include(int more) { b += more; }
};
struct Four {
  int b[4];
  __device__ Four(int begin) : b{begin, 1, 2, 3} {}
  __device__ int& operator[](int i) { return b[i]; }
};
typedef void (*Function)(int&);
__device__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ __forceinline__ int plain(int v) { return v * 5 + 1; }
template <class T> __device__ __forceinline__ void change(T& v) { v += 17; }
__device__ __forceinline__ int nested(int v) { return plain(plain(v) & 255) - 3; }
template <class Use> __device__ int apply(Use use, int v) { return use(v) ^ 3; }
struct Plus { __device__ int operator()(int v) const { return v + 2; } };
__device__ void five_more(int& v) { v += 5; }
__device__ Function functions[1] = {five_more};
__device__ int most = 0;
"""
MAIN = """
typedef void (*Kernel)(const int*, int*, int, int);
int main() {
  const struct { const char* name; Kernel kernel; } kernels[] = {%s};
  const dim3 shapes[] = {%s};
  int *in, *out;
  const int count = 3 * 256;
  cudaMallocManaged(&in, 4 * 1024);
  cudaMallocManaged(&out, 4 * count);
  for (int i = 0; i < 1024; ++i) in[i] = (i * 37 + 11) %% 101 - 20;
  for (const auto& one : kernels) {
    for (const dim3& shape : shapes) {
      for (int i = 0; i < count; ++i) out[i] = -7;
      one.kernel<<<3, shape, 4 * 256>>>(in, out, 3, 2);
      const cudaError_t error = cudaDeviceSynchronize();
      unsigned hash = 0;
      for (int i = 0; i < count; ++i) hash = hash * 31 + static_cast<unsigned>(out[i]);
      std::printf("%%s %%u,%%u,%%u %%08x %%s\\n", one.name, shape.x, shape.y, shape.z, hash, cudaGetErrorName(error));
      if (error != cudaSuccess) return 1;
    }
  }
}
"""


class Kernel:
    """One kernel; `dirty` are the shared arrays written since the last barrier, `seen` those that others have read."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.chance, self.name = chance, name
        self.scopes: List[List[str]] = [[]]  # int variables that can be assigned to
        self.constants: List[List[str]] = [[]]
        self.dirty, self.seen = set(), set()
        self.count, self.moves = 0, chance.random() < 0.3  # whether each thread reads from a place of its own
        self.arrays = ["s", "q"] + (["dynamic"] if chance.random() < 0.3 else [])
        self.group = chance.random() < 0.4
        # Of how many threads a tile is, where the kernel has one.
        self.tile = chance.choice(["", "32", "32", "16", "8", "4"]) if self.group else ""
        self.plain = chance.random() < 0.7  # nothing of what phases.py does not take
        self.functions: List[Function] = []  # those that it may call

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def fresh(self, values: str = "", number: bool = True) -> str:
        self.count += 1
        # Names of other scopes and of members come again, but not in their own initial values: there they are the new
        # variables, which have none yet.
        if number and len(self.scopes) > 1 and self.chance.random() < 0.25:
            name = self.pick("v", "x", "w", "k", "a")
            known = name in self.scopes[-1] or name in self.constants[-1]
            if not known and not re.search(rf"\b{name}\b", values):
                return name
        return self.pick("v", "w", "a", "x", "value") + str(self.count)

    def assignable(self) -> str:
        inner = {name for scope in self.constants[1:] for name in scope}
        names = [name for scope in self.scopes for name in scope if name not in inner]
        return self.chance.choice(names) if names else "v"

    def atom(self) -> str:
        names = [name for scope in self.scopes + self.constants for name in scope]
        names += ["t", "n", "m", "(int)threadIdx.x", "(int)blockIdx.x", str(self.chance.randrange(-3, 9))]
        return self.chance.choice(names)

    def expression(self, depth: int = 2) -> str:
        if depth == 0 or self.chance.random() < 0.25:
            return self.atom()
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        kind = self.chance.randrange(10 if self.plain else 11)
        if kind == 0:
            return f"({a} > {b} ? {a} : {self.atom()})"
        if kind == 1:
            return f"min((int)({a}), (int)({b}))"
        if kind == 2:
            return f"in[({a} & 255) + ({self.atom()} & 63)]"
        if kind == 3:
            return f"(int)((float)({a} & 1023) * 0.5f)"
        if kind == 4:
            return self.counted() or self.shared_read() or a
        if kind == 5:
            return f"(({a} < {b}) && ({self.atom()} != 2))"
        if kind == 9:
            return f"{self.pick('plain', 'nested')}({a})"
        if kind == 10:
            return f"table[{a} & 7]"
        return f"({a} {self.pick('+', '-', '*', '^', '|', '&')} {b})"

    def shared_read(self) -> str:
        names = [name for name in self.arrays if name not in self.dirty]
        if not names:
            return ""
        name = self.chance.choice(names)
        self.seen.add(name)
        return f"{name}[(t * {self.pick('1', '3', '7')} + {self.pick('0', '1', '5', 'n', '(int)blockIdx.x')}) % size]"

    def counted(self) -> str:
        if "counts" in self.dirty or self.chance.random() < 0.7:
            return ""
        self.seen.add("counts")
        return f"counts[({self.atom()}) & 7]"

    def count_up(self) -> str:
        """An atomic function on the shared counters, which nobody reads before the next barrier."""
        if "counts" in self.seen:
            return ""
        value = self.expression()
        if "counts" in self.seen:  # the value has read them
            return ""
        self.dirty.add("counts")
        # One kind of function for a phase each: the order of different ones would be seen.
        return f"atomicAdd(&counts[({value}) & 7], {self.atom()});"

    def barrier(self) -> str:
        self.dirty, self.seen = set(), set()
        words = ["__syncthreads();", "__syncthreads();", "__syncthreads ( ) ;", "SYNC();"]
        words += ["block.sync();", "cooperative_groups::sync(block);"] if self.group else []
        return self.pick(*words)

    def uniform(self) -> str:
        read = [] if self.moves else ["(in[n] & 3)", "(in[blockIdx.x + m] & 3)"]
        return self.pick("n", "m", "2", "n - 1", "m + 1", "rounds", *read)

    def shuffle(self, by_all: bool = True) -> str:
        """A shuffle or a vote. By all: the whole block comes there."""
        lane = self.pick("t & 31", "0", "n", "(t + 1) & 31", "t ^ 1")
        value = self.pick(self.assignable(), self.atom(), f"{self.assignable()} + {self.atom()}")
        width = self.pick("", "", ", 8", ", 16", ", 32")
        delta, text = self.pick("1", "2", "4", "m", "16"), self.atom()
        mask = self.pick("0xffffffff", "~0u", "0xFFFFFFFFu", "-1")
        if self.tile and self.chance.random() < 0.6:
            return self.in_tile(value, lane, delta)
        kind = self.chance.randrange(6)
        if kind == 0:
            return f"__shfl_sync({mask}, {value}, {lane}{width})"
        if kind == 1:
            return f"__{self.pick('ballot', 'any', 'all')}_sync({mask}, {self.pick(value, f'({value}) > {text}')})"
        if kind == 2 and by_all:
            return f"__syncthreads_{self.pick('count', 'or', 'and')}({self.pick(value, f'({value}) > {text}')})"
        return f"__shfl_{self.pick('up', 'down', 'xor')}_sync({mask}, {value}, {delta}{width})"

    def in_tile(self, value: str, lane: str, delta: str) -> str:
        kind = self.chance.randrange(5)
        if kind == 0:
            return f"tile.shfl((int)({value}), {lane})"
        if kind == 1 and self.tile == "32":
            return f"(int)tile.{self.pick('any', 'all', 'ballot')}(({value}) > 2)"
        if kind == 2:
            operation = self.pick("plus", "less", "greater", "bit_xor", "bit_and", "bit_or")
            return f"cooperative_groups::reduce(tile, (int)({value}), cooperative_groups::{operation}<int>())"
        if kind == 3:  # with a thread of the tile, or its value is undefined
            return f"tile.shfl_xor((int)({value}), {self.pick('1', 'm', str(int(self.tile) // 2))})"
        return f"tile.shfl_{self.pick('up', 'down')}((int)({value}), {delta})"

    def declaration(self) -> str:
        kind = self.chance.choice([*range(8)] * 6 + [8, 9, 10, 14]) if self.plain else self.chance.randrange(15)
        value, text, shuffled = self.expression(), self.atom(), self.shuffle()
        values = f"{value} {text} {shuffled}"
        name = self.fresh(values, kind < 8 and not self.plain)
        if kind < 3:
            self.scopes[-1].append(name)
            return f"{self.pick('int', 'int', 'long', 'short', 'unsigned')} {name} = {value};"
        if kind == 3:
            self.constants[-1].append(name)
            return f"const int {name} = {value};"
        if kind == 4:
            other = self.fresh(values)
            if other == name:
                return ""
            self.scopes[-1] += [name, other]
            return f"int {name} = {value}, {other} = {text};"
        if kind == 5:
            self.scopes[-1].append(name)
            return f"int {name}; {name} = {value};"
        if kind == 6:
            self.scopes[-1].append(name)
            return f"int {name} = {shuffled};"
        if kind == 7:
            self.constants[-1].append(name)
            return f"const int {name} = (int)threadIdx.x * {self.pick('2', 'n')} + {self.pick('1', 'm', 't')};"
        if kind == 8:
            self.scopes[-1].append(f"{name}[0]")
            return f"int {name}[2] = {{{value}, 1}};"
        if kind == 9:
            made = self.pick(
                f"int {name}_ = {value}; int* {name} = &{name}_;",
                f"int {name}_[2] = {{{value}, 2}}; int* {name} = {name}_;",
            )
            self.scopes[-1].append(f"(*{name})")
            return made
        if kind == 10:
            target = self.assignable()
            if any(c in target for c in "[*."):
                return ""
            self.scopes[-1].append(name)
            return f"auto& {name} = {target};"
        if kind == 14:
            other = self.fresh(number=False)
            self.scopes[-1] += [name, other]
            return f"int {name} = {value}, {other} = 1; ({self.atom()} > 2 ? {name} : {other}) += 3;"
        if kind == 11:
            text = f"Pair {name} = {{{self.atom()}, 2}};"
            self.scopes[-1].append(f"{name}.b")
            return text
        if kind == 12:
            self.scopes[-1].append(name)
            return f"int {name} = [&] {{ return {value} + 1; }}();"
        text = f"int2 {name} = make_int2({self.atom()}, 3);"
        self.scopes[-1].append(f"{name}.x")
        return text

    def call(self) -> str:
        """A call of a function that waits. It begins and ends with a barrier."""
        function = self.chance.choice(self.functions)
        value, more, target = self.expression(), self.atom(), self.assignable()
        self.dirty, self.seen = set(), set()
        if function.by_reference:
            name = f"r{self.count}"
            self.count += 1
            return f"int {name} = {value}; {function.called(self.chance, name)}; {target} ^= {name};"
        call = function.called(self.chance, value)
        if self.chance.random() < 0.3:
            name = self.fresh(f"{value} {more}", False)
            self.scopes[-1].append(name)
            return f"{self.pick('int', 'long')} {name} = {call};"
        return self.pick(
            f"{target} = {call};",
            f"{target} += {call};",
            f"{target} ^= {call} * 3 + {more};",
            f"{call};",
            f"if ({call} > {more}) {target} += 2;",
            f"out[blockIdx.x * 256 + t] = {call};" if function.of_kernels(self) else f"{target} -= {call};",
        )

    def simple(self) -> str:
        if self.functions and self.chance.random() < 0.12:
            return self.call()
        if self.chance.random() < 0.08:
            return self.count_up()
        if not self.plain and self.chance.random() < 0.1:
            return self.hidden()
        kind = self.chance.randrange(13 if self.plain else 18)
        target = self.assignable()
        if kind < 3:
            return f"{target} {self.pick('=', '+=', '^=', '-=')} {self.expression()};"
        if kind == 3:
            names = [name for name in self.arrays if name not in self.seen]
            if not names:
                return ""
            name = self.chance.choice(names)
            value = self.expression()
            if name in self.seen:  # the value has read it
                return f"{target} = {value};"
            self.dirty.add(name)
            return f"{name}[t] = {value};"
        if kind == 4:
            return f"if ({self.expression()}) {target} += {self.atom()}; else {target} -= 1;"
        if kind == 5:
            loop = f"i{self.count}"
            self.count += 1
            inner = self.pick("", f" if ({loop} == 1) continue;", f" if ({target} > 50) break;")
            return f"for (int {loop} = 0; {loop} < (t & 3); ++{loop}) {{{inner} {target} += {loop}; }}"
        if kind == 6:
            return f"{self.pick('++', '--')}{target};"
        if kind == 7:
            shuffle, more = self.shuffle(), self.atom()
            return self.pick(
                f"{target} = {shuffle};",
                f"{target} = {shuffle};",
                f"if ({shuffle} > 9) {target} += {more}; else {{ {target} ^= 3; }}",
            )
        if kind == 8:
            return f"{target} += {self.shuffle()} * {self.pick('2', 't', '-1')};"
        if kind == 9:
            value = self.atom()
            return f"{{ int v = {'t' if value == 'v' else value}; {target} += v; }}"
        if kind == 10:
            return f"while ({target} > 40) {target} = {target} / 2 - 3;"
        if kind == 11:
            return f"do {{ {target} += 3; if ({target} & 4) continue; }} while (({target} & 24) == 16);"
        if kind == 12:
            return f"change({target});"
        if kind == 13:
            cases = f"case 0: {target} += 1; break; case 2: {target} += 2; default: {target} ^= 5;"
            return f"switch ({self.atom()} & 3) {{ {cases} }}"
        if kind == 14:
            return f"{target} = {self.shuffle()} + {self.shuffle()};"
        if kind == 15:
            return f"if ({self.shuffle()} > 9) {target} += 2;"
        if kind == 16:
            return f"{target} += XOR({target}, {self.pick('1', '8')});"
        return "if (t > 5000) return;"

    def hidden(self) -> str:
        """What changes a variable, or reads one, in a way that is easily overlooked."""
        target, value = self.assignable(), self.atom()
        name = f"h{self.count}"
        self.count += 1
        return self.pick(
            f"Sum {name} = {value}; {self.barrier()} {name}.include({self.atom()}); {self.barrier()}"
            f" {target} ^= {name}.b;",
            f"Four {name} = n; {self.barrier()} {name}[0] += {value}; {self.barrier()} {target} += {name}[0];",
            f"Pair {name} = {{{value}, 1}}; {{ int* p{name} = &{name}.a; *p{name} += 3; }} {target} -= {name}.a;",
            f"int {name} = n; functions[0]({name}); {self.barrier()} {target} += {name};",
            f"{{ Function f{name} = functions[0]; int {name} = m; (*f{name})({name}); {target} += {name}; }}",
            f"{target} += apply(Plus(), {value}) + Plus{{}}({value});",
            f"int {name} = n, o{name}; {name} = t, o{name} = {self.shuffle()} + __shfl_xor_sync(~0u, {name}, 1);"
            f" {target} ^= o{name};",
            f"int {name}; {name} = {value}, {target} = __shfl_up_sync(0xffffffff, {name}, 1);",
            f"int r{name} = {value}; {self.barrier()} for (int r{name} = 0; r{name} < n; ++r{name})"
            f" {{ {target} += r{name}; {self.barrier()} }} {target} ^= r{name};",
        )

    def block(self, depth: int, length: int) -> List[str]:
        lines: List[str] = []
        for _ in range(length):
            kind = self.chance.random()
            if kind < 0.22:
                lines.append(self.barrier())
            elif kind < 0.5:
                lines.append(self.declaration())
            elif kind < 0.86 or depth == 0:
                lines.append(self.simple())
            else:
                lines += self.compound(depth)
        return lines

    def inner(self, depth: int) -> List[str]:
        self.scopes.append([])
        self.constants.append([])
        lines = [self.barrier(), *self.block(depth - 1, self.chance.randrange(2, 6)), self.barrier()]
        self.scopes.pop()
        self.constants.pop()
        return lines

    def compound(self, depth: int) -> List[str]:
        kind = self.chance.randrange(6 if self.plain else 9)
        if kind == 0:
            return ["{", *self.inner(depth), "}"]
        if kind > 3:
            return self.counting(depth) if kind < 6 else self.unproven(kind, depth)
        if kind == 1:
            dirty, seen = self.dirty, self.seen
            lines = [f"if ({self.uniform()} {self.pick('>', '==', '!=')} {self.pick('1', '2', 'm')}) {{"]
            lines += self.inner(depth)
            other = self.pick("} else {", "} else {", f"}} else if ({self.uniform()} > 2) {{")
            lines += [other, *self.inner(depth), "}"]
            # Where neither condition holds, no barrier is between what is before and what follows.
            if other != "} else {":
                self.dirty, self.seen = self.dirty | dirty, self.seen | seen
            return lines
        loop = f"r{self.count}"
        self.count += 1
        head = self.pick(
            f"for (int {loop} = 0; {loop} < {self.uniform()}; ++{loop})",
            f"for (int {loop} = 8; {loop} > 1; {loop} >>= 1)",
            f"for (unsigned {loop} = 1; {loop} < 4; {loop} += 2)",
            f"EACH({loop}, {self.uniform()})",
            f"for (int {loop} = 0, other{loop} = 5; {loop} < {self.uniform()}; ++{loop}, other{loop} -= n)",
        )
        self.constants.append([f"(int){loop}"])
        self.scopes.append([])
        lines = [head + " {", *self.inner(depth), "}"]
        self.constants.pop()
        self.scopes.pop()
        return lines

    def counting(self, depth: int) -> List[str]:
        """A loop whose threads count for themselves, all alike."""
        name, step = f"c{self.count}", f"p{self.count}"
        self.count += 1
        least, more = self.chance.randrange(2), self.pick("1", "1", "n - 2", step)
        condition = self.pick(f"{name} < {self.uniform()}", f"{name} < 3 && {step} < 40", f"!({name} >= {least + 2})")
        count = f"{name} += {more}; {step} += {self.pick('1', name, 'm')};"
        self.constants.append([f"(int){name}", step])
        lines = self.inner(depth)
        # Behind a barrier, so that what follows the loop, or its beginning, may write and read.
        leave = self.pick("break;", "break;", "continue;")
        leave = f"if ({self.pick(f'{name} == 1', f'{step} > n', 'm == 3')}) {{ {count} {self.pick(leave, leave, '')} }}"
        nested = [f"if ({name} + m > 2) {{", *self.inner(depth), *self.pick("", "break;").split(), "}"]
        lines += self.chance.choice([[], [], [leave], [leave, *self.inner(depth)], nested])
        self.constants.pop()
        before = f"{self.pick('int', 'int', 'unsigned', 'short')} {name} = {least}; int {step} = 1;"
        kind = self.chance.randrange(6)
        if kind == 5:
            # Until no thread, or some, or all want to go on.
            vote = f"__syncthreads_{self.pick('or', 'and', 'count')}({self.expression()})"
            end = [f"{name} = {vote}; {step} += 2;", f"if ({step} > 4) break;", "}"]
            lines = [line for line in lines if line != leave]
            if self.chance.random() < 0.5:
                return [f"int {name} = 1, {step} = 1; while ({name}{self.pick('', ' != 0')}) {{", *lines, *end]
            ends = self.chance.random() < 0.5
            asked = f"{vote} && {step} < 9" if ends else self.pick(vote, f"!{vote}", f"({vote} & 1) < {step}")
            lines += [f"{step} += 2;", f"if ({vote}) continue;" if ends else f"if ({step} > 4) break;"]
            head = f"int {name} = 0, {step} = 1;"
            leave = [f"if ({vote}) {{", *self.inner(depth), "break; }"]
            return self.chance.choice(
                [
                    [f"{head} while ({asked}) {{", *lines, "}"],
                    [f"{head} do {{", *lines, f"}} while ({asked});"],
                    [f"{head} for (; {asked}; {name} += {step}) {{", *lines, "}"],
                    [f"{head} while ({step} < 9) {{ {step} += 3;", *lines, *leave, "}"],
                ]
            )
        if kind == 0:
            return [f"{before} while ({condition}) {{", *lines, count, "}"]
        if kind == 1:
            lines = [count, *lines] if leave in lines else [*lines, count]
            return [f"{before} do {{", *lines, f"}} while ({condition});"]
        if kind == 2:
            return [f"{before} for (;; {count[:-1].replace(';', ',')}) {{ if (!({condition})) break;", *lines, "}"]
        if kind == 3:
            first = before.replace(f" = {least}", "", 1)
            steps = count[:-1].replace(";", ",")
            return [f"{first} for ({name} = {least}; {condition}; {steps}) {{", *lines, "}"]
        return [
            f"int {step} = 2;",
            f"for (int {name} = 0; {condition}; {count[:-1].replace(';', ',')}) {{",
            *lines,
            "}",
        ]

    def unproven(self, kind: int, depth: int) -> List[str]:
        if kind == 6:
            # One value for all threads, which does not show: an assignment that no thread comes to.
            name = f"limit{self.count}"
            self.count += 1
            spoiled = self.pick(
                f"if (t == 5000) {name} = 9;",
                f"for (int i{name} = 0; i{name} < (t & 3); ++i{name}) {name} += 0;",
                f"(void)&{name};",
                f"for (int i{name} = 0; i{name} < 3; ++i{name}) {{ if (i{name} == (t & 1)) break; {name} ^= 0; }}",
                f"if (t < 7) --{name}; else {{ --{name}; }}",
                f"change({name}); {name} -= 17;",
            )
            return [
                f"int {name} = {self.uniform()}; {spoiled}",
                self.pick(f"for (int j{name} = 0; j{name} < {name}; ++j{name}) {{", f"while (--{name} > 0) {{"),
                *self.inner(depth),
                "}",
            ]
        if kind == 7:
            name = f"turn{self.count}"
            self.count += 1
            return [f"int {name} = 0; while ({name}++ < {self.uniform()}) {{", *self.inner(depth), "}"]
        # Each warp as a whole goes one way: shuffles alone, no barrier.
        return [f"if ((t >> 5) & 1) {{ {self.assignable()} += {self.shuffle(False)}; }}"]

    def groups(self) -> List[str]:
        block = "cooperative_groups::thread_block block = cooperative_groups::this_thread_block();"
        kind = self.pick("auto", "const auto", f"cooperative_groups::thread_block_tile<{self.tile}>")
        tile = f"{kind} tile = cooperative_groups::tiled_partition<{self.tile}>(block);"
        return [block, tile] if self.tile else [block] if self.group else []

    def text(self) -> str:
        self.scopes[0].append("v")
        head = [
            "const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);"
            if self.chance.random() < 0.7
            else "int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;",
            "const int size = blockDim.x * blockDim.y * blockDim.z;",
            "__shared__ int s[256]; __shared__ int q[256], counts[8];",
            "if (t < 8) counts[t] = t; if (t == 0) for (int i = 0; i < 8; ++i) counts[i] = i;",
            "extern __shared__ int dynamic[];" if "dynamic" in self.arrays else "",
            self.pick("const int rounds = m + 1;", "const int rounds = m + 1;", "int rounds = n; rounds -= 1;"),
            *self.groups(),
            "int v = in[t];",
            "s[t] = v; q[t] = t * 3;" + (" dynamic[t] = v - 1;" if "dynamic" in self.arrays else ""),
            "__syncthreads();",
            "in += t & 3;" if self.moves else "",
        ]
        body = self.block(2, self.chance.randrange(6, 16))
        total = " + ".join(f"{name} * {3 + 2 * place}" for place, name in enumerate(self.scopes[0] + self.constants[0]))
        tail = [self.barrier(), f"out[blockIdx.x * 256 + t] = (int)({total}) + s[size - 1 - t] + q[(t + 1) % size];"]
        if self.chance.random() < 0.3:  # some threads end before the others, which may divide
            tail += [
                self.pick("if (t & 1) return;", "if (n == 3) return;", "if (t > 9) { return; }"),
                f"{self.pick('const int', 'int')} last = 100 / (n - 3 + (t & 1) * 0);"
                if "n == 3" in tail[-1]
                else f"int last = {self.expression()};",
                "out[blockIdx.x * 256 + t] += last;",
            ]
        lines = "\n".join("  " + line for line in head + body + tail if line)
        return f"__global__ void {self.name}(const int* in, int* out, int n, int m) {{\n{lines}\n}}\n"


class Function(Kernel):
    """A function that waits. Its names are those of the kernels, and mean others."""

    def __init__(self, chance: random.Random, name: str, others: "List[Function]") -> None:
        super().__init__(chance, name)
        self.functions, self.moves = others[-2:], True  # who calls it may have moved `in`
        self.arrays = ["s", "q"] + (["own"] if chance.random() < 0.5 else [])
        self.by_reference = chance.random() < 0.25
        self.template = chance.choice(["", "", "int kFactor", "class T", "class T, int kFactor"])
        self.template = "" if self.by_reference and "class" in self.template else self.template

    def of_kernels(self, caller: Kernel) -> bool:
        """Whether only kernels call it so: a function has no `out`."""
        return not isinstance(caller, Function)

    def called(self, chance: random.Random, value: str) -> str:
        arguments = {"": "", "int kFactor": "<3>", "class T": chance.choice(["", "<int>"])}
        arguments["class T, int kFactor"] = "<int, 4>"
        given = arguments[self.template]
        value = f"(int)({value})" if "class" in self.template and not given else value
        return f"{self.name}{given}(in, {chance.choice(['n', '3'])}, m, s, q, counts, {value})"

    def text(self) -> str:
        value, factor = ("T" if "class" in self.template else "int"), "kFactor" if "kFactor" in self.template else "2"
        self.scopes[0].append("v")
        head = [
            "const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);",
            "const int size = blockDim.x * blockDim.y * blockDim.z;",
            "__shared__ int own[256];" if "own" in self.arrays else "",
            *self.groups(),
            "const int rounds = m + 1;",
            self.pick("", "", f"if (m > 5) return{'' if self.by_reference else ' v'};"),
            self.pick("", "v += 1;", f"v = v * {factor} - 1;"),
            "own[t] = v ^ 9;" if "own" in self.arrays else "",
            "__syncthreads();",
        ]
        body = self.block(1, self.chance.randrange(2, 7))
        result = "" if self.by_reference else f" {self.pick('v', self.atom(), f'v + {self.atom()}')}"
        tail = [self.barrier()]
        if not self.by_reference and self.chance.random() < 0.2:
            tail.append(self.pick(f"if (n == 3) return{result};", "if (t & 1) return 4;", "if (n > 9) { return 1; }"))
        tail.append("v -= 3;" if self.by_reference else f"return{result};")
        lines = "\n".join("  " + line for line in head + body + tail if line)
        template = f"template <{self.template}> " if self.template else ""
        kind, given = ("void", "int& v") if self.by_reference else (value, f"{value} v")
        return (
            f"{template}__device__ {kind} {self.name}(const int* in, int n, int m, int* s, int* q, int* counts,"
            f" {given}) {{\n{lines}\n}}\n"
        )


def program(seed: int, count: int) -> str:
    """A program of that many random kernels."""
    chance = random.Random(seed)
    kernels = [Kernel(chance, f"k{seed}_{number}") for number in range(count)]
    functions: List[Function] = []
    texts = []
    for number, kernel in enumerate(kernels):
        if number % 2:
            functions.append(Function(chance, f"waits{seed}_{number}", functions))
            functions[-1].plain = True
            texts.append(functions[-1].text())
            kernel.functions = functions[-3:]
        texts.append(kernel.text())
    names = ", ".join(f'{{"{kernel.name}", {kernel.name}}}' for kernel in kernels)
    return PRELUDE + "".join(texts) + MAIN % (names, ", ".join(SHAPES))


if __name__ == "__main__":
    print(program(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20))
