"""Triton's backend for the simulated device: kernels become machine code of the host.

The folder keeps the name of the backend whose place it takes, as programs import ``triton.backends.nvidia``.
"""
