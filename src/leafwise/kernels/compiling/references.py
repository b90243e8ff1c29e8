"""Named tuples of arrays, handed to compiled functions as one address instead of hundreds of arguments.

A *reference* has the fields of its tuple; a field that is a named tuple again is a reference, too. Compiled code makes
one by `refer`: it lives as long as the function that made it, and so must the arrays: refer to arguments. Python makes
one by `Packed`, which holds the arrays. Without a compiler, or by plain numba, both are the tuple itself.
"""

from typing import Any

from leafwise.kernels.compiling.jit import chosen

refer: Any = chosen.refer
"""Make a reference to a named tuple."""

Packed: Any = chosen.Packed
"""A named tuple for compiled functions that take a reference."""

another: Any = chosen.another
"""One like a `Packed` tuple, with arrays of its own, which hold what that one's did when it was first asked for."""
