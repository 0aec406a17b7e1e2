"""What came of a study: numbers by hand, CSV, text, and a picture that is well-formed."""

import csv
import io
import json
import statistics
from xml.etree import ElementTree

import pytest
from attrs import evolve

from dpgm.study.picture import Point, draw_result
from dpgm.study.result import Estimate
from dpgm_core import Budget


def test_means_errors_and_differences(done):
    """Of the lines, by the standard library; the first method at each budget has no differences."""
    for at in (0, 2):
        ours = {row.method: row for row in done.rows[at : at + 2]}
        values = [[float(line["kl"]) for line in done.lines[2 * at + k : 2 * at + k + 2]] for k in (0, 2)]
        for row, kl in zip(ours.values(), values, strict=True):
            assert row.means["kl"].mean == pytest.approx(statistics.mean(kl))
            assert row.means["kl"].error == pytest.approx(statistics.stdev(kl) / 2**0.5)
        apart = [one - other for one, other in zip(values[1], values[0], strict=True)]
        assert ours["naive-mle"].differences == {}
        found = ours["naive-mle(l2=0.1)"].differences["kl"]
        assert (found.mean, found.count) == (pytest.approx(statistics.mean(apart)), 2)
        assert found.error == pytest.approx(statistics.stdev(apart) / 2**0.5)


def test_more_budget_is_less_error(done):
    errors = {(row.method, str(row.budget)): row.means["kl"].mean for row in done.rows}
    assert errors["naive-mle", "epsilon = 2"] < errors["naive-mle", "epsilon = 0.5"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "-"),
        ([0.12345], "0.123"),
        ([1.0, 1.0], "1"),
        ([0.1, 0.2], "0.150 ± 0.050"),
        ([10.0, 5000.0], "2505 ± 2495"),
    ],
)
def test_two_digits_of_an_error(values, text):
    """And as many decimals of the mean."""
    assert str(Estimate.of(values)) == text


def test_csv_and_json_say_what_rows_say(done):
    """Column by column, read by Python's own readers."""
    read = list(csv.DictReader(io.StringIO(done.csv())))
    told = json.loads(json.dumps(done.to_dict()))["rows"]
    for row, line, plain in zip(done.rows, read, told, strict=True):
        assert (line["method"], line["records"], line["budget"]) == (row.method, "200", str(row.budget))
        assert float(line["kl"]) == pytest.approx(row.means["kl"].mean, rel=1e-5)
        assert plain["kl"]["standard_error"] == row.means["kl"].error
        assert (line["kl_difference"] == "") == (row.differences == {}) == (plain["kl_difference"] is None)


def test_text_says_what_it_is_of(done):
    """What is the same everywhere stands once, and that no person is in it."""
    text = done.text()
    assert text.startswith("study: 2 runs of each, mean ± standard error; 200 records\n")
    assert "differences are from naive-mle, run by run" in text
    assert "nobody's data were read, and nothing was charged" in text
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == 6 and "records" not in table[0]


SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_one_element_with_words(done):
    """Well-formed, with a title, a description, a role and room to shrink; a mark for each mean, named."""
    root = ElementTree.fromstring(evolve(done, name="<b>&'\"").svg())
    assert root.tag == f"{SVG}svg" and root.get("role") == "img" and root.get("viewBox")
    assert root.find(f"{SVG}title").text.startswith("<b>&'\"") and "naive-mle" in root.find(f"{SVG}desc").text
    assert len([title for title in root.iter(f"{SVG}title") if "epsilon" in title.text or ": " in title.text]) == 9
    assert {text.text for text in root.iter(f"{SVG}text")} >= {"epsilon", "0.5", "2", "naive-mle(l2=0.1)"}
    assert "script" not in done.svg() and "NaN" not in done.svg() and "nan" not in done.svg().lower()


def test_pictures_of_little():
    """One point, none that can be shown, budgets of two kinds: still pictures."""
    one = Point(line="x", panel="p", at=1.0, tick="epsilon = 1", mean=0.5, error=float("nan"))
    other = evolve(one, tick="rho = 1", mean=float("inf"))
    for points in ([one], [other], [one, other], [evolve(one, mean=float("nan"))]):
        root = ElementTree.fromstring(draw_result("t", points, axis="budget", evenly=True))
        assert len(list(root.iter(f"{SVG}circle"))) == 1 + sum(point is one for point in points)
    assert str(Budget.pure(1)) == "epsilon = 1"  # as ticks have it
