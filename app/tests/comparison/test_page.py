"""The page of a comparison: whole, harmless, and stamped where its subjects are; and its words."""

from html.parser import HTMLParser

import numpy as np
import pytest

from app.tests.made import CODES, domain_of, model_of, release_of
from dpgm.comparison import compare, make_page
from dpgm.comparison import page as page_module
from dpgm.comparison.page import apart, shared_lines, short_names, side_by_side
from dpgm_core import Model, Structure, Tables

SCRIPT = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_all_kinds_stand_on_the_page(folder):
    """A section of facts, one of each pair, one of guarantees; a red stamp on each, as all noise had a seed."""
    made = make_page(compare(*(folder / name for name in ("m.dpgm", "n.dpgm", "s.parquet", "m.release.dpgm"))))
    assert made.startswith("<!doctype html>\n<!-- dpgm comparison -->")
    for words in ("n.dpgm against m.dpgm", "s.parquet against m.dpgm", "s.parquet (by the stamp of its file)", "KL("):
        assert words in made
    tags = Tags(made).found
    sections = sum(tag == "section" for tag, _ in tags)
    assert sections == 5 and sum(attrs.get("class") == "stamp" for _, attrs in tags) == sections
    assert not any({"src", "onload"} & set(attrs) for _, attrs in tags)


def test_names_and_labels_are_texts(tmp_path):
    structure = Structure(domain_of(**{SCRIPT: [SCRIPT, "b"], "a": ["x", "y"]}), [(SCRIPT, "a")])
    models = [Model(structure, Tables(structure, np.array([number, 0.0, 0.0, 0.0]))) for number in (0, 1)]
    made = make_page(compare(*models, names=[f"1{SCRIPT}", f"2{SCRIPT}"]))
    assert sum(tag == "script" for tag, _ in Tags(made).found) == 1  # the page's own
    assert "alert(&#x27;x&#x27;)" in made


@pytest.mark.parametrize(("folded", "words"), [(500, "The next 3 rows"), (2, "The next 2 rows; 1 are closer")])
def test_long_tables_are_folded(monkeypatch, folded, words):
    """The worst rows are seen at once, more on demand, and how many are left out."""
    monkeypatch.setattr(page_module, "_MAX_ROWS_SHOWN", 2)
    monkeypatch.setattr(page_module, "_MAX_MORE_ROWS", folded)
    domain = domain_of(**{name: ["0", "1"] for name in "abcde"})
    structure = Structure(domain, [(name,) for name in domain.names])
    models = [Model(structure, Tables(structure, np.random.default_rng(n).normal(size=10))) for n in (1, 2)]
    assert words in make_page(compare(*models))


def test_files_are_called_by_their_names_where_these_differ(folder, people, tmp_path):
    model_of(people, seed=3).save(tmp_path / "m.dpgm")
    assert list(short_names(compare(folder / "m.dpgm", folder / "n.dpgm")).values()) == ["m.dpgm", "n.dpgm"]
    both = [folder / "m.dpgm", tmp_path / "m.dpgm"]
    assert list(short_names(compare(*both)).values()) == [str(path) for path in both]


def test_facts_are_rows_and_lines_say_what_is_shared(people):
    """Unknown facts are left out; reservations and unmeasured attributes are there where there are any."""
    rows = {row[0]: row[1:] for row in side_by_side(compare(release_of(people, CODES, ("sex",)), model_of(people)))}
    assert rows["is a"] == ["release", "model"] and rows["cost"] == ["epsilon = 2", "-"]
    assert rows["private"] == ["with reservations"] * 2
    assert rows["not measured"] == ["age, job", "-"] and "learner" not in rows
    assert rows["records"][0].startswith(("2,9", "3,0"))
    pair = compare(model_of(people, ("sex", "age")), model_of(people, ("age", "job"))).pairs[0]
    lines = shared_lines(pair, "A", "B")
    assert lines[0] == "attributes: 3 compared" and "cliques: 0 in both, 1 in A alone, 1 in B alone" in lines
    assert "only in A: sex x age" in lines and "only in B: age x job" in lines
    assert lines[-1].startswith("KL(first || other) = ") and apart(pair) is None
