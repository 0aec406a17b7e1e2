"""The page: whole, safe, the same each time, and stamped where it must be."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core.errors import OptionError
from dpgm_core.report import make

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
    return make(model)


def test_the_page_is_whole_and_can_be_walked_by_headings(page, parsed):
    """Ten sections in their order, each with an anchor that the contents name; no level of heading is left out."""
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


def test_nothing_is_fetched_and_only_the_one_script_may_run(page, parsed):
    """The policy allows its script by hash; no element, style or address asks for anything."""
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


def test_equal_models_give_equal_pages(model, page):
    """No clock, no hash of objects, no order of sets is in it."""
    assert make(model) == page


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
    seen = parsed(make(flawed))
    assert [key for key, text in seen.texts.items() if words not in text] == []
    assert words not in make(model)


def test_a_seed_promises_nothing(codes, parsed, model):
    """No factor and no guess stand on the first screen of a simulation."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    seeded = dpgm.fit(
        codes, structure, dpgm.Budget.pure(1), neighbours="add-remove", randomness=dpgm.SeededRandomness(1)
    ).model
    first = parsed(make(seeded)).texts[""]
    assert "its noise protects nobody" in first
    assert "2.72" not in first
    assert "2.72" in parsed(make(model)).texts[""]


def test_a_model_of_no_release_has_no_guarantee(parsed):
    """Written down, it is stamped on every section, and answers are by definition."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    seen = parsed(make(dpgm.Model(structure, dpgm.Tables.zeros(structure))))
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
    page = make(dpgm.fit(codes, structure, dpgm.Budget.pure(1), terms=terms).model, file=None)
    seen = parsed(page)
    assert len(seen.all("script")) == len(seen.all("style")) == 1
    assert not {"img", "i", "b"} & {tag for tag, _ in seen.elements}
    assert [one for one in seen.all("a") if not str(one["href"]).startswith("#")] == []
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[4], HOSTILE[5], "\\u202egnp.exe"):
        assert text in seen.texts["attributes"], text
    assert "<i>one</i> \\u202eperson" in seen.texts["guarantee"]
    assert "\u202e" not in page
    assert len(page) < 200_000


def test_unmeasured_attributes_are_named_and_several_releases_listed(codes, model, parsed):
    """What no table holds is said; each release has its row, with what they cost together."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [
        dpgm.release(codes, structure, dpgm.Budget.pure(amount), neighbours="add-remove") for amount in ("1", "0.5")
    ]
    seen = parsed(make(dpgm.learn(parts).model))
    assert "Of 2 attributes no table tells anything, and the model leaves them out: town, job" in seen.texts["measured"]
    assert "2 times" in seen.texts["measured"]
    assert "2 releases. Together they cost ε = 1.5" in seen.texts["cost"]
    assert "1: 1 table" in seen.texts["cost"]
    assert "2: 1 table" in seen.texts["cost"]


def test_what_a_session_chose_is_told(codes, model, parsed):
    """Who chose, out of how many, and each step with its cost."""
    workload = dpgm.Workload.all(model.domain, order=2)
    chosen = dpgm.fit(codes, "auto", dpgm.Budget.pure(4), neighbours="add-remove", workload=workload).model
    text = parsed(make(chosen)).texts["chosen"]
    assert "The structure was chosen by the selector" in text
    assert "measure tables" in text
    assert "was chosen by the selector" not in parsed(make(model)).texts["chosen"]


def test_intervals_are_told_where_there_are_replicates(model, parsed):
    """Their level and ends; else how to get them."""
    assert "with 80 % intervals" in parsed(make(model, level=0.8)).texts["attributes"]
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    bare = dpgm.Model(structure, dpgm.Tables.zeros(structure))
    assert "call bootstrap(model)" in parsed(make(bare)).texts["attributes"]
    with pytest.raises(OptionError, match="level"):
        make(bare, level=1.5)


def test_the_file_is_named_with_its_digest(model, tmp_path, parsed):
    """So that a reader can tell whether the page is about the file at hand."""
    path = tmp_path / "my model.dpgm"
    model.save(path)
    seen = parsed(make(model, file=path))
    assert hashlib.sha256(path.read_bytes()).hexdigest() in seen.texts["origin"]
    assert "dpgm query 'my model.dpgm' sex age" in seen.texts["use"]


def test_many_attributes_stay_usable(parsed):
    """A box to find them, hidden without the script, pictures of the first sixty, and everything still named."""
    domain = dpgm.Domain.from_sizes({f"a{number}": 2 for number in range(70)})
    structure = dpgm.Structure(domain, [(name,) for name in domain.names])
    page = make(dpgm.Model(structure, dpgm.Tables.zeros(structure)))
    seen = parsed(page)
    assert len([one for one in seen.all("article") if one.get("data-find")]) == 70
    assert "The first 60 of 70 attributes have pictures" in seen.texts["attributes"]
    (box,) = seen.all("input")
    assert box["id"] == "find"
    assert [one["hidden"] for one in seen.all("div") if one.get("class") == "search"] == [None]
    assert len(page) < 1_000_000
