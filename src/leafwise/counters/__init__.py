"""Counters: the only code that accesses rows. The interface is in `counter`."""
