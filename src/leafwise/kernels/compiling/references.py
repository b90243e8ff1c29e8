"""References: named tuples of arrays, passed to compiled functions as one address instead of hundreds of arguments.

A *reference* has the fields of its tuple; a field that is a named tuple is a reference, too. Compiled code creates one
by `refer`. It is valid as long as the function that created it runs, and so must the arrays be: refer to arguments.
Python creates one by `Packed`, which keeps the arrays alive. Without a compiler, or with plain numba, both are the
tuple itself.
"""

from typing import Any

from leafwise.kernels.compiling.jit import chosen

refer: Any = chosen.refer
"""Create a reference to a named tuple."""

Packed: Any = chosen.Packed
"""A named tuple for compiled functions that take a reference."""

another: Any = chosen.another
"""Copy a `Packed` tuple, with arrays of its own, whose contents are those at the time of the first copy."""
