"""cuRAND's host interface: known sequences in the documented order, distributions, statuses."""

import ctypes
import pathlib
from typing import Any, Iterator, List, Tuple

import numpy
import pytest
from library_calls import Library
from scipy import stats

XORWOW, MRG, MTGP, MT, PHILOX = 101, 121, 141, 142, 161
SOBOL32, SCRAMBLED32, SOBOL64, SCRAMBLED64 = 201, 202, 203, 204
NOT_INITIALIZED, TYPE_ERROR, OUT_OF_RANGE, NOT_MULTIPLE = 101, 103, 104, 105
PSEUDO = [XORWOW, MRG, MT, PHILOX]
QUASI = [SOBOL32, SCRAMBLED32, SOBOL64, SCRAMBLED64]


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

    def quasi(self, kind: int, dimensions: int = 1, offset: int = 0) -> ctypes.c_void_p:
        generator = ctypes.c_void_p()
        self.call("curandCreateGenerator", ctypes.byref(generator), kind)
        self.call("curandSetQuasiRandomGeneratorDimensions", generator, dimensions)
        self.call("curandSetGeneratorOffset", generator, ctypes.c_ulonglong(offset))
        return generator

    def table(self, name: str, kind: Any, shape: Tuple[int, ...], *arguments: Any) -> numpy.ndarray:
        """What a function shows the address of."""
        place = ctypes.POINTER(kind)()
        self.call("curandGet" + name, ctypes.byref(place), *arguments)
        return numpy.ctypeslib.as_array(place, shape)

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
    for kind in (MTGP, 5):
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


def test_sobol_words_are_the_published_points(rand: Rand) -> None:
    dimensions, points = 20_000, 40
    engine = stats.qmc.Sobol(dimensions, scramble=False, bits=32)
    with pytest.warns(UserWarning):  # 40 is no power of two
        expected = engine.random(points) * 2.0**32
    words = rand.numbers(rand.quasi(SOBOL32, dimensions), "", numpy.uint32, dimensions * points)
    assert (words.reshape(dimensions, points) == expected.T).all()  # dimension after dimension
    long = rand.numbers(rand.quasi(SOBOL64, dimensions), "LongLong", numpy.uint64, dimensions * points)
    assert (long.reshape(dimensions, points) >> numpy.uint64(32) == expected.T).all()


@pytest.mark.parametrize("kind", QUASI)
def test_quasi_random_calls_go_on_and_skip(rand: Rand, kind: int) -> None:
    name, dtype = ("", numpy.uint32) if kind in (SOBOL32, SCRAMBLED32) else ("LongLong", numpy.uint64)
    whole = rand.numbers(rand.quasi(kind, 3), name, dtype, 3 * 1000).reshape(3, 1000)
    generator = rand.quasi(kind, 3)
    parts = [rand.numbers(generator, name, dtype, 3 * count).reshape(3, count) for count in (1, 600, 399)]
    assert (numpy.concatenate(parts, axis=1) == whole).all()
    assert (rand.numbers(rand.quasi(kind, 3, 123), name, dtype, 30).reshape(3, 10) == whole[:, 123:133]).all()
    assert rand.status("curandGenerate" + name, generator, whole.copy(), ctypes.c_size_t(10)) == NOT_MULTIPLE


@pytest.mark.parametrize("kind", QUASI)
def test_quasi_random_points_fill_space_evenly(rand: Rand, kind: int) -> None:
    dimensions, points = 6, 1 << 12
    generator = rand.quasi(kind, dimensions)
    uniform = rand.numbers(generator, "UniformDouble", numpy.float64, dimensions * points).reshape(dimensions, points)
    assert uniform.min() > 0 and uniform.max() <= 1
    for line in uniform:  # one point in each of as many intervals, whose lower end is a point
        assert len(set(numpy.minimum(numpy.floor(line * points), points - 1))) == points
    independent = stats.qmc.discrepancy(numpy.random.default_rng(1).random((points, dimensions)))
    assert stats.qmc.discrepancy(numpy.clip(uniform.T, 0, 1)) < independent / 20
    normal = rand.numbers(
        rand.quasi(kind, 3), "NormalDouble", numpy.float64, 3 * 999, ctypes.c_double(2), ctypes.c_double(3)
    )
    # The first point is 0 in each dimension; with 64 bits it lies more than eight standard deviations away.
    assert abs(normal.mean() - 2) < 0.05 and abs(normal.std() - 3) < 0.1
    first = rand.numbers(rand.quasi(kind, 1), "UniformDouble", numpy.float64, 100)
    one = rand.numbers(rand.quasi(kind, 1), "NormalDouble", numpy.float64, 100, ctypes.c_double(0), ctypes.c_double(1))
    assert numpy.abs(stats.norm.cdf(one) - first).max() < 1e-9
    single = rand.numbers(rand.quasi(kind, 1), "Normal", numpy.float32, 100, ctypes.c_float(0), ctypes.c_float(1))
    # The first point again: single precision has 32 bits of it, double has all.
    assert numpy.abs(single - one)[1:].max() < 1e-3
    for mean in (0.3, 5.0, 5000.0):
        poisson = rand.numbers(rand.quasi(kind, 1), "Poisson", numpy.uint32, 100, ctypes.c_double(mean))
        assert (poisson == stats.poisson.ppf(first, mean)).mean() > 0.98


def test_scrambled_vectors_and_constants(rand: Rand) -> None:
    plain = rand.table("DirectionVectors32", ctypes.c_uint32, (20_000, 32), 101)
    mixed = rand.table("DirectionVectors32", ctypes.c_uint32, (20_000, 32), 102)
    long = rand.table("DirectionVectors64", ctypes.c_uint64, (20_000, 64), 103)
    assert (plain[0] == 1 << numpy.arange(31, -1, -1)).all()
    assert (long[:, :32] >> numpy.uint64(32) == plain).all()
    # The leading bit stays: a matrix with ones on its diagonal mixes lower bits into none above them.
    assert (mixed >> 31 == plain >> 31).all() and (mixed != plain).any(axis=1).all()
    constants = rand.table("ScrambleConstants32", ctypes.c_uint32, (20_000,))
    words = rand.numbers(rand.quasi(SCRAMBLED32, 5), "", numpy.uint32, 5 * 4).reshape(5, 4)
    assert (words[:, 0] == constants[:5]).all() and (words[:, 1] == constants[:5] ^ mixed[:5, 0]).all()
    assert stats.kstest(constants / 2**32, "uniform").pvalue > 1e-4
    assert len(numpy.unique(rand.table("ScrambleConstants64", ctypes.c_uint64, (20_000,)))) == 20_000


class Distribution(ctypes.Structure):
    _fields_ = [("shift", ctypes.c_uint), ("count", ctypes.c_size_t), ("cumulative", ctypes.POINTER(ctypes.c_double))]


@pytest.mark.parametrize("mean", [0.01, 1, 30, 400_000])
def test_poisson_distributions_are_tables(rand: Rand, mean: float) -> None:
    place = ctypes.POINTER(Distribution)()
    rand.call("curandCreatePoissonDistribution", ctypes.c_double(mean), ctypes.byref(place))
    table = place.contents
    cumulative = numpy.ctypeslib.as_array(table.cumulative, (table.count,))
    assert numpy.abs(cumulative - stats.poisson.cdf(table.shift + numpy.arange(table.count), mean)).max() < 1e-9
    assert cumulative[-1] == 1
    rand.call("curandDestroyDistribution", place)
    assert rand.status("curandDestroyDistribution", place) == NOT_INITIALIZED


def test_what_quasi_random_generators_do_not_have(rand: Rand) -> None:
    generator, out = rand.quasi(SOBOL32), rand.device(numpy.zeros(4, numpy.uint64))
    four = ctypes.c_size_t(4)
    assert rand.status("curandSetPseudoRandomGeneratorSeed", generator, ctypes.c_ulonglong(1)) == TYPE_ERROR
    assert rand.status("curandSetQuasiRandomGeneratorDimensions", generator, 20_001) == OUT_OF_RANGE
    assert rand.status("curandSetGeneratorOrdering", generator, 100) == OUT_OF_RANGE
    assert rand.status("curandGenerateLongLong", generator, out, four) == TYPE_ERROR
    assert rand.status("curandGenerate", rand.quasi(SOBOL64), out, four) == TYPE_ERROR
    assert rand.status("curandSetQuasiRandomGeneratorDimensions", rand.generator(PHILOX), 2) == TYPE_ERROR
