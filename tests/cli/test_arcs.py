"""Files of arcs, orders and tiers."""

import pytest

from leafwise.examples import alarm
from leafwise.formats.arcs import read_arcs, read_order, read_tiers


@pytest.fixture
def file(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "file.txt"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_three_forms_comments_and_blank_lines(file):
    text = '\ufeff# arcs\na b\n\n  a,c  # why not\nx ray -> wet grass\r\n"d, e",f\na b\n'
    assert read_arcs(file(text)) == (("a", "b"), ("a", "c"), ("x ray", "wet grass"), ("d, e", "f"))


def test_a_hash_inside_a_name_is_no_comment(file):
    assert read_arcs(file("a#1 b#2\n")) == (("a#1", "b#2"),)


def test_a_saved_network_is_a_list_of_arcs(model):
    assert ("rain", "wet grass") in {arc if arc[1] == "wet grass" else arc[::-1] for arc in read_arcs(model)}
    with pytest.raises(ValueError, match=r"model.json: there is no variable"):
        read_arcs(model, names=("other",))


@pytest.mark.parametrize("name", ["alarm.json", "alarm.json.gz", "alarm", "alarm.bif", "alarm.xmod.gz", "alarm.xdsl"])
def test_so_is_one_in_any_format(name, tmp_path):
    alarm().save(tmp_path / name)
    assert {*read_arcs(tmp_path / name)} == {*alarm().named_arcs}


def test_orders_and_tiers(file):
    assert read_order(file("a\n# then\nx ray, left\nb\n")) == ("a", "x ray, left", "b")
    assert read_tiers(file("a, x ray\n\nb # last\n")) == (("a", "x ray"), ("b",))
    assert read_arcs(file("")) == ()


@pytest.mark.parametrize("line", ["a", "a b c", "a,b,c", "a ->", "-> b", "a -> b -> c", "a,", "a a"])
def test_what_is_no_arc_is_named_with_its_line(file, line):
    with pytest.raises(ValueError, match=r"file\.txt, line 2: "):
        read_arcs(file(f"a b\n{line}\n"))


def test_unknown_names_get_close_matches(file):
    with pytest.raises(ValueError, match=r"line 1: there is no variable 'smoking' among the 2 of the data: .*'smoke'"):
        read_arcs(file("smoking lung"), names=("smoke", "lung"))
    with pytest.raises(ValueError, match=r"line 2: there is no variable 'q'"):
        read_order(file("a\nq\n"), names=("a",))


def test_a_name_stands_in_one_tier(file):
    with pytest.raises(ValueError, match=r"line 2: 'a' was already named in .*line 1"):
        read_tiers(file("a, b\nc, a\n"))
    with pytest.raises(ValueError, match="a name is empty"):
        read_tiers(file("a,,b\n"))


def test_bytes_that_are_no_text(file):
    with pytest.raises(ValueError, match=r"file\.txt: byte 0 is not UTF-8"):
        read_arcs(file("ä b", encoding="latin-1"))
