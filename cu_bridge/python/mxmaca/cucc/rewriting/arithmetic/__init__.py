"""Arithmetic of the device that a processor's differs from."""
