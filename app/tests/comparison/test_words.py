"""A comparison in words."""

from app.tests.comparison.made import CODES, model_of, release_of
from dpgm.comparison import compare
from dpgm.comparison.page import apart, shared_lines, short_names, side_by_side


def test_files_are_called_by_their_names_where_these_differ(folder, people, tmp_path):
    """Else by their whole paths."""
    model_of(people, seed=3).save(tmp_path / "m.dpgm")
    assert list(short_names(compare(folder / "m.dpgm", folder / "n.dpgm")).values()) == ["m.dpgm", "n.dpgm"]
    both = [folder / "m.dpgm", tmp_path / "m.dpgm"]
    assert list(short_names(compare(*both)).values()) == [str(path) for path in both]


def test_facts_are_rows(people):
    """What nobody knows is left out; reservations and what was not measured are there where there are any."""
    rows = {row[0]: row[1:] for row in side_by_side(compare(release_of(people, CODES, ("sex",)), model_of(people)))}
    assert rows["is a"] == ["release", "model"] and rows["cost"] == ["epsilon = 2", "-"]
    assert rows["private"] == ["with reservations"] * 2
    assert rows["not measured"] == ["age, job", "-"] and "learner" not in rows
    assert rows["records"][0].startswith(("2,9", "3,0"))


def test_lines_say_what_is_shared(people):
    """Attributes, cliques and KL; and nothing of scores where there are none."""
    pair = compare(model_of(people, ("sex", "age")), model_of(people, ("age", "job"))).pairs[0]
    lines = shared_lines(pair, "A", "B")
    assert lines[0] == "attributes: 3 compared" and "cliques: 0 in both, 1 in A alone, 1 in B alone" in lines
    assert "only in A: sex x age" in lines and "only in B: age x job" in lines
    assert lines[-1].startswith("KL(first || other) = ") and apart(pair) is None
