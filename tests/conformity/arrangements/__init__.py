"""Operators on tensors in any arrangement of memory, in the default layout, against the CPU in double precision.

draws.py       random sizes, and tensors whose elements lie in a random order, apart, or behind others
operators.py   what a case may be: a function and its arguments
comparison.py  results and gradients of both devices
__main__.py    cases by number, in one process

What lies between the elements of a tensor is NaN, and so is much of the memory that the device hands out: a kernel that
reads a tensor in another order, or more than it, says so by its result.
"""
