"""A short run of the fuzzer. `make fuzz SECONDS=...` is the long one, and docs/reliability.md says what it found."""

import pytest
from fuzz.__main__ import Run
from fuzz.kinds import KINDS, one
from fuzz.network_files import check_file
from fuzz.worker import attempt

SEED = 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_answer_or_one_line(kind):
    outcomes = [one(kind, SEED, number) for number in range(max(2, -(-KINDS[kind][1] * 2 // 3)))]
    assert set(outcomes) <= {"accepted", "refused"}


def test_inputs_come_again():
    from random import Random

    from fuzz.mutation import mutated
    from fuzz.network_files import WORDS, corpus

    made = [mutated(corpus("bif")[0], Random("bif:1:7"), WORDS["bif"].split(), corpus("bif")) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0] not in corpus("bif")


def test_the_checks_can_fail(monkeypatch):
    """A reader that takes anything, or that has accidents, is found out."""
    from leafwise.formats import bif

    def accident(_data, _most_cells=None):
        raise KeyError("x")

    monkeypatch.setattr(bif, "loads", accident)
    with pytest.raises(KeyError):
        check_file("bif", b"network x { }")

    def long_story(_data, _most_cells=None):
        raise ValueError("one line\nand another")

    monkeypatch.setattr(bif, "loads", long_story)
    with pytest.raises(AssertionError, match="the refusal has 2 lines"):
        check_file("bif", b"network x { }")


def test_an_input_over_the_limit_counts_once(capsys):
    outcome, failure = attempt("objects", SEED, 1, room=0)
    assert (outcome, failure[-3:]) == ("", "MiB")
    assert attempt("objects", SEED, 1, room=2**50)[1] == ""
    run = Run(SEED, ["objects"])
    for text in (failure, "it takes 1 of 1 s and 2,048 MiB: too long or too much"):  # as both processes notice it
        run._fail("objects", 1, text)
    assert run.outcomes() == {"objects": {"inputs": 1, "accepted": 0, "refused": 0, "failed": 1}}
    assert capsys.readouterr().out.count("--replay") == 1
