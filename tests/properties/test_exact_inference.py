"""Invariants of the exact engine over random structures and potentials, brute force being the judge."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing import enumerated, in_marginal_polytope, potentials, structures


def models(max_size=4):
    """Structures with log-potentials: mild, wide, or with exact zeros; shrinks to all zero potentials."""
    return potentials(over=structures(max_size=max_size), scales=(0.0, 1.0, 10.0, 200.0, 700.0, 1e5))


CANCELLING = Tables(
    Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")]),
    np.array([0.0, -700.0, 0.0, -700.0, -np.inf, -np.inf, -5.0, 0.0]),
)


@given(models())
@example(CANCELLING)
@settings(max_examples=150, deadline=None)
def test_equals_brute_force(theta):
    """Marginals and log Z are sums over all records; the most probable record has the largest probability."""
    truth = enumerated(theta)
    engine = JunctionTree().compile(theta.structure)
    beliefs = engine.infer(theta)
    np.testing.assert_allclose(beliefs.marginals.values, truth.marginals.values, rtol=1e-7, atol=1e-10)
    assert math.isclose(beliefs.log_partition, truth.log_partition, rel_tol=1e-12, abs_tol=1e-9)
    assert math.isclose(engine.maximize(theta)[1], truth.log_joint.max(), rel_tol=1e-12, abs_tol=1e-9)


@given(models(max_size=3))
@example(CANCELLING)
@settings(max_examples=60, deadline=None)
def test_marginals_lie_in_the_marginal_polytope(theta):
    """Some distribution over records has exactly these marginals: a linear program finds it."""
    marginals = JunctionTree().compile(theta.structure).infer(theta).marginals
    assert (marginals.values >= 0).all() and in_marginal_polytope(marginals)


@pytest.mark.landing
@given(models(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_commutes_with_relabelling(theta, random):
    """Renaming and reordering attributes, and permuting their codes, permutes the marginals and nothing else."""
    structure = theta.structure
    names = list(structure.domain.names)
    new_names = dict(zip(names, random.sample([name.upper() for name in names], len(names)), strict=True))
    codes = {attribute.name: random.sample(range(attribute.size), attribute.size) for attribute in structure.domain}
    sizes = [(new_names[name], structure.domain[name].size) for name in random.sample(names, len(names))]

    def renamed(clique):
        return tuple(new_names[name] for name in clique)

    def permuted(clique, table):
        return table[np.ix_(*(codes[name] for name in clique))]

    # A tied table has one set of axes for several attributes: its codes may only move together.
    for group in structure.groups:
        for clique in group[1:]:
            for one, other in zip(group[0], clique, strict=True):
                assume(codes[one] == codes[other])
    groups = random.sample(list(structure.groups), len(structure.groups))
    other = Structure(
        Domain.from_sizes(dict(sizes)),
        [renamed(group[0]) for group in groups if len(group) == 1],
        tied=[[renamed(clique) for clique in group] for group in groups if len(group) > 1],
    )
    number_of = {tuple(map(renamed, group)): number for number, group in enumerate(structure.groups)}
    origin = [number_of[group] for group in other.groups]

    def moved(tables):
        return [permuted(structure.groups[number][0], tables.group(number)) for number in origin]

    values = np.concatenate([table.reshape(-1) for table in moved(theta)])
    before = JunctionTree().compile(structure).infer(theta)
    after = JunctionTree().compile(other).infer(Tables(other, values))
    assert math.isclose(before.log_partition, after.log_partition, rel_tol=1e-12, abs_tol=1e-9)
    for found, expected in zip(after.marginals.arrays(), moved(before.marginals), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)


@given(models(), st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8))
@settings(max_examples=60, deadline=None)
def test_constants_shift_log_z_only(theta, constants):
    """Adding c_g to the table of group g adds m_g c_g to log Z and leaves the marginals alone."""
    engine = JunctionTree().compile(theta.structure)
    groups = len(theta.structure.groups)
    shift = np.resize(constants, groups)
    before = engine.infer(theta)
    after = engine.infer(theta.like(theta.values + theta.repeat(shift)))
    expected = before.log_partition + float(shift @ np.asarray(theta.structure.multiplicities))
    assert math.isclose(after.log_partition, expected, rel_tol=1e-11, abs_tol=1e-8)
    np.testing.assert_allclose(after.marginals.values, before.marginals.values, rtol=1e-6, atol=1e-9)


@given(models(), st.floats(0, 1e9))
@settings(max_examples=40, deadline=None)
def test_tables_sum_to_the_total(theta, total):
    """Each table sums to its number of cliques times the total; log Z does not depend on it."""
    engine = JunctionTree().compile(theta.structure)
    beliefs = engine.infer(theta, total=total)
    np.testing.assert_allclose(
        beliefs.marginals.sums(), total * np.asarray(theta.structure.multiplicities), rtol=1e-9, atol=1e-300
    )
    assert beliefs.log_partition == engine.infer(theta).log_partition
