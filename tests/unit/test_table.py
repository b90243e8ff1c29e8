import dataclasses

import numpy as np
import pytest

from leafwise.data.table import MISSING, Table, Variable, code_type


def table_of(*names: str) -> Table:
    variables = tuple(Variable(name, ("no", "yes")) for name in names)
    return Table(variables, np.zeros((len(names), 4), dtype=np.uint8))


def test_a_table_knows_its_size_and_names() -> None:
    table = table_of("rain", "sun", "wind")
    assert (table.n_cases, table.n_variables, table.names) == (4, 3, ("rain", "sun", "wind"))
    assert [table.index(name) for name in table.names] == [0, 1, 2]


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(ValueError, match=r"no variable is called 'rian' among the 3 here \('rain', \.\.\.\)"):
        table_of("rain", "sun", "wind").index("rian")


def test_an_unknown_name_with_nothing_close_is_answered_with_the_first() -> None:
    with pytest.raises(ValueError, match=r"'a1', 'a2', 'a3', 'a4', 'a5', \.\.\."):
        table_of("a1", "a2", "a3", "a4", "a5", "a6").index("zzz")


def test_variables_are_values() -> None:
    one, same = Variable("x", ("0", "1")), Variable("x", ("0", "1"))
    assert one == same
    assert hash(one) == hash(same)
    assert one != Variable("x", ("1", "0"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "y"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "", "labels": ("a",)}, "empty name"),
        ({"name": "x\udce9", "labels": ("a",)}, r"'x\\udce9' has the text 'x\\udce9', part of which is no character"),
        ({"name": "é", "labels": ("ü", "\ud800")}, r"has the text '\\ud800', part of which is no character"),
        ({"name": "x", "labels": ()}, "has 0 states, not 1 to 65535"),
        ({"name": "x", "labels": tuple(map(str, range(65_536)))}, "has 65536 states"),
        ({"name": "x", "labels": ("a", "b", "a")}, "two states labelled 'a'"),
        ({"name": "x", "labels": ("a", "b"), "missing": True}, r"must be labelled '\(missing\)', not 'b'"),
        ({"name": "x", "labels": ("a", "b"), "cuts": (1.0, 2.0)}, "2 cuts and 2 states"),
        ({"name": "x", "labels": ("a", "b", MISSING), "cuts": (1.0, 2.0), "missing": True}, "2 cuts and 3 states"),
        ({"name": "x", "labels": ("a", "b", "c"), "cuts": (2.0, 2.0)}, "rise strictly"),
        ({"name": "x", "labels": ("a", "b"), "cuts": (float("nan"),)}, "finite"),
    ],
)
def test_a_variable_that_contradicts_itself_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Variable(**arguments)  # type: ignore[arg-type]


def test_the_largest_variable_is_accepted() -> None:
    assert Variable("x", tuple(map(str, range(65_535)))).n_states == 65_535


@pytest.mark.parametrize(("n_states", "wanted"), [(2, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_codes_are_as_narrow_as_the_states_allow(n_states: int, wanted: type) -> None:
    variable = Variable("x", tuple(map(str, range(n_states))))
    assert code_type((Variable("y", ("a",)), variable)) is wanted
    codes = np.array([[n_states - 1]])
    assert Table((variable,), codes.astype(wanted)).codes[0, 0] == n_states - 1
    other = np.uint16 if wanted is np.uint8 else np.int64
    with pytest.raises(ValueError, match=f"where these states need {np.dtype(wanted)}"):
        Table((variable,), codes.astype(other))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros(3, np.uint8), r"shape \(3,\), not \(2, cases\)"),
        (np.zeros((3, 2), np.uint8), r"shape \(3, 2\)"),
        (np.zeros((3, 2), np.uint8).T, "C-contiguous"),
        (np.array([[0, 1], [0, 2]], np.uint8), "variable 'b' has code 2, above its last state 1"),
    ],
)
def test_codes_that_do_not_fit_are_refused(codes: np.ndarray, message: str) -> None:
    variables = (Variable("a", ("0", "1")), Variable("b", ("0", "1")))
    with pytest.raises(ValueError, match=message):
        Table(variables, codes)


def test_two_variables_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two variables are called 'rain'"):
        table_of("rain", "sun", "rain")


def test_a_table_may_have_no_cases() -> None:
    assert Table((Variable("a", ("0",)),), np.zeros((1, 0), np.uint8)).n_cases == 0
