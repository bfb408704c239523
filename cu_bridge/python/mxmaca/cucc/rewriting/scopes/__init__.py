"""What names stand for: types with the name of a member, and what programs put into namespace std."""

from . import redeclared, standard

__all__ = ["redeclared", "standard"]
