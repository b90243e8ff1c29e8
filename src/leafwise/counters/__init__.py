"""Counters: the only code that sees rows. The contract is in `counter`."""
