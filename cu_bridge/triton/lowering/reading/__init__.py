"""Triton's IR, from its printed form."""
