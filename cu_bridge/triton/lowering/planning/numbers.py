"""Numbers that the text of a kernel shows."""

from typing import Optional

from ..ir import Value


def constant_number(value: Value) -> Optional[int]:
    """The integer that all elements are; None where the text does not show one."""
    while value.definition is not None and value.definition.name in ("tt.splat", "tt.broadcast", "tt.expand_dims"):
        value = value.definition.operands[0]
    if value.definition is None or value.definition.name != "arith.constant":
        return None
    text = value.definition.words[0]
    text = text[6 : text.rindex(">")] if text.startswith("dense<") else text
    return int(text) if text.lstrip("-").isdigit() else None
