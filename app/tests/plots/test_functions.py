"""The four calls: numbers of the model, intervals and standing, what stands under a picture, and refusals."""

import itertools
import math

import numpy as np
import pytest

from app.tests.made import uniform
from app.tests.plots.shown import hostile, released, written
from dpgm import plots
from dpgm.plots.functions import intervals_of, notes_of
from dpgm_core import Attribute, Domain, Structure, Tables
from dpgm_core.errors import DomainError, OptionError, StructureError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.models import dependence as numbers
from dpgm_core.models.dependence import measure_dependence
from dpgm_core.models.model import Model
from dpgm_core.models.queries import BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED
from tests.models.test_merged import model_of as merged_model


@pytest.mark.parametrize("given", [None, {"ill": "yes"}])
def test_bars_are_the_marginal_with_its_intervals(given):
    """In the order of the codes, which for bins is that of their edges."""
    model = released()
    shown = plots.marginal(model, "age", given, level=0.8)
    found = model.intervals("age", given, level=0.8)
    assert shown.labels == ("[0, 18)", "[18, 40)", "[40, 65)", "[65, 90]", "missing")
    for got, wanted in ((shown.shares, found.estimate), (shown.low, found.low), (shown.high, found.high)):
        assert got == pytest.approx(wanted.tolist())
    assert shown.standing == ("by structure" if given else "measured")
    assert shown.title == ("age given ill = yes" if given else "age")
    assert "80 %" in " ".join(text for text, _ in shown.notes)


def test_a_seeded_release_warns_and_a_private_one_does_not():
    """The warning is a note of its own, in every picture."""
    bars, cells = (lambda m: plots.marginal(m, "sex")), (lambda m: plots.pair(m, "sex", "age"))
    for draw in (bars, cells, plots.dependence, plots.graph):
        warnings = [text for text, warns in draw(released()).notes if warns]
        assert len(warnings) == 1 and "NOT PRIVATE" in warnings[0]
        assert not any(warns for _, warns in draw(released(replicates=0, seeded=False)).notes)


def test_intervals_that_nothing_tells_are_not_made_up():
    """A released table has them by formula; without a release none is drawn, and the notes say so."""
    model = released(replicates=0)
    assert plots.marginal(model, "age").level is not None
    model = Model(model.structure, model.potentials)
    shown = plots.marginal(model, "age")
    assert shown.low == shown.high == () and shown.level is None
    assert "No intervals: the model has no replicates." in [text for text, _ in shown.notes]
    assert all("interval" not in cell.said for cell in plots.pair(model, "age", "sex").cells)


def test_of_many_labels_some_share_a_bar():
    """The most probable labels stay and the others share a bar with its interval; neighbouring bins share one."""
    structure = Structure(Domain.from_sizes({"a": 50}), [("a",)])
    model = written(structure).with_replicates(np.random.default_rng(1).normal(size=(4, 50)))
    shown = plots.marginal(model, "a", most=10)
    shares = model.marginal("a")
    kept = sorted(np.argsort(-shares)[:9].tolist())
    assert shown.labels == (*map(str, kept), "41 others")
    assert shown.shares == pytest.approx([*shares[kept], 1 - shares[kept].sum()])
    rest = np.setdiff1d(np.arange(50), kept)
    wanted = model.interval_of(lambda m: m.marginal("a")[rest].sum(), within=(0.0, 1.0))
    assert (shown.low[-1], shown.high[-1]) == pytest.approx((float(wanted.low), float(wanted.high)))
    age = Attribute.of_bins("age", range(0, 101, 1), unknown="missing")
    model = written(Structure(Domain([age]), [("age",)]))
    shown = plots.marginal(model, "age", most=11)
    assert shown.labels[0] == "[0, 1) ... [9, 10)" and shown.labels[-2:] == ("[90, 91) ... [99, 100]", "missing")
    shares = model.marginal("age")
    assert shown.shares == pytest.approx([*shares[:100].reshape(10, 10).sum(axis=1), shares[100]])


def test_a_pair_is_its_table():
    """Each cell has its share, and says it with its interval; large tables are joined by labels."""
    model = released()
    shown, found = plots.pair(model, "sex", "age"), model.intervals(("sex", "age"))
    for cell in shown.cells:
        assert cell.value == pytest.approx(float(found.estimate[cell.row, cell.column]))
    corner = shown.cells[-1]
    ends = f"{100 * found.low[1, 4]:.1f} % to {100 * found.high[1, 4]:.1f} %"
    assert corner.said.startswith("sex M, age missing: ") and f"90 % interval {ends}" in corner.said
    assert shown.top == pytest.approx(found.estimate.max())
    large = plots.pair(written(Structure(Domain.from_sizes({"a": 70, "b": 3}), [("a", "b")])), "b", "a")
    assert len(large.columns) == 30 and large.columns[-1] == "41 others" and len(large.cells) == 90
    assert sum(cell.value for cell in large.cells) == pytest.approx(1.0)


def test_dependence_is_below_the_diagonal_and_outlines_what_was_measured():
    """V or information, whichever is asked for; each of K (K - 1) / 2 cells says both, with intervals and standing."""
    model = released()
    found = measure_dependence(model)
    for measure, values in (("cramers-v", found.cramers_v), ("mutual-information", found.mutual_information)):
        shown = plots.dependence(model, measure=measure)
        assert shown.rows == ("age", "sex", "ill", "place")  # what was not measured is not looked at
        cells = {(shown.rows[one.column], shown.rows[one.row]): one for one in shown.cells}
        assert {pair: one.value for pair, one in cells.items()} == dict(zip(found.pairs, values, strict=True))
    assert [pair for pair, one in cells.items() if one.outlined] == [("age", "sex"), ("sex", "ill")]
    assert shown.standing == "measured: 2, by structure: 4"
    said = cells["age", "sex"].said
    assert f"({found.low[0]:.3g} to {found.high[0]:.3g}); measured" in said and f"{found.cramers_v[0]:.2f}" in said
    shown = plots.dependence(released())
    places = [(one.row, one.column) for one in shown.cells]
    assert sorted(places) == sorted((two, one) for one, two in itertools.combinations(range(4), 2))


def test_of_many_attributes_the_most_dependent_are_shown():
    """Those with the strongest pair, in the order of the domain."""
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcdef", 2)), [("a", "b"), ("c",), ("d", "f"), ("e",)])
    law = {("a", "b"): 3.0 * np.eye(2), ("d", "f"): 2.0 * np.eye(2), ("c",): np.zeros(2), ("e",): np.zeros(2)}
    shown = plots.dependence(Model(structure, Tables.from_arrays(structure, law)), most=4)
    assert shown.rows == ("a", "b", "d", "f") and "4 most dependent of 6" in shown.title


def test_what_was_not_computed_is_shown_as_that(monkeypatch):
    """NaN has no colour and says why; the graph of a model too wide for any answer is drawn all the same."""
    domain = Domain.from_sizes(dict.fromkeys("abcd", 3))
    model = written(Structure(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
    monkeypatch.setattr(numbers, "_MAX_CELLS", 10)
    shown = plots.dependence(model)
    unknown = [one for one in shown.cells if math.isnan(one.value)]
    assert len(unknown) == 2 and all("not computed" in one.said for one in unknown)
    assert shown.colour(math.nan) == "none" and "NaN" not in shown.svg() and "nan" not in shown.svg()
    drawn = plots.graph(model.using(JunctionTree(max_bytes=64)))
    assert len(drawn.lines) == 4 and {one.weight for one in drawn.lines} == {0.0}


def test_the_graph_joins_what_a_clique_holds():
    """Lines as wide as V; dashed are pairs that no table holds, and attributes that nobody measured."""
    model = released()
    shown = plots.graph(model)
    found = measure_dependence(model)
    strength = dict(zip(found.pairs, found.cramers_v, strict=True))
    names = [one.lines[0] for one in shown.nodes]
    joined = {(names[one.first], names[one.second]): one for one in shown.lines}
    weights = {pair: one.weight for pair, one in joined.items()}
    assert weights == pytest.approx({pair: strength[pair] for pair in (("age", "sex"), ("sex", "ill"))})
    assert not any(one.dashed for one in shown.lines)
    assert [name for name, one in zip(names, shown.nodes, strict=True) if one.dashed] == ["unseen"]
    tied = Structure(model.domain, [], tied=[[("sex", "ill"), ("ill", "sex")][:1], [("sex",), ("ill",)]])
    assert len(plots.graph(written(tied)).lines) == 1


def test_the_junction_tree_joins_clusters_by_what_they_share():
    """A node per cluster, with its size; of large ones the first names."""
    domain = Domain.from_sizes(dict.fromkeys("abcdefg", 2))
    shown = plots.graph(written(Structure(domain, [tuple("abcdef"), ("f", "g")])), junction_tree=True)
    assert {one.lines[-1] for one in shown.nodes} >= {"and 2 more"}
    assert [one.said for one in shown.lines] == ["shared: f"]
    assert any("64 cells" in one.said for one in shown.nodes)


def test_merged_codes_and_models_of_no_release():
    """Labels are those before the merge, and lines are of the merged ones; such a model answers by definition."""
    model = merged_model(1)
    assert plots.marginal(model, "a").labels == tuple("01234")
    assert len(plots.pair(model, "a", "c").cells) == 20
    shown = plots.marginal(written(Structure(Domain.from_sizes({"a": 1}), [("a",)])), "a")
    assert shown.standing == "by definition" and shown.shares == (1.0,)
    for draw in (plots.dependence, plots.graph):
        assert draw(written(Structure(Domain.from_sizes({"a": 1}), [("a",)]))).svg()
    notes = " ".join(text for text, _ in plots.graph(merged_model(1)).notes)
    assert "were merged; lines tell nothing of how they differ" in notes
    assert "merged" not in " ".join(text for text, _ in plots.graph(released()).notes)


def test_unmeasured_attributes_are_refused_until_they_are_taken_as_uniform():
    with pytest.raises(StructureError, match="no release behind the model measured 'unseen'"):
        plots.marginal(released(), "unseen")
    shown = plots.marginal(released().using(unmeasured="uniform"), "unseen")
    assert shown.standing == "not measured" and "Not measured" in shown.notes[0][0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: plots.marginal(m, "nobody"), StructureError, "no attribute 'nobody'"),
        (lambda m: plots.marginal(m, ["age", "sex"]), OptionError, "one attribute"),
        (lambda m: plots.marginal(m, "age", {"sex": "X"}), DomainError, "no label 'X'"),
        (lambda m: plots.marginal(m, "age", level=90), OptionError, "between 0 and 1"),
        (lambda m: plots.marginal(m, "age", most=1), OptionError, "at least 2"),
        (lambda m: plots.pair(m, "age", "age"), StructureError, "twice"),
        (lambda m: plots.dependence(m, measure="correlation"), OptionError, "'cramers-v' or 'mutual-information'"),
        (lambda m: plots.dependence(m, most=True), OptionError, "at least 2"),
    ],
)
def test_bad_questions_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(released())


@pytest.mark.parametrize("measure", ["cramers-v", "mutual-information"])
def test_a_model_without_dependence_is_pale_and_says_so(measure):
    """Rounding is no dependence: the scale has a floor. What depends is on its own scale, and nothing is said."""
    structure = Structure(Domain.from_sizes({"a": 3, "b": 4, "c": 2}), [("a", "b"), ("c",)])

    def shown_of(table):
        law = {("a", "b"): table, ("c",): np.zeros(2)}
        return plots.dependence(Model(structure, Tables.from_arrays(structure, law)), measure=measure)

    shown = shown_of(np.log(np.outer([0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4])))
    assert shown.top == {"cramers-v": 0.1, "mutual-information": 0.005}[measure]
    assert {shown.colour(one.value) for one in shown.cells} == {shown.colour(0.0)}
    assert "e-1" not in shown.svg()
    assert any(text.startswith("No dependence found") for text, _ in shown.notes)
    shown = shown_of(3.0 * np.eye(3, 4))
    assert shown.top == max(one.value for one in shown.cells) > 0.1
    assert not any(text.startswith("No dependence") for text, _ in shown.notes)


def test_a_picture_says_in_how_many_replicates_its_answer_is_undefined():
    refits = np.array([[0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.2], [0.0, 0.0, -np.inf, -np.inf]])
    model = uniform({"fin": 2, "x": 2}).with_replicates(refits)
    said = [text for text, _ in plots.marginal(model, "x", {"fin": "1"}).notes]
    assert any(text.startswith("In 1 of 3 replicates") for text in said)


@pytest.mark.parametrize("standing", [BY_DEFINITION, BY_STRUCTURE, MEASURED, NOT_MEASURED])
def test_every_standing_is_a_sentence(standing):
    """It starts with the word that `Model.standing` uses; warnings come last."""
    notes = notes_of(released(), standing, "", "More.")
    assert notes[0][0].lower().startswith(standing) and notes[0][0].endswith(".")
    assert [warns for _, warns in notes] == [False, False, True] and notes[1] == ("More.", False)


def test_notes_warn_of_no_release_and_say_the_intervals():
    """Without a release nothing is known of privacy; notes state level and number of refits, or that there are none."""
    assert [text for text, warns in notes_of(hostile(), BY_DEFINITION) if warns] == [
        "This model carries no release, so nothing is known about the privacy of what it was made from."
    ]
    assert intervals_of(released(), 0.9) == "Intervals: 90 %, from 6 refits."
    assert "no replicates" in intervals_of(released(), None)
