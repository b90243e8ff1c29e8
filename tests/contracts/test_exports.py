"""Whatever public functions return has a public name: found by walking the annotations of all that is public."""

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import leafwise


def classes_of_all_modules() -> dict[str, type]:
    """By name: annotations in quotes may name what is imported for them alone."""
    names = [module.name for module in pkgutil.walk_packages(leafwise.__path__, "leafwise.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith(("__main__", "gpu_kernels"))]
    return {name: value for module in modules for name, value in vars(module).items() if is_own(value)}


def is_own(value: Any) -> bool:
    return isinstance(value, type) and value.__module__.startswith("leafwise")


# What parts of the library ask of each other: frames of their columns, searches of settings, priors and constraints.
INNER = {"frame_columns", "begin", "costs", "resolve", "session", "cases", "no_cases", "flat"}
CLASSES = classes_of_all_modules()


def classes_in(annotation: Any) -> Iterator[type]:
    """The classes of this library that an annotation is made of."""
    if isinstance(annotation, str):
        yield from (CLASSES[name] for name in re.findall(r"\w+", annotation) if name in CLASSES)
    elif is_own(annotation):
        yield annotation
    else:
        for argument in typing.get_args(annotation):
            yield from classes_in(argument)


def returned(thing: Any) -> Iterator[tuple[str, type]]:
    """What a public function, or the public parts of a class, give."""
    if inspect.isfunction(thing):
        yield from ((thing.__qualname__, each) for each in classes_in(thing.__annotations__.get("return")))
        return
    for name, part in inspect.getmembers(thing):
        if name in INNER or (name.startswith("_") and name not in ("__next__", "__getitem__", "__iter__")):
            continue
        function = part.fget if isinstance(part, property) else getattr(part, "func", part)
        if inspect.isfunction(function := inspect.unwrap(function)) or inspect.ismethod(function):
            for each in classes_in(function.__annotations__.get("return")):
                yield f"{thing.__name__}.{name}", each
    for name, annotation in getattr(thing, "__annotations__", {}).items():
        if name not in INNER and not name.startswith("_"):
            yield from ((f"{thing.__name__}.{name}", each) for each in classes_in(annotation))


def test_everything_that_is_returned_is_exported():
    public = [getattr(leafwise, name) for name in leafwise.__all__]
    lacking = {
        f"{where} gives {each.__module__}.{each.__name__}"
        for thing in public
        for where, each in returned(thing)
        if each.__name__ not in leafwise.__all__
    }
    assert not lacking, "\n".join(sorted(lacking))


@pytest.mark.parametrize(
    "search",
    [
        leafwise.LeafSearch(),
        leafwise.LeafSearchRestarts(rounds=2),
        leafwise.TableArcSearch(),
        leafwise.GraphArcSearch(),
    ],
    ids=lambda search: type(search).__name__,
)
def test_so_are_the_steps_of_searches(search):
    table = leafwise.read(np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 10))
    steps = list(leafwise.start_search(table, search=search))
    assert steps
    assert {type(step).__name__ for step in steps} == {"Step"}
    assert {type(step.operator).__name__ for step in steps} <= set(leafwise.__all__)
