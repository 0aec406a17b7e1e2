"""The picture of a study: one element, well-formed, with words; also of very little."""

from xml.etree import ElementTree

from attrs import evolve

from dpgm.study.picture import Point, draw_result
from dpgm_core import Budget

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
