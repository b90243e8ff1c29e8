"""What the report about holes says of the rows that are won and lost."""

from leafwise.experiments.missing import LINES, WAYS, report


def entry(name, holes, infer, knn, agrum):
    values = dict.fromkeys(WAYS, -9.0) | {"most common": -8.0, "KNNImputer": knn, "pyAgrum EM": agrum, "infer": infer}
    values |= {"complete": -6.0, "rows dropped": None}
    return {"set": name, "cases": 1000, "holes": holes} | {key: dict(values) for key in LINES}


def test_lost_rows_are_named_and_best_values_stand_out():
    rows = [entry("alarm", 0.1, -6.2, -6.5, None), entry("nltcs", 0.3, -7.0, -6.75, -6.9)]
    rows[1]["of_cases_plain"]["infer"] = -6.5
    found = report(rows)
    assert [row[2] for row in found.rows] == [*LINES.values()] * 2
    assert found.rows[0][3:] == ["–", "-9.000", "-8.000", "-9.000", "-6.500", "–", "**-6.200**", "-6.000", "90%"]
    assert found.rows[3][7] == "**-6.750**"
    assert found.rows[3][-1] == "50%"
    text = found.markdown()
    assert "in 1 of 2 rows: lost are nltcs at 30% to `KNNImputer` by 0.250." in text
    assert "By cases, plain leaves `infer` is best of all but `complete` in 2 of 2 rows." in text
    assert "At 10% holes it covers 90% to 90%" in text
