"""All kinds of inputs by name, and how often each comes in a round."""

import warnings
from collections.abc import Callable
from random import Random

from fuzz import answers, commands, network_files, pages, table_files

KINDS: dict[str, tuple[Callable[[Random], str], int]] = {
    **{name: (network_files.reader(name), 40) for name in network_files.FORMATS},
    "packed": (network_files.check_packed, 10),
    "arcs": (network_files.check_arcs, 5),
    "text": (table_files.check_text, 30),
    "sound text": (table_files.check_sound_text, 5),
    "parquet": (table_files.check_parquet, 8),
    "objects": (table_files.check_objects, 15),
    "commands": (commands.check_command, 5),
    "questions": (answers.check_questions, 5),
    "learning": (answers.check_learning, 1),
    "requests": (pages.check_request, 15),
}


def one(kind: str, seed: int, number: int) -> str:
    """Make an input and check it: "accepted" or "refused"; any exception, and any warning, is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return KINDS[kind][0](Random(f"{kind}:{seed}:{number}"))
