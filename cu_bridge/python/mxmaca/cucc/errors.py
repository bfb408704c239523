"""The one error that ends a compilation with a message of cucc's own."""


class CuccError(Exception):
    """What is wrong and, where it helps, what to do."""
