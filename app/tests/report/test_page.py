"""The page: whole, safe, the same each time, stamped where it must be; only its own script may run."""

import base64
import hashlib
import itertools
import re

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform
from dpgm.report import make_report


def test_nothing_is_fetched_and_only_the_one_script_may_run(model, parsed):
    """The policy allows its script by hash; no element, style or address asks for anything."""
    page = make_report(model)
    seen = parsed(page)
    (script,) = seen.inside["script"]
    (policy,) = (one["content"] for one in seen.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in seen.elements}
    assert not any({"src", "srcset", "action", "onclick"} & one.keys() for _, one in seen.elements)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert not re.search(r"url\(|@import", page)


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


def test_the_page_is_whole_and_can_be_walked_by_headings(page, parsed, model):
    """Sections are in order with anchors, no heading level is left out, and an equal model gives an equal page."""
    seen = parsed(page)
    assert seen.sections == SECTIONS
    assert [one["href"] for one in seen.all("a")] == ["#main", *(f"#{key}" for key in SECTIONS)]
    levels = [int(tag[1]) for tag, _ in seen.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert seen.all("html")[0]["lang"] == "en"
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in seen.elements}
    names = [one["id"] for _, one in seen.elements if "id" in one]
    assert len(names) == len(set(names))
    assert make_report(model) == page


def test_tables_and_pictures_say_what_they_are(page, parsed):
    """Captions, scopes, and titles of pictures; what scrolls takes the focus and has a name."""
    seen = parsed(page)
    assert len(seen.all("caption")) == len(seen.all("table")) > 5
    assert all(one.get("scope") in ("col", "row") for one in seen.all("th"))
    pictures = [one for one in seen.all("svg") if one.get("aria-hidden") != "true"]
    assert pictures and all(one["role"] == "img" for one in pictures)
    scrolling = [one for one in seen.all("div") if "scroll" in str(one.get("class"))]
    assert scrolling and all(one["tabindex"] == "0" and one["aria-label"] for one in scrolling)


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
    seen = parsed(make_report(uniform({"a": 2, "b": 3})))
    assert all("NO GUARANTEE" in text for text in seen.texts.values())
    assert "by definition" in seen.texts["attributes"]


def test_hostile_names_and_labels_are_texts(parsed):
    domain = domain_of(**{"<script>alert(1)</script>": list(HOSTILE), "</title><b>\u202e": ["q", "p" * 9000]})
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
