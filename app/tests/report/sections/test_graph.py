"""The graph in words and pictures."""

from dpgm.report import make_report


def test_the_junction_tree_is_folded_away(model, parsed):
    """One picture is to be seen, the other on demand; sizes in words."""
    page = make_report(model)
    part = page[page.index('id="graph"') : page.index('id="fit"')]
    assert part.count("<svg") == 2
    assert part.index("<svg") < part.index("<details>") < part.rindex("<svg")
    assert "2 cliques over 4 attributes" in parsed(page).texts["graph"]
