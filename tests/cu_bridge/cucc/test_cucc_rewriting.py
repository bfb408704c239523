"""What cucc makes of preprocessed text (cucc/rewriting), without a compiler."""

import importlib
import pathlib
import re
import sys
from typing import Any, Callable

import pytest

Rewrite = Callable[..., str]


@pytest.fixture(scope="session")
def load(sdk: pathlib.Path) -> Callable[[str], Any]:
    """Return a function that imports a module of the installed cucc."""

    def load_module(name: str) -> Any:
        sys.path.insert(0, str(sdk.parent))
        try:
            return importlib.import_module(f"mxmaca.cucc.{name}")
        finally:
            sys.path.pop(0)

    return load_module


@pytest.fixture(scope="session")
def rewrite(load: Callable[[str], Any]) -> Rewrite:
    """Return a function that rewrites a text for one of the passes."""
    rewriting, source = load("rewriting"), load("rewriting.source")

    def run(text: str, device: bool = False, **choices: object) -> str:
        return str(rewriting.rewrite(source.Source(text), device, rewriting.Choices(**choices)).text)

    return run


KERNEL = "template <class T>\n__mxmaca_global__ void k(T* p, int n) {\n  p[n] = 1;\n}\n"
NO_CUDA = [
    "const char* a = \"k<<<1, 1>>>(p)\"; char b = '<';\n",
    'const char* a = R"x(\n__mxmaca_global__ void k() {}\n")x"; int b = 1\'000;\n',
    '# 7 "__mxmaca_shared__ int x;.h"\nint x;\n',
    "int __mxmaca_shared__s, x__mxmaca_shared__;\n",
    'void f() { __asm__ volatile("nop" : : : "memory"); }\n',
]


@pytest.mark.parametrize("text", NO_CUDA)
@pytest.mark.parametrize("device", [True, False], ids=["device", "host"])
def test_what_is_no_cuda_stays_as_it_is(rewrite: Rewrite, text: str, device: bool) -> None:
    assert rewrite(text, device) == text
    # The same behind other tokens of the line.
    assert rewrite("int y; " + text if text[0] != "#" else text, device).endswith(text)


def test_types_that_members_are_named_after_get_their_scopes(rewrite: Rewrite) -> None:
    outer = "namespace a { template <class T> struct X {}; enum class K { k }; struct Base { struct X {}; };\n"
    assert "using X = ::a::X<int>;" in rewrite(outer + "struct S { using X = X<int>; };\n}\n")
    # A base may have a type of the name.
    assert "using X = X;" in rewrite(outer + "struct S : Base { using X = X; };\n}\n")
    # In an operator's body: no class, and no template's arguments.
    operator = outer + "struct S {}; bool operator>(S, S) { K K(a::K::k); return true; }\n}\n"
    assert rewrite(operator).startswith(outer)


def test_declarations_in_std_add_to_each_other(rewrite: Rewrite) -> None:
    text = (
        "namespace std { struct pair {}; }\n"
        "namespace a { struct pair {}; void swap(pair); } namespace b { void swap(int); }\n"
        "namespace std { using a::pair; using a::swap; using b::swap; }\n"
    )
    written = rewrite(text, at_run_time=True)
    assert "using a::pair;" not in written and "using a::swap; using b::swap;" in written
    assert rewrite(text) == text


def test_a_system_header_stays_one_behind_a_kernel(rewrite: Rewrite) -> None:
    text = '# 1 "a.h" 3\n__mxmaca_global__ void k(int* p) {\n  p[0] = 1; __syncthreads(); p[1] = 2;\n}\nint after;\n'
    markers = re.findall(r'# \d+ "a.h"(.*)', rewrite(text, device=True))
    assert len(markers) > 1 and set(markers) == {" 3"}


@pytest.mark.parametrize("device", [True, False], ids=["device", "host"])
def test_no_line_moves(rewrite: Rewrite, device: bool) -> None:
    text = (
        KERNEL
        + 'void f(int* p) {\n  k<int>\n<<<1,\n# 40 "user.cu"\n2>>>(p,\n 3); int line_41;\n}\n'
        + "__mxmaca_global__ void\n__mxmaca_launch_bounds__(\n64)\nw(int v) {\n  __syncthreads();\n}\nint line_49;\n"
    )
    result = rewrite(text, device)
    for word in ("line_41", "line_49"):
        lines = result[: result.index(word)].split("\n")
        start = max(at for at, line in enumerate(lines) if line.startswith("# "))
        first = int(re.match(r"# (\d+)", lines[start]).group(1))  # type: ignore[union-attr]
        assert f"line_{first + len(lines) - start - 2}" == word


@pytest.mark.parametrize(
    ("callee", "configuration", "grid", "block"),
    [
        ("k<int>", "n < 3 ? 1 : n, 256", "n < 3 ? 1 : n", "256"),
        ("ns::k<A<B<int>>>", "f(a, b), dim3(1, 2)", "f(a, b)", "dim3(1, 2)"),
        ("(*table[i].kernels)", "A<1, 2>::grid, 32", "A<1, 2>::grid", "32"),
        ("this->template get<int>()", "'<', \">>>\"[0]", "'<'", '">>>"[0]'),
    ],
)
def test_a_launch_is_found_with_all_that_it_calls(
    rewrite: Rewrite, callee: str, configuration: str, grid: str, block: str
) -> None:
    result = rewrite(f"void f() {{ if (x) {callee}<<<{configuration}>>>(a); }}\n")
    assert f"if (x) (::__cudaPushCallConfiguration({grid}, {block}, 0, " in result
    assert f"(void){callee} (a)); }}" in result


@pytest.mark.parametrize(
    ("declared", "used"),
    [
        ("int", ""),
        ("const float* __restrict__ p", "p"),
        ("unsigned", ""),
        ("ns::Type", ""),
        ("typename T::type value = T::type(1, 2)", "value"),
        ("int (*f)(int a)", "f"),
        ("int (&rows)[4]", "rows"),
        ("Function<void (*)(int)> call", "call"),
        ("Map<A, B> [2]", ""),
    ],
)
def test_the_stub_hands_on_every_parameter(rewrite: Rewrite, declared: str, used: str) -> None:
    result = rewrite(f"__mxmaca_global__ void k({declared}) {{ }}\n")
    assert f"__builtin_addressof({used or '__mxmaca_parameter_1'})" in result
    assert ("__mxmaca_parameter_1" in result) == (not used)


@pytest.mark.parametrize(
    "words", ["{} __mxmaca_global__ void", "{}\n__mxmaca_global__\nvoid", "__mxmaca_global__ void {}"]
)
def test_launch_bounds_count_wherever_they_stand(rewrite: Rewrite, words: str) -> None:
    bounds = words.format("__mxmaca_launch_bounds__(most(A<1, 2>::n), 2)")
    assert "::mxmaca::bound(most(A<1, 2>::n))" in rewrite(f"template <class T>\n{bounds} k(T v) {{ }}\n")


def test_stubs_of_templates_are_static_where_that_is_asked_for(rewrite: Rewrite) -> None:
    assert "static __attribute__((noinline" in rewrite(KERNEL, static_stubs=True)
    special = KERNEL.replace("<class T>", "<>").replace("T*", "int*")
    assert "static __attribute__((noinline" not in rewrite(special, static_stubs=True)


def test_inline_functions_of_relocatable_code_get_no_section(rewrite: Rewrite) -> None:
    marked = "__mxmaca_device__ int f(int x) { return x; }\n"
    assert 'section(".text.mxmaca.1")' in rewrite(marked, device=True, relocatable=True)
    assert "section" not in rewrite('static inline\n# 5 "a.h"\n' + marked, device=True, relocatable=True)


@pytest.mark.parametrize(
    ("around", "outside"),
    [("{}", True), ("namespace a::b {{ struct S {{ }}; {} }}", True), ('extern "C" {{ {} }}', True)]
    + [("void f() {{ if (x) {{ }} {} }}", False), ("namespace a {{ void f() {{ g('}}', \"}}\"); {} }} }}", False)],
)
def test_dynamic_shared_memory_is_an_object_outside_of_functions(rewrite: Rewrite, around: str, outside: bool) -> None:
    result = rewrite(around.format("extern __mxmaca_shared__ float x[];"))
    assert ("::mxmaca::DynamicShared<float> x;" in result) == outside
    assert ("float (&x)[] = *reinterpret_cast<" in result) == (not outside)


@pytest.mark.parametrize("text", ["k<<<1>>>(p);", "k<<<1, 2, 3, 4, 5>>>(p);", "k<<<1, 2>>>;", "k<<<1, 2;"])
def test_a_launch_that_is_none_is_an_error_at_its_line(rewrite: Rewrite, load: Callable[[str], Any], text: str) -> None:
    with pytest.raises(load("errors").CuccError, match=r"user\.cu:12: error: "):
        rewrite(f'# 11 "user.cu"\nvoid f() {{\n{text}\n}}\n')


def test_initial_values_of_kept_variables_are_as_other_passes_leave_them(rewrite: Rewrite) -> None:
    """Those of shared memory turn an atomic function on the block's own memory into one without a bus lock."""
    text = (
        "__mxmaca_global__ void k(int* p) {\n  __mxmaca_shared__ int s[8];\n"
        "  int v = atomicAdd(&s[0], 1);\n  __syncthreads();\n  v += atomicAdd(&s[1], __shfl_xor_sync(-1, v, 1));\n"
        "  p[threadIdx.x] = v;\n}\n"
    )
    body, phases = rewrite(text, device=True).split("__mxmaca_phases = ", 1)
    assert body.count("atomicAdd_block(") == phases.count("atomicAdd_block(") == 2
    assert "atomicAdd(" not in body + phases


HOLD = "__mxmaca_device__ void hold(volatile int* f) { while (*f == 0); }\n"
WAITING = {
    "volatile parameter": "__mxmaca_global__ void k(volatile int* f) { while (*f == 0); }",
    "element": "__mxmaca_global__ void k(volatile int* f) { while (!f[0]) { __nanosleep(10); } }",
    "cast": "__mxmaca_global__ void k(int* f) { while (*(volatile int*)f == 0) {} }",
    "copy": "__mxmaca_global__ void k(int* f) { volatile int* v = f; int x; do { x = *v; } while (x == 0); }",
    "assembly": """__mxmaca_global__ void k(int* p) { int x = 0; do { asm volatile("ld.relaxed.sys.global.s32 %0, [%1];"
        : "=r"(x) : "l"(p) : "memory"); } while (x == 0); }""",
    "atomic function": "__mxmaca_global__ void k(int* f) { while (atomicAdd(f, 0) == 0); }",
    "uncached load": "__mxmaca_global__ void k(int* f) { int x; do { x = __ldcv(f); } while (x == 0); }",
    "system": "__mxmaca_global__ void k(int* f) { while (true) { if (atomicAdd_system(f, 0)) break; } }",
    "atomic_ref": "__mxmaca_global__ void k(int* f) { cuda::atomic_ref<int> r(*f); while (r.load() == 0) { } }",
    "endless": """__mxmaca_global__ void k(int* f) { for (;;) { cuda::atomic_ref<int> r(*f);
        if (r.load(cuda::memory_order_acquire) != 0) return; } }""",
    "function": HOLD + "__mxmaca_global__ void k(int* f) { hold(f); }",
    "function with default values": """__mxmaca_device__ void hold(volatile int* f, Mode a = {}, Mode b = Mode{})
        { while (*f == 0); }\n__mxmaca_global__ void k(int* f) { hold(f); }""",
    "declared before": "__mxmaca_device__ void hold(volatile int*);\n__mxmaca_global__ void k(int* f) { hold(f); }\n"
    + HOLD,
    "function of a function": HOLD
    + """__mxmaca_device__ void all(int* f) { hold(f); }
        __mxmaca_global__ void k(int* f) { all(f); }""",
    "method": """struct Flag { volatile int* f; __mxmaca_device__ void wait() { while (*f == 0); } };
        __mxmaca_global__ void k(Flag f) { f.wait(); }""",
    "variable": "__mxmaca_device__ volatile int ready;\n__mxmaca_global__ void k() { while (ready == 0); }",
}
NOT_WAITING = {
    "loop": "__mxmaca_global__ void k(int* f) { for (int i = 0; i < 10; ++i) f[i] = i; }",
    "volatile loop": "__mxmaca_global__ void k(volatile int* f, int n) { for (int i = 0; i < n; ++i) f[i] = i; }",
    "sum": """__mxmaca_global__ void k(volatile float* s, int n) { int i = 0; float x = 0;
        while (i < n) { x += s[i]; i += 32; } s[0] = x; }""",
    "exchange": """__mxmaca_global__ void k(int* a) { int o = *a, s;
        do { s = o; o = atomicCAS(a, s, s + 1); } while (s != o); }""",
    "hash table": """__mxmaca_global__ void k(int* t, int key) { int s = key; while (true) {
        int p = atomicCAS(&t[s], -1, key); if (p == -1 || p == key) return; s = (s + 1) % 64; } }""",
    "halves": "__mxmaca_global__ void k(volatile float* s) { for (int d = 16; d > 0; d >>= 1) s[0] += s[d]; }",
    "host": "void host(volatile int* f) { while (*f == 0); }\n__mxmaca_global__ void k(int* f) { f[0] = 1; }",
    "name of the host's": """void drain(volatile int* f) { while (*f == 0); }
        __mxmaca_global__ void k(int* f) { int drain = 1; f[0] = drain; }""",
    "clock": "__mxmaca_global__ void k(long n) { long s = clock64(); while (clock64() - s < n); }",
    "cached load": """__mxmaca_global__ void k(float* x, int n) { for (int i = 0; i < n; i += 4) {
        asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(x[0]) : "l"(x)); } }""",
}


@pytest.mark.parametrize("text", WAITING.values(), ids=list(WAITING))
def test_the_host_is_told_of_kernels_that_may_wait_for_it(rewrite: Rewrite, text: str) -> None:
    assert "kMayWait" in rewrite(text)


@pytest.mark.parametrize("text", NOT_WAITING.values(), ids=list(NOT_WAITING))
def test_kernels_that_end_by_themselves_are_none_of_them(rewrite: Rewrite, text: str) -> None:
    assert "kMayWait" not in rewrite(text)


STEP = "__syncwarp(__activemask());"
IN_STEP = {
    "parameter": ("volatile int* s, int t", "s[t] += s[t + 1];", "s[t] + (s[t + 1])"),
    "chain": ("volatile int* s, int t, int x", "s[t] = x = x + s[t + 1];", "x = x + s[t + 1]"),
    "condition": ("volatile int* s, int t", "if (t > 1) s[t] -= s[t - 1]; else s[t] = s[0];", "s[t] - (s[t - 1])"),
    "call": ("volatile float* s, int t", "s[t] = fminf(s[t], s[t + 1]);", "fminf(s[t], s[t + 1])"),
    "comma operator": ("volatile int* s, int t, int u", "if (t) s[t] = s[t + 1], u = 1;", "s[t + 1]"),
    "comparisons": (
        "volatile int* s, int t, bool u",
        "s[t] = t < 3 ? s[t + 1] : 0, u = t > (1);",
        "t < 3 ? s[t + 1] : 0",
    ),
    "template": ("volatile int* s, int t", "s[t] = of<int, 2>(s[t + 1]);", "of<int, 2>(s[t + 1])"),
    "list": ("volatile Pair* s, int t", "s[t] = Pair{s[t + 1].x, 1};", "Pair{s[t + 1].x, 1}"),
    "local pointer": ("int* p, int t", "volatile int* s = p + t; s[0] *= s[2];", "s[0] * (s[2])"),
}
OUT_OF_STEP = {
    "written alone": ("volatile int* s, int t", "s[t] = t;"),
    "barrier of its own": ("volatile int* s, int t", "s[t] += s[t + 1]; __syncwarp();"),
    "plain memory": ("int* s, int t", "s[t] += s[t + 1];"),
    "waits for a store": ("volatile int* s, int t", "while (s[t + 1] == 0); s[t] = 1;"),
    "waits in an endless loop": ("volatile int* s, int t", "for (;;) { if (s[t + 1] != 0) break; } s[t] += 1;"),
    "part of a statement": ("volatile int* s, int t", "int x = s[t] + s[t + 1]; t = x;"),
}


@pytest.mark.parametrize("case", IN_STEP)
def test_stores_to_volatile_memory_are_steps_of_a_warp(rewrite: Rewrite, case: str) -> None:
    parameters, body, value = IN_STEP[case]
    text = f"__mxmaca_device__ void f({parameters}) {{\n{body} }}\n"
    found = rewrite(text, True)
    assert f"__mxmaca_step = {value}; {STEP}" in found and found.count("\n") == text.count("\n")
    assert rewrite(f"struct S {{ {text} }};", True).count(STEP) == found.count(STEP) > 0
    assert STEP not in rewrite(text, False)
    assert STEP not in rewrite(text.replace("__mxmaca_device__ ", ""), True)


@pytest.mark.parametrize("loop", [HOLD, "__mxmaca_device__ void lock(int* m) { while (atomicCAS(m, 0, 1) != 0); }\n"])
def test_no_warp_is_in_step_where_threads_wait_for_each_other(rewrite: Rewrite, loop: str) -> None:
    parameters, body, _ = IN_STEP["parameter"]
    step = f"__mxmaca_device__ void f({parameters}) {{ {body} }}\n"
    assert STEP in rewrite(step, True) and STEP not in rewrite(loop + step, True)


@pytest.mark.parametrize("case", OUT_OF_STEP)
def test_other_statements_are_no_steps(rewrite: Rewrite, case: str) -> None:
    parameters, body = OUT_OF_STEP[case]
    assert STEP not in rewrite(f"__mxmaca_device__ void f({parameters}) {{\n{body} }}\n", True)
