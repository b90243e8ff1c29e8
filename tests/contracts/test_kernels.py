"""What compiled functions may return to Python."""

import pkgutil
from importlib import import_module
from typing import get_type_hints

import pytest
from numba.core.dispatcher import Dispatcher

from leafwise import kernels

MODULES = [import_module(found.name) for found in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")]
CALLED = [
    function
    for module in MODULES
    for function in (getattr(found, "dispatcher", found) for found in vars(module).values())
    if isinstance(function, Dispatcher)
    and function.__module__ == module.__name__
    and not function.targetoptions.get("no_cpython_wrapper")
    and function.targetoptions.get("inline") != "always"
]


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.__qualname__)
def test_no_kernel_returns_a_tuple(function):
    """An interrupt that came while the kernel ran is raised while numba makes the tuple, which ends the process."""
    returned = get_type_hints(function.py_func)["return"]
    origin = getattr(returned, "__origin__", returned)
    assert not (isinstance(origin, type) and issubclass(origin, tuple))


def test_kernels_were_found():
    assert len(CALLED) > 20
