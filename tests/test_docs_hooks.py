"""What docs/hooks makes of docstrings for the reference."""

import inspect
import re
from pathlib import Path

import pytest

import dpgm_core
from tests.pages import module_at

pytest.importorskip("griffe")
pytestmark = pytest.mark.landing  # README's command for the tests installs no griffe
HOOKS = Path(__file__).resolve().parents[1] / "docs" / "hooks"


tabled = module_at(HOOKS / "parameters.py").tabled


def test_sentences_about_parameters_become_a_numpy_section_after_the_prose():
    """Names in a row share their meaning, prose before and after stays, and an example is not read."""
    text = "Do it.\n\nSlowly. size: in\nbytes; low, high: codes (low: first).\n\nRaises.\n\n>>> size: 1"
    assert tabled(text, ["low", "high", "size", "other"], "Parameters") == (
        "Do it.\n\nSlowly.\n\nRaises.\n\nParameters\n----------\nlow\n    codes (low: first)."
        "\nhigh\n    codes (low: first).\nsize\n    in bytes\n\nExamples\n--------\n>>> size: 1"
    )
    sections = "Returns\n-------\nint\n    size: no parameter"
    assert tabled(f"Do it. size: in bytes.\n\n{sections}", ["size"], "Parameters") == (
        f"Do it.\n\nParameters\n----------\nsize\n    in bytes.\n\n{sections}"
    )


def test_a_docstring_that_explains_none_of_the_names_stays_as_it_is():
    """Other words before a colon, lists and code are no parameters; a section that is there is not made again."""
    text = "Note: all of it.\n\n* size: in a list\n\n```\nsize: 1\n```"
    assert tabled(text, ["size"], "Parameters") == text
    assert tabled("Do it. size: 1", [], "Parameters") == "Do it. size: 1"
    made = "Do it. size: 1\n\nParameters\n----------\nsize\n    in bytes."
    assert tabled(made, ["size"], "Parameters") == made


@pytest.mark.parametrize("verb", ["fit", "learn", "plan"])
def test_the_verbs_explain_all_their_parameters(verb):
    """Each one is a row of the table in the reference; `release` and `select` point at those of `fit`."""
    function = getattr(dpgm_core, verb)
    names = list(inspect.signature(function).parameters)
    section = inspect.getdoc(function).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    rows = [name for row in re.findall(r"^(\w.*)$", section, re.MULTILINE) for name in row.split(", ")]
    assert sorted(rows) == sorted(names) and len(rows) > 6


@pytest.mark.parametrize("path", sorted((HOOKS.parent / "pictures").glob("*.svg")), ids=lambda path: path.stem)
def test_pictures_are_read_aloud_scale_and_take_the_colours_of_the_page(path):
    """Each has a title, a description and a view box, and states a colour as a fallback only."""
    text = path.read_text(encoding="utf-8")
    assert 'role="img"' in text and " viewBox=" in text and "max-width:100%" in text
    assert re.search(r"<title[^>]*>[^<]+</title>\s*<desc[^>]*>[^<]+</desc>", text)
    assert not re.search(r"#[0-9a-f]{3,6}\b", re.sub(r"var\([^)]*\)", "", text))


def test_the_glossary_is_in_order_and_says_each_word_once():
    """Alphabetical in each part; whoever looks for a word finds one meaning."""
    parts = (HOOKS.parent / "glossary.md").read_text(encoding="utf-8").split("\n## ")[1:]
    words = [re.findall(r"^\| (?!word |\|)(\w[^|]*) \|", part, re.MULTILINE) for part in parts[:-1]]
    assert all(part == sorted(part, key=str.lower) and len(part) > 10 for part in words)
    assert len({word for part in words for word in part}) == sum(map(len, words))


def test_options_stay_whole_and_messages_wrap():
    """In commands and running text; of what is printed the sentences, and no table. The text itself is unchanged."""
    block = '<div class="language-{} highlight"><span>f</span><pre><span></span><code>{}\n</code></pre></div>'
    page = (
        "<p>Say <code>dpgm fit --seed 1 --a-word-too-long-for-a-telephone</code> - or not.</p>"
        + block.format("sh", 'dpgm<span class="w"> </span>--epsilon 1e-6')
        + block.format("text", "spent:   a sentence\nage         0: 1%\n  to do: b &lt; c")
        + block.format("toml", "a-b = 1  # c")
    )
    made = module_at(HOOKS / "lines.py").on_page_content(page, page=None)
    strip = lambda text: re.sub("<[^>]*>", "", text)  # noqa: E731
    assert strip(made) == strip(page)
    assert re.findall('"whole">(.*?)<', made) == ["--seed", "--epsilon", "1e-6"]
    assert re.findall('"message">(.*?)<', made) == ["spent:   a sentence", "  to do: b &lt; c"]
