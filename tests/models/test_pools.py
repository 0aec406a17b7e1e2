"""Pools of codes: their table is the model's summed, and estimates over them are those over codes."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Attribute, Budget, Domain, Model, Structure, Tables
from dpgm_core.models.analysis import Pools, estimate, pool_codes, pooled_marginal
from dpgm_core.models.functionals import Moments
from dpgm_core.releases.views import block_sums
from tests.fixtures import seeded
from tests.models.enumerated import merge_columns, merged_session

AGE = Attribute.of_bins("age", [0, 10, 20, 30, 40, 50, 60, 100], unknown="missing")
DOMAIN = Domain([AGE, Attribute.of_size("b", 3), Attribute.of_size("c", 2)])
#: Rare codes are merged: the last bin with the missing values, and two bins that are no neighbours.
MERGES = {"age": (0, 1, 2, 1, 3, 4, 5, 5)}
RNG = np.random.default_rng(3)
SHARES = np.array([0.2, 0.1, 0.1, 0.1, 0.2, 0.2, 0.06, 0.04])
AGES = RNG.choice(8, 3000, p=SHARES)
CODES = np.stack([AGES, (AGES + RNG.integers(0, 2, 3000)) % 3, (AGES > 3) ^ (RNG.random(3000) < 0.2)], axis=1).astype(
    int
)


def released(structure: Structure, codes: np.ndarray, seed: int) -> dpgm.NoisyTables:
    return dpgm.release(codes, structure, Budget.pure(1), **seeded(seed))


def merged_model() -> Model:
    coarse = DOMAIN.coarsened(MERGES)
    pairs = Structure(coarse, [("age", "b"), ("b", "c"), ("age", "c")])
    steps = [
        released(Structure(DOMAIN, [("age",), ("b",), ("c",)]), CODES, 1),
        released(pairs, merge_columns(CODES, DOMAIN, MERGES), 2),
    ]
    chain = Structure(coarse, [("age", "b"), ("b", "c")])
    potentials = Tables(chain, np.random.default_rng(5).normal(size=chain.cells))
    return Model(chain, potentials, releases=[merged_session(DOMAIN, MERGES, steps)])


def plain_model() -> Model:
    pairs = Structure(DOMAIN, [("age", "b"), ("b", "c"), ("age", "c")])
    chain = Structure(DOMAIN, [("age", "b"), ("b", "c")])
    potentials = Tables(chain, np.random.default_rng(5).normal(size=chain.cells))
    return Model(chain, potentials, releases=[released(pairs, CODES, 2)])


def pools_of(model: Model, shares: np.ndarray, count: int) -> Pools:
    merged = model._merged_codes
    return Pools.of(AGE, shares, None if merged is None else merged.of["age"].codes, count)


@pytest.mark.parametrize("model", [plain_model(), merged_model()], ids=["plain", "merged"])
def test_a_table_over_pools_is_the_models_summed(model):
    """Also under a condition, across cliques, and where a session merged codes of two pools."""
    pools = {"age": pools_of(model, model.marginal("age"), 3).codes}
    for names, given in ((("c", "age"), {}), (("age", "c", "b"), {}), (("age", "c"), {"b": "1"})):
        summed = block_sums(np.asarray(model.marginal(names, given)), names.index("age"), pools["age"])
        np.testing.assert_allclose(pooled_marginal(model, names, pools, given), summed, atol=1e-12)


@pytest.mark.parametrize("model", [plain_model(), merged_model()], ids=["plain", "merged"])
def test_estimates_over_pools_are_those_over_codes(model):
    """Of a share among the first pool and among missing values; the noise may be overstated, and never understated."""
    pools = pools_of(model, model.marginal("age"), 3)
    shape, size = DOMAIN.shape(("age", "c")), int(pools.codes.max()) + 1
    wanted = {code: np.arange(size) == code for code in (pools.codes[0], pools.codes[7])}

    def share(rows: int, at: np.ndarray) -> Moments:
        cells = np.stack([at[:, None] & (np.arange(2) == 1), np.repeat(at[:, None], 2, axis=1)])
        return Moments(
            attributes=("age", "c"), names=("c",), features=cells.reshape(2, rows * 2).astype(float),
            function=lambda m: ([m[0] / m[1]], [[1 / m[1], -m[0] / m[1] ** 2]]),
        )  # fmt: skip

    for at in wanted.values():
        fine = estimate(model, share(shape[0], at[pools.codes]))
        pooled = estimate(model, share(size, at), pools={"age": pools.codes})
        # Tables that are summed have other precisions, by which their margins are averaged.
        assert abs(pooled.estimate - fine.estimate) < 0.5 * np.sqrt(fine.noise[0, 0])
        assert pooled.standing == fine.standing
        assert pooled.noise[0, 0] >= 0.999 * fine.noise[0, 0] and pooled.noise[0, 0] < 5 * fine.noise[0, 0]


def test_merged_codes_and_missing_values_stay_apart_from_other_pools():
    """A block of a bin and missing values makes two pools; one of two bins lies in one."""
    blocks = np.array(MERGES["age"])
    codes = pool_codes(AGE, SHARES, blocks, 3)
    assert codes[1] == codes[3] and np.sum(codes == codes[6]) == 1 and np.sum(codes == codes[7]) == 1
    assert len(set(codes.tolist())) == 5
    assert pool_codes(AGE, SHARES, None, 3).tolist() == [0, 0, 0, 1, 1, 2, 2, 3]


def test_a_pool_counts_with_the_mean_of_its_numbers():
    """By the model's shares; where it takes a pool as empty, each bin counts alike."""
    model = plain_model()
    pools = pools_of(model, SHARES, 2)
    numbers = np.array([4.5, 14.5, 24.5, 34.5, 44.5, 54.5, 80.0])
    first = pools.codes[:7] == 0
    assert float(pools.attribute.labels[0]) == pytest.approx(
        (SHARES[:7] * numbers)[first].sum() / SHARES[:7][first].sum()
    )
    assert pools.attribute.labels[2:] == ("missing",) and pools.attribute.null == 2 and pools.bins == 2
    assert 0.5 < pools.variance_share < 1
    empty = pools_of(model, np.where(pools.codes == 0, 0.0, SHARES), 2)
    assert np.isfinite([float(label) for label in empty.attribute.labels[: empty.bins]]).all()
