"""Truths that are made up: as the paper has them, the same for a seed, and refused where they are none."""

import numpy as np
import pytest

from dpgm.study import dirichlet_potentials, generated_truth, normal_potentials
from dpgm_core import Domain, OptionError, Structure

DOMAIN = Domain.from_sizes({f"x{number}": 3 for number in range(10)})


def test_structures_have_their_names():
    """A chain, a balanced tree, edges up to three places apart, and a connected graph by the seed."""
    cliques = {
        name: generated_truth(DOMAIN, name, seed=3).structure.cliques for name in ("chain", "tree", "third-order")
    }
    assert {name: len(found) for name, found in cliques.items()} == {"chain": 9, "tree": 9, "third-order": 24}
    assert ("x0", "x2") in cliques["tree"] and ("x0", "x3") in cliques["third-order"]
    first, same, other = (generated_truth(DOMAIN, "random", seed=seed).structure.cliques for seed in (3, 3, 4))
    assert first == same != other
    assert first == Structure.erdos_renyi(DOMAIN, 0.4, 3).cliques
    assert generated_truth(DOMAIN, {"cliques": [["x1", "x4"]]}).structure.cliques == (("x1", "x4"),)


def test_strength_goes_from_nothing_to_the_papers():
    """0 is uniform, 1 the paper's logarithms of Dirichlet(1) tables; potentials are in proportion."""
    structure, rng = Structure.chain(DOMAIN), np.random.default_rng
    paper = np.concatenate([np.log(one.dirichlet(np.ones(9))) for one in [rng(7)] for _ in range(9)])
    assert np.array_equal(dirichlet_potentials(structure, rng(7)).values, paper)
    half = generated_truth(DOMAIN, seed=7, strength=0.5).potentials.values
    assert np.allclose(half, paper / 2)
    assert generated_truth(DOMAIN, strength=0).kl(generated_truth(DOMAIN, seed=1, strength=0)) < 1e-12
    assert np.std(normal_potentials(Structure.complete(DOMAIN), rng(0), 0.3).values) == pytest.approx(0.3, rel=0.1)
    assert generated_truth(DOMAIN, potentials="normal", seed=7).private is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"structure": "chian"}, "did you mean 'chain'"),
        ({"potentials": "normals"}, "did you mean 'normal'"),
        ({"strength": -1}, "strength"),
        ({"strength": True}, "strength"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_what_is_no_truth_is_refused(wrong, said):
    """By name, with what would do."""
    with pytest.raises(OptionError, match=said):
        generated_truth(DOMAIN, **wrong)
