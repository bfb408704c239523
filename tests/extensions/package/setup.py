"""A package of custom operators, as an extension author writes it: nothing here knows of this distribution."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="proofs",
    packages=["proofs"],
    ext_modules=[
        CUDAExtension(
            "proofs._C",
            ["csrc/operators.cu", "csrc/module.cpp"],
            extra_compile_args={"cxx": ["-O1"], "nvcc": ["-O1", "--expt-relaxed-constexpr", "--extended-lambda"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
