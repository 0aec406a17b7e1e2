"""What a notebook shows of models and marginals: labels beside their numbers, without any inference."""

import copy
import pickle
import re

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Domain, Model, Structure, Tables
from dpgm_core.models.notebook import Marginal, number_table


def cells(html: str) -> list[list[str]]:
    """The rows of a table's body."""
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)[1:]]


def test_rows_are_those_of_the_arrow_table():
    """Every number stands beside the labels that `table` gives it; an interval of an entropy has no labels."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("a", "b", "c")])
    theta = np.log(np.arange(1.0, 13.0).reshape(2, 3, 2))
    model = Model(structure, Tables.from_arrays(structure, {("a", "b", "c"): theta}))
    names = ("c", "a", "b")
    labels = tuple(model.domain[name].labels for name in names)
    shown = cells(number_table(names, labels, {"probability": model.marginal(names)}, "measured"))
    rows = model.table(names).to_pylist()
    assert shown == [[*(row[name] for name in names), f"{row['probability']:.4g}", "measured"] for row in rows]
    assert cells(number_table((), (), {"low": np.array(0.25), "high": np.array(0.5)}, None)) == [["0.25", "0.5"]]


@pytest.fixture(scope="module")
def marginal():
    """p(sex, smoker) of a model by definition."""
    domain = dpgm.Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}, "smoker": {"size": 2, "unknown": 0}})
    structure = dpgm.Structure(domain, [("sex", "smoker")])
    table = np.log(np.array([[0.125, 0.25], [0.5, 0.125]]))
    model = dpgm.Model(structure, dpgm.Tables.from_arrays(structure, {("sex", "smoker"): table}))
    return model.marginal(("sex", "smoker"))


def test_a_marginal_is_an_array_in_all_but_what_a_notebook_shows_of_it(marginal):
    """It prints and is pickled as an array; results and parts are plain arrays without labels."""
    plain = np.asarray(marginal)
    assert type(plain) is np.ndarray and (repr(marginal), str(marginal)) == (repr(plain), str(plain))
    for found in (2 * marginal, marginal + marginal, np.log(marginal), marginal.sum(axis=0), np.stack([marginal])):
        assert type(found) is np.ndarray
    for number in (marginal.sum(), marginal.max(), np.vdot(marginal, marginal)):
        assert isinstance(number, float)
    for part in (marginal[0], marginal.T, marginal.reshape(-1), marginal.copy(), copy.deepcopy(marginal)):
        assert getattr(part, "_repr_html_", lambda: None)() is None
        assert repr(part) == repr(np.asarray(part))
    assert b"dpgm" not in pickle.dumps(marginal) and np.array_equal(pickle.loads(pickle.dumps(marginal)), marginal)


def test_a_notebook_shows_labels_standing_and_stamps(marginal):
    """Each label beside its number; a model of no release says that nothing is known."""
    shown = marginal._repr_html_()
    assert '<td>M</td><td>0</td><td style="text-align:right">0.5</td><td>by definition</td>' in shown
    assert "nothing is known about the privacy" in shown
    assert "UNSAFE" in Marginal.of(np.ones(1), ("a",), (("x",),), "measured", ["UNSAFE: textbook"])._repr_html_()


def test_a_model_too_large_to_ask_can_be_looked_at():
    """A clique of 10^9 parameters' worth of triangulation: no engine is made, and the text stays small."""
    names = [f"x{number}" for number in range(60)]
    domain = dpgm.Domain.from_sizes(dict.fromkeys(names, 3))
    structure = dpgm.Structure.complete(domain, 2)
    model = dpgm.Model(structure, dpgm.Tables.zeros(structure))
    shown = model._repr_html_()
    assert "... 40 more" in shown and len(shown) < 10_000
    assert "1,770 with 15,930 cells" in shown and "by definition" not in shown


def test_what_was_not_measured_is_told():
    """Attribute by attribute, with the maker, the cost and the stamp of a seed."""
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2})
    structure = dpgm.Structure(domain, [("a",)])
    codes = np.array([[0, 1], [1, 0]] * 50)
    seeded = dpgm.SeededRandomness(1)
    done = dpgm.fit(codes, structure, dpgm.Budget.pure(1), neighbours="add-remove", randomness=seeded)
    shown = done.model.with_replicates(np.tile(done.model.potentials.values, (7, 1)))._repr_html_()
    for words in ("NOT PRIVATE", "epsilon = 1", "eb-map", '<td style="text-align:left">7<'):
        assert words in shown
    assert [row.endswith("<td>yes</td>") for row in shown.split("</tr>") if "<td>0, 1</td>" in row] == [True, False]
