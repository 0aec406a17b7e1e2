"""The page: whole, safe, the same each time, and stamped where it must be."""

import itertools
import re

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.report import make_report

SECTIONS = ["guarantee", "cost", "measured", "chosen", "attributes", "pairs", "graph", "fit", "use", "origin"]
HOSTILE = (
    "<script>alert('owned')</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><a href="http://evil.example/">x</a>',
    "\u202egnp.exe",
    "\u05e9\u05dc\u05d5\u05dd",
    "&lt;b&gt;",
    "x" * 10_000,
)


@pytest.fixture(scope="module")
def page(model) -> str:
    return make_report(model)


def test_the_page_is_whole_and_can_be_walked_by_headings(page, parsed):
    """All sections in their order, each with an anchor that the contents name; no level of heading is left out."""
    seen = parsed(page)
    assert seen.sections == SECTIONS
    assert [one["href"] for one in seen.all("a")] == ["#main", *(f"#{key}" for key in SECTIONS)]
    levels = [int(tag[1]) for tag, _ in seen.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert seen.all("html")[0]["lang"] == "en"
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in seen.elements}
    names = [one["id"] for _, one in seen.elements if "id" in one]
    assert len(names) == len(set(names))


def test_equal_models_give_equal_pages(model, page):
    """No clock, no hash of objects, no order of sets is in it."""
    assert make_report(model) == page


def test_tables_and_pictures_say_what_they_are(page, parsed):
    """Captions, scopes, and titles of pictures; what scrolls takes the focus and has a name."""
    seen = parsed(page)
    assert len(seen.all("caption")) == len(seen.all("table")) > 5
    assert all(one.get("scope") in ("col", "row") for one in seen.all("th"))
    pictures = [one for one in seen.all("svg") if one.get("aria-hidden") != "true"]
    assert pictures
    assert all(one["role"] == "img" for one in pictures)
    scrolling = [one for one in seen.all("div") if "scroll" in str(one.get("class"))]
    assert scrolling
    assert all(one["tabindex"] == "0" and one["aria-label"] for one in scrolling)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"randomness": dpgm.SeededRandomness(1)}, "NOT PRIVATE (private = false)"),
        ({"mechanism": {"name": "laplace", "exact": False, "allow_unsafe": True}}, "UNSAFE: "),
    ],
)
def test_flaws_are_stamped_on_every_section(changed, words, codes, parsed, model):
    """In words, so that neither colour nor the first page is needed to see them; and on no page of a sound release."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    flawed = dpgm.fit(codes, structure, dpgm.Budget.pure(1), neighbours="add-remove", **changed).model
    seen = parsed(make_report(flawed))
    assert [key for key, text in seen.texts.items() if words not in text] == []
    assert words not in make_report(model)


def test_a_model_of_no_release_has_no_guarantee(parsed):
    """Written down, it is stamped on every section, and answers are by definition."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    seen = parsed(make_report(dpgm.Model(structure, dpgm.Tables.zeros(structure))))
    assert all("NO GUARANTEE" in text for text in seen.texts.values())
    assert "by definition" in seen.texts["attributes"]


def test_hostile_names_and_labels_are_texts(parsed):
    """Markup, scripts, ends of styles, reversed and endless labels: shown, cut where long, and never obeyed."""
    domain = dpgm.Domain.from_dict(
        {
            "<script>alert(1)</script>": {"labels": list(HOSTILE), "unknown": HOSTILE[0]},
            "</title><b>\u202e": {"labels": ["p" * 9000, "q"], "unknown": "q"},
        }
    )
    structure = dpgm.Structure(domain, [domain.names])
    codes = np.array([[number % len(HOSTILE), number % 2] for number in range(300)])
    terms = dpgm.Terms(neighbours="add-remove", unit="<i>one</i> \u202eperson")
    page = make_report(dpgm.fit(codes, structure, dpgm.Budget.pure(1), terms=terms).model, file=None)
    seen = parsed(page)
    assert len(seen.all("script")) == len(seen.all("style")) == 1
    assert not {"img", "i", "b"} & {tag for tag, _ in seen.elements}
    assert [one for one in seen.all("a") if not str(one["href"]).startswith("#")] == []
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[4], HOSTILE[5], "\\u202egnp.exe"):
        assert text in seen.texts["attributes"], text
    assert "<i>one</i> \\u202eperson" in seen.texts["guarantee"]
    assert "\u202e" not in page
    assert len(page) < 200_000
