"""A pytest plugin for Triton's own tests: questions about hardware that the installed release does not know yet.

Tests of a commit near a release import names of ``triton._internal_testing`` that came later. The device is none of the
hardware that these ask about, which is the answer that they get. There is no assembler of NVIDIA's either.
"""

QUESTIONS = (
    "is_hip_cdna",
    "is_hip_mi200",
    "is_hip_mi300",
    "is_hip_mi350",
    "is_hopper",
    "is_blackwell",
    "is_hopper_or_newer",
    "is_xpu",
)


def pytest_configure() -> None:
    """Answer what is not answered."""
    import triton

    knobs = getattr(triton, "knobs", None)
    if knobs is not None:
        # The tests ask for the assembler's version as they are imported, to know whether it knows tensor maps.
        type(knobs.nvidia).ptxas = knobs.NvidiaTool("", "12.8")
    import triton._internal_testing as testing

    for name in QUESTIONS:
        if not hasattr(testing, name):
            setattr(testing, name, lambda: False)
