"""Random sequences of torch calls, run on the CPU and on the simulated device in one process and compared after each call.

literals.py     dtypes, shapes and values, as Python source
grammar.py      what a step may be: sequences over a pool of tensors that live on
functions.py    small functions and modules for tracing, transforms, capture and training
samples.py      steps from upstream's OpInfo
program.py      a program, its run on both devices, and its text as a stand-alone script
memory.py       tensors' memory, read without a call of torch's device operators
comparison.py   what must agree after a step
references.py   the same step in wider dtypes and on contiguous inputs
expectations.py differences that have a reason (fuzz_expected.toml)
clean.py        processes without a history, for the search of causes
reduction.py    the smallest program that still differs
session.py      programs by number, and replays of the first ones
"""
