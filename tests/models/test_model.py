"""Models: against one another, against what is no model, and what they say of their privacy."""

import itertools
import math

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure, Tables
from dpgm_core.errors import DpgmError, InferenceError, TooLarge
from dpgm_core.models.model import Model
from tests.models.enumerated import DOMAIN, NAMES, STRUCTURES, joint, model_of, summed


@pytest.mark.parametrize(("one", "other"), list(itertools.product(STRUCTURES, ["cycle", "tied"])))
def test_kl_agrees_with_its_sum(one, other):
    """Between models of different structures, tied ones included; 0 with itself."""
    p, q = model_of(one, seed=1), model_of(other, seed=2)
    table = joint(p)
    assert p.kl(q) == pytest.approx(float((table * np.log(table / joint(q))).sum()))
    assert p.kl(p) == pytest.approx(0, abs=1e-12)
    assert dpgm.kl_divergence(p, q) == p.kl(q)


def test_kl_is_infinite_where_the_other_rules_out():
    """One way infinite, the other way finite; models over other attributes are refused."""
    structure = Structure(DOMAIN, [("a",), ("b",)])
    free = Model(structure, Tables.zeros(structure))
    values = np.zeros(structure.cells)
    values[0] = -np.inf
    never = Model(structure, Tables(structure, values))
    assert free.kl(never) == math.inf
    assert never.kl(free) == pytest.approx(math.log(2))
    other = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with pytest.raises(DpgmError, match="same domain"):
        free.kl(Model(other, Tables.zeros(other)))


def test_potentials_without_a_distribution_are_refused():
    """NaN and +inf at once; all -inf and impossible evidence when asked."""
    structure = Structure(DOMAIN, [("a",)])
    for wrong in (np.nan, np.inf):
        with pytest.raises(InferenceError):
            Model(structure, Tables(structure, np.array([0, wrong])))
    with pytest.raises(InferenceError):
        Model(structure, Tables(structure, np.full(2, -np.inf))).marginal("a")
    with pytest.raises(InferenceError, match="within 1e\\+09 nats"):  # marginals would sum to nothing, unsaid
        Model(structure, Tables(structure, np.array([0, -1e18])))
    model = Model(structure, Tables(structure, np.array([0, -np.inf])))
    for impossible in ({"a": 1}, dict.fromkeys(NAMES, 1)):
        with pytest.raises(InferenceError, match="probability 0"):
            model.map_assignment(impossible)
    with pytest.raises(InferenceError, match="probability 0"):
        model.marginal("b", given={"a": 1})
    assert model.map_assignment(dict.fromkeys(NAMES, 0)) == dict.fromkeys(NAMES, "0")


def test_what_does_not_fit_is_never_approximated():
    """TooLarge, before and after loading, unless another engine is named."""
    domain = Domain.from_sizes({f"x{i}": 10 for i in range(20)})
    structure = Structure.complete(domain)
    model = Model(structure, Tables.zeros(structure))
    for call in (lambda: model.marginal("x0"), model.entropy, model.map_assignment, lambda: model.sample(1)):
        with pytest.raises(TooLarge):
            call()
    assert np.allclose(model.using("loopy-bp").marginal("x0"), 0.1)
    chain = Structure.chain(domain)
    for inference in ("junction-tree", "loopy-bp"):
        with pytest.raises(TooLarge):
            Model(chain, Tables.zeros(chain), inference=inference).marginal(domain.names)


def test_total_variation_by_hand():
    """Against a model, tables (tied ones by their mean), and records."""
    p, q = model_of("chain", 1), model_of("tied", 2)
    distances = dpgm.total_variation(p, q)
    assert set(distances) == set(p.structure.cliques)
    for clique, value in distances.items():
        assert value == pytest.approx(0.5 * np.abs(summed(joint(p), clique) - summed(joint(q), clique)).sum())
    tables = Tables(q.structure, np.arange(1.0, q.structure.cells + 1))
    group = q.structure.groups[-1]
    mean = np.mean([summed(joint(p), clique) for clique in group], axis=0)
    wanted = 0.5 * np.abs(mean - tables.group(2) / tables.group(2).sum()).sum()
    for clique in (group[0], tuple(reversed(group[0]))):
        assert dpgm.total_variation(p, tables, [clique])[clique] == pytest.approx(wanted)
    codes = np.zeros((10, 4), int)
    exact = dpgm.total_variation(p, codes, [("a",)], allow_non_private=True)
    assert exact["a",] == pytest.approx(1 - p.marginal("a")[0])


def test_the_guarantee_follows_the_release():
    """A model without a release claims nothing; one with it says what the release says."""
    model = model_of("chain")
    assert model.private is None
    assert "nothing is known about the privacy" in model.guarantee()
    done = dpgm.fit(np.zeros((9, 4), int), STRUCTURES["chain"], Budget.pure(1), neighbours="replace-one")
    assert done.model.private
    assert done.model.guarantee() == done.release.guarantee()
    assert done.model.provenance["learner"]["name"] == "eb-map"
