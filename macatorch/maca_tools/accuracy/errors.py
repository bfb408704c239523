"""The one error type that callers of maca_tools.accuracy meet."""


class AccuracyError(RuntimeError):
    """A record or a report cannot be made; the message says why and what to do."""
