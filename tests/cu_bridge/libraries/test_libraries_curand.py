"""cuRAND's host interface: known sequences in the documented order, distributions, statuses."""

import ctypes
import pathlib
from typing import Any, Iterator, List

import numpy
import pytest
from library_calls import Library
from scipy import stats

XORWOW, MRG, MTGP, MT, PHILOX, SOBOL = 101, 121, 141, 142, 161, 201
NOT_INITIALIZED, TYPE_ERROR, OUT_OF_RANGE, NOT_MULTIPLE = 101, 103, 104, 105
PSEUDO = [XORWOW, MRG, MT, PHILOX]


class Rand(Library):
    """cuRAND, and numbers as arrays."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcurand")

    def generator(self, kind: int, seed: int = 0, offset: int = 0) -> ctypes.c_void_p:
        generator = ctypes.c_void_p()
        self.call("curandCreateGenerator", ctypes.byref(generator), kind)
        self.call("curandSetPseudoRandomGeneratorSeed", generator, ctypes.c_ulonglong(seed))
        if offset:
            self.call("curandSetGeneratorOffset", generator, ctypes.c_ulonglong(offset))
        return generator

    def numbers(self, generator: Any, name: str, kind: Any, count: int, *parameters: Any) -> numpy.ndarray:
        out = self.device(numpy.zeros(count, kind))
        self.call("curandGenerate" + name, generator, out, ctypes.c_size_t(count), *parameters)
        return out


@pytest.fixture(scope="module")
def rand(sdk: pathlib.Path) -> Iterator[Rand]:
    yield Rand(sdk)


def philox(counter: List[int], key: List[int]) -> List[int]:
    """Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & 0xFFFFFFFF, first >> 32 ^ c[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def philox_word(n: int, seed: int) -> int:
    """Word n of the legacy order: 65536 subsequences take turns of four words."""
    turn, subsequence = n // 4 // 65536, n // 4 % 65536
    return philox([turn, 0, subsequence, 0], [seed & 0xFFFFFFFF, seed >> 32])[n % 4]


def test_philox_is_the_published_one() -> None:
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("offset", [0, 7, 262144 * 3 + 5])
def test_philox_words_are_in_the_documented_order(rand: Rand, offset: int) -> None:
    seed, count = 0x123456789ABC, 262144 + 20
    words = rand.numbers(rand.generator(PHILOX, seed, offset), "", numpy.uint32, count)
    for n in (0, 1, 2, 3, 4, 5, 1001, 262139, 262143, 262144, 262148, count - 1):
        assert words[n] == philox_word(n + offset, seed), n


def xorwow(seed: int, count: int) -> List[int]:
    """Marsaglia's xorwow with the seeding of cuRAND."""
    low = 1099087573 * (seed & 0xFFFFFFFF ^ 0xAAD26B49) & 0xFFFFFFFF
    high = 2591861531 * (seed >> 32 ^ 0xF7DCEFDD) & 0xFFFFFFFF
    d = 6615241 + low + high
    v = [123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low]
    v = [each & 0xFFFFFFFF for each in v]
    result = []
    for _ in range(count):
        t = v[0] ^ v[0] >> 2
        v = [*v[1:], (v[4] ^ v[4] << 4) & 0xFFFFFFFF ^ (t ^ t << 1) & 0xFFFFFFFF]
        d += 362437
        result.append((v[4] + d) & 0xFFFFFFFF)
    return result


def test_xorwow_threads_take_turns(rand: Rand) -> None:
    seed = 99
    words = rand.numbers(rand.generator(XORWOW, seed), "", numpy.uint32, 4096 * 6)
    assert list(words[::4096]) == xorwow(seed, 6)
    assert len(numpy.unique(words)) > 4096 * 6 - 3  # the other threads have sequences of their own


def test_mrg32k3a_threads_take_turns(rand: Rand) -> None:
    s1, s2, expected = [12345] * 3, [12345] * 3, []
    for _ in range(6):
        s1 = [*s1[1:], (1403580 * s1[1] - 810728 * s1[0]) % 4294967087]
        s2 = [*s2[1:], (527612 * s2[2] - 1370589 * s2[0]) % 4294944443]
        expected.append(((s1[2] - s2[2]) % 4294967087 or 4294967087) * 2.328306549295728e-10)
    numbers = rand.numbers(rand.generator(MRG), "UniformDouble", numpy.float64, 4096 * 6)
    assert numpy.allclose(numbers[::4096], expected, rtol=1e-15)


@pytest.mark.parametrize("kind", PSEUDO)
def test_a_seed_repeats_and_calls_go_on(rand: Rand, kind: int) -> None:
    whole = rand.numbers(rand.generator(kind, 5), "", numpy.uint32, 5000)
    generator = rand.generator(kind, 5)
    parts = [rand.numbers(generator, "", numpy.uint32, count) for count in (1, 4097, 902)]
    assert (numpy.concatenate(parts) == whole).all()
    assert (rand.numbers(rand.generator(kind, 6), "", numpy.uint32, 5000) != whole).mean() > 0.99
    if kind != MT:
        assert (rand.numbers(rand.generator(kind, 5, 4100), "", numpy.uint32, 900) == whole[4100:]).all()


@pytest.mark.parametrize("kind", PSEUDO)
def test_distributions(rand: Rand, kind: int) -> None:
    generator, count = rand.generator(kind, 1234), 100_000
    for name, dtype, parameter in (("", numpy.float32, ctypes.c_float), ("Double", numpy.float64, ctypes.c_double)):
        uniform = rand.numbers(generator, "Uniform" + name, dtype, count)
        assert uniform.min() > 0 and uniform.max() <= 1
        assert stats.kstest(uniform.astype(float), "uniform").pvalue > 1e-4
        normal = rand.numbers(generator, "Normal" + name, dtype, count, parameter(2), parameter(3))
        assert stats.kstest(normal.astype(float), "norm", (2, 3)).pvalue > 1e-4
        assert abs(numpy.corrcoef(normal[::2], normal[1::2])[0, 1]) < 0.02
        logarithmic = rand.numbers(generator, "LogNormal" + name, dtype, count, parameter(0.5), parameter(0.25))
        assert stats.kstest(numpy.log(logarithmic.astype(float)), "norm", (0.5, 0.25)).pvalue > 1e-4
    for mean in (0.5, 4, 40, 3000):
        poisson = rand.numbers(generator, "Poisson", numpy.uint32, count, ctypes.c_double(mean)).astype(int)
        edges = numpy.unique(stats.poisson.ppf(numpy.linspace(0.02, 0.98, 12), mean).astype(int))
        groups = numpy.searchsorted(edges, poisson)
        probabilities = numpy.diff([0, *stats.poisson.cdf(edges, mean), 1])
        found = numpy.bincount(groups, minlength=len(probabilities))
        assert stats.chisquare(found, probabilities * count).pvalue > 1e-4, mean
    binomial = rand.numbers(generator, "Binomial", numpy.uint32, count, 20, ctypes.c_double(0.3))
    found = numpy.bincount(binomial, minlength=21)
    expected = stats.binom.pmf(range(21), 20, 0.3) * count
    assert stats.chisquare([*found[:13], found[13:].sum()], [*expected[:13], expected[13:].sum()]).pvalue > 1e-4


def test_uniform_numbers_come_from_the_words(rand: Rand) -> None:
    for kind in (XORWOW, PHILOX):
        words = rand.numbers(rand.generator(kind, 3), "", numpy.uint32, 10_000)
        uniform = rand.numbers(rand.generator(kind, 3), "Uniform", numpy.float32, 10_000)
        assert (uniform == words.astype(numpy.float32) * numpy.float32(2**-32) + numpy.float32(2**-33)).all()


def test_what_cannot_be_done_says_so(rand: Rand) -> None:
    generator = ctypes.c_void_p()
    for kind in (MTGP, SOBOL, 5):
        assert rand.status("curandCreateGenerator", ctypes.byref(generator), kind) == TYPE_ERROR
    generator = rand.generator(PHILOX)
    out = rand.device(numpy.zeros(3, numpy.float32))
    one = ctypes.c_float(1)
    arguments = generator, out, ctypes.c_size_t(3), one, one
    assert rand.status("curandGenerateNormal", *arguments) == NOT_MULTIPLE
    assert (out == 0).all()
    arguments = generator, out, ctypes.c_size_t(3), ctypes.c_double(-1)
    assert rand.status("curandGeneratePoisson", *arguments) == OUT_OF_RANGE
    assert rand.status("curandGenerate", None, out, ctypes.c_size_t(3)) == NOT_INITIALIZED
    assert rand.status("curandSetGeneratorOffset", rand.generator(MT), ctypes.c_ulonglong(1)) == TYPE_ERROR
    assert rand.status("curandSetGeneratorOrdering", generator, 102) == TYPE_ERROR
    assert rand.status("curandSetGeneratorOrdering", generator, 7) == OUT_OF_RANGE
