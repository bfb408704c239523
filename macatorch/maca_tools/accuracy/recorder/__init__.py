"""While a script runs: operators are seen, and recorded or, at level 0, compared with the CPU at once."""
