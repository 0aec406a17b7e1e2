"""Models of merged codes: every kind of answer against the table of all records over the codes as they were."""

import itertools
import math

import numpy as np
import pytest
from attrs import evolve
from scipy import stats

import dpgm_core as dpgm
from dpgm.interop.uai import read_uai, write_uai
from dpgm_core import (
    Budget,
    Domain,
    InferenceError,
    Model,
    SeededRandomness,
    Structure,
    Tables,
    TooLarge,
    bootstrap,
    learn,
)
from dpgm_core.models import merged_codes as merged
from dpgm_core.models.model_file import load_model
from dpgm_core.pipeline.evaluation import log_likelihood, total_variation
from tests.fixtures import seeded
from tests.models.enumerated import merge_columns, merged_session, random_model
from tests.models.enumerated import summed as summed_of

DOMAIN = Domain.from_sizes({"a": 5, "b": 3, "c": 4})
MERGES = {"a": (2, 0, 1, 0, 0), "c": (0, 1, 1, 0)}
COARSE = DOMAIN.coarsened(MERGES)
NAMES = DOMAIN.names
PAIRS = [("a", "b"), ("b", "c")]
RNG = np.random.default_rng(0)
CODES = np.stack([np.minimum(RNG.geometric(0.4, 600) - 1, size - 1) for size in (5, 3, 4)], axis=1)


def session(holdout: bool = False) -> dpgm.NoisyTables:
    """One-way tables, then pairs over merged codes, as a session makes them."""
    coarse = merge_columns(CODES, DOMAIN, MERGES)
    steps = [
        dpgm.release(codes, structure, Budget.pure("1/3"), **seeded(seed))
        for seed, codes, structure in (
            (1, CODES, Structure(DOMAIN, [(name,) for name in NAMES])),
            (2, coarse, Structure(COARSE, PAIRS)),
            (3, coarse, Structure(COARSE, [("a", "c")])),
        )
    ]
    steps[2] = evolve(steps[2], holdout=True)
    return merged_session(DOMAIN, MERGES, steps if holdout else steps[:2])


RELEASE = session()


def model_of(seed: int, cliques=PAIRS, zeros: float = 0.0, weight0: bool = False, **more) -> Model:
    """Random potentials over merged codes; weight0: a code of a block has probability 0, as in replicates."""
    release = RELEASE
    with pytest.MonkeyPatch.context() as patch:
        if weight0:
            release = _with_zeros(release)
            patch.setattr(merged, "_MIN_NOISE_SHARE", 0.0)
        return random_model(Structure(COARSE, cliques), seed, zeros, 1.5, releases=[release], **more)


def _with_zeros(release):
    """Counts without noise and far apart, so that shrinkage leaves them."""
    one = release.steps[0]
    counts = Tables(one.structure, np.array([5, 10**7, 3, -(10**6), 10**7, 4, 4, 4, 10**7, -(10**6), 10**7, 10**7]))
    return evolve(release, steps=(evolve(one, tables=counts), release.steps[1]))


def joint(model: Model) -> np.ndarray:
    """p(x) over all codes, by definition: the distribution of blocks times the weights."""
    shape = DOMAIN.shape(NAMES)
    table = np.zeros(shape)
    of = model._merged_codes.of
    for record in np.ndindex(*shape):
        codes = dict(zip(NAMES, record, strict=True))
        block = {name: int(of[name].codes[code]) if name in of else code for name, code in codes.items()}
        log = sum(model.potentials[clique][tuple(block[name] for name in clique)] for clique in model.structure.cliques)
        table[record] = math.exp(log) * math.prod(of[name].weights[record[NAMES.index(name)]] for name in of)
    return table / table.sum()


def margin(table: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    return summed_of(table, names, NAMES)


CASES = [(0, False, PAIRS), (0.2, False, PAIRS), (0, True, PAIRS), (0, True, [("a", "c", "b")]), (0, False, [("b",)])]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("zeros", "weight0", "cliques"), CASES)
def test_answers_agree_with_the_table_of_all_records(zeros, weight0, cliques):
    """Margins, conditions on any code, conditionals, the most probable record, entropy."""
    model = model_of(1, cliques, zeros, weight0)
    table = joint(model)
    assert model.domain == DOMAIN and model.structure.domain == COARSE
    assert (model._merged_codes.of["a"].weights == 0).any() == weight0
    queries = [names for size in (1, 2, 3) for names in itertools.permutations(NAMES, size)]
    for names, found in model.marginals_of(queries).items():
        np.testing.assert_allclose(found, margin(table, names), atol=1e-12)
    for name, other in itertools.permutations(NAMES, 2):
        both = margin(table, (name, other))
        for code in range(DOMAIN[other].size):
            if both[:, code].sum() > 0:
                found = model.marginal(name, given={other: code})
                np.testing.assert_allclose(found, both[:, code] / both[:, code].sum(), atol=1e-12)
            else:
                with pytest.raises(InferenceError, match="probability 0"):
                    model.marginal(name, given={other: code})
                with pytest.raises(InferenceError, match="probability 0"):
                    model.map_assignment(given={other: code})
                continue
            best = model.map_assignment(given={other: code})
            record = tuple(DOMAIN[one].labels.index(best[one]) for one in NAMES)
            rest = np.moveaxis(table, NAMES.index(other), 0)[code]
            assert record[NAMES.index(other)] == code and table[record] == pytest.approx(rest.max(), rel=1e-9)
        mass = both.sum(axis=0, keepdims=True)
        expected = np.divide(both, mass, out=np.zeros_like(both), where=mass > 0)
        np.testing.assert_allclose(model.conditional(name, on=other), expected, atol=1e-12)
    best = model.map_assignment()
    assert table[tuple(DOMAIN[one].labels.index(best[one]) for one in NAMES)] == pytest.approx(table.max(), rel=1e-9)
    assert model.map_assignment(best) == best
    assert model.entropy() == pytest.approx(stats.entropy(table.reshape(-1)), abs=1e-10)
    rows = model.table(["c", "a"]).to_pylist()
    found = {(row["c"], row["a"]): row["probability"] for row in rows}
    for c, a in np.ndindex(4, 5):
        assert found[DOMAIN["c"].labels[c], DOMAIN["a"].labels[a]] == pytest.approx(margin(table, ("c", "a"))[c, a])


def test_divergences_are_exact_between_merged_and_unmerged_models():
    """Other potentials, other weights, other merges, none at all; infinite where codes are ruled out."""
    one, two, three = model_of(1), model_of(2, [("a", "b", "c")]), model_of(3, weight0=True)
    fine = Structure(DOMAIN, [("a", "c"), ("b",)])
    plain = Model(fine, Tables(fine, np.random.default_rng(4).normal(size=fine.cells)))
    tables = {id(model): joint(model) for model in (one, two, three)}
    tables[id(plain)] = plain.marginal(NAMES)
    for p, q in itertools.permutations((one, two, three, plain), 2):
        expected = stats.entropy(tables[id(p)].reshape(-1), tables[id(q)].reshape(-1))
        assert p.kl(q) == pytest.approx(expected, abs=1e-9)
    assert one.kl(one) == pytest.approx(0, abs=1e-12) and one.kl(three) == math.inf
    with pytest.raises(dpgm.StructureError, match="same domain"):
        one.kl(one.coarse)


def records_of(model: Model, method: str) -> np.ndarray:
    """How often each record is among 20,000; impossible ones never are."""
    drawn = model.sample(20_000, method=method, randomness=SeededRandomness(1))
    counts = np.zeros(DOMAIN.shape(NAMES))
    np.add.at(counts, tuple(drawn[name].to_numpy(zero_copy_only=False).astype(int) for name in NAMES), 1)
    assert (counts[joint(model) == 0] == 0).all()
    return counts


def test_samples_have_the_distribution_of_all_codes():
    """Chi-squared of 20,000 records against the table of all 60; false alarm 1e-6. Codes of weight 0 never come.

    Rounded ones: one-way tables of all codes within 3 of N p, whatever was merged; pairs within a tenth of the distance
    of independent rows; two merged attributes are split independently."""
    model = model_of(3, weight0=True)
    table = joint(model)
    counts = {method: records_of(model, method) for method in ("rounded", "independent")}
    expected = 20_000 * table[table > 0]
    statistic = ((counts["independent"][table > 0] - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.ppf(1 - 1e-6, len(expected) - 1)
    for name in NAMES:
        assert np.abs(margin(counts["rounded"] - 20_000 * table, (name,))).max() < 3
    errors = {
        method: [np.abs(margin(seen - 20_000 * table, names)).sum() for names in (("a", "b"), ("a", "c"))]
        for method, seen in counts.items()
    }
    assert errors["rounded"][0] < 0.1 * errors["independent"][0] and errors["rounded"][1] < errors["independent"][1]


def test_records_are_scored_by_their_own_codes(tmp_path):
    """Log-likelihood against the table of all records; total variation over either domain."""
    model = model_of(1)
    table = joint(model)
    expected = np.log(table[tuple(CODES.T)]).sum()
    assert log_likelihood(model, CODES, allow_non_private=True) == pytest.approx(expected, rel=1e-10)
    ours = total_variation(model, CODES, allow_non_private=True)["a", "b"]
    share = np.zeros((5, 3))
    np.add.at(share, (CODES[:, 0], CODES[:, 1]), 1 / len(CODES))
    assert ours == pytest.approx(np.abs(share - margin(table, ("a", "b"))).sum() / 2)
    over_blocks = total_variation(model.coarse, RELEASE.tables)["a", "b"]
    assert total_variation(model, RELEASE.tables)["a", "b"] == pytest.approx(over_blocks)
    whole = model.expanded()
    write_uai(tmp_path / "m.uai", whole.structure, whole)
    read = read_uai(tmp_path / "m.uai")
    found = Model(read.structure, read.potentials)
    assert found.domain == DOMAIN
    np.testing.assert_allclose(found.marginal(NAMES), table, atol=1e-12)


def test_what_an_answer_rests_on():
    """Alone by its one-way table; together with others as far as no merged code is split by assumption."""
    model = model_of(1)
    assert [model.standing(name) for name in NAMES] == ["measured"] * 3
    assert model.standing(["a", "b"]) == "by structure" and model.coarse.standing(["a", "b"]) == "measured"
    assert model.standing("b", given={"a": 2}) == "measured"  # a block of its own
    assert model.standing("b", given={"a": 1}) == "by structure"
    assert model.standing(["a"], given={"b": 0}) == "by structure"
    assert model.unmeasured == ()


def test_files_and_other_engines_give_the_same_answers(tmp_path, monkeypatch):
    """A file and another engine give the same weights; a model too large over all codes is refused with its size."""
    model = model_of(1)
    model.save(tmp_path / "m.dpgm")
    read = load_model(tmp_path / "m.dpgm")
    np.testing.assert_array_equal(read.marginal(NAMES), model.marginal(NAMES))
    assert set(read.to_document()) == set(model.to_document()) and read.domain == DOMAIN
    model = model_of(1)
    found = model.using("loopy-bp")
    np.testing.assert_allclose(found.marginal(["a", "b"]), model.marginal(["a", "b"]), atol=1e-6)
    with pytest.raises(InferenceError, match="cannot maximise"):
        found.map_assignment()
    monkeypatch.setattr(merged, "_MAX_BYTES", 100)
    with pytest.raises(TooLarge, match="2 merged attributes takes 216 B, against 100 B"):
        model_of(1).expanded()


def test_learned_and_bootstrapped_in_the_domain_of_the_session():
    """A learner need not know; error bars of merged codes hold what the noise of one-way tables does to them."""
    release = session(holdout=True)
    model = learn(release, learner="naive-mle", randomness=SeededRandomness(1)).model
    assert model.structure.domain == COARSE and model.domain == DOMAIN
    assert set(model.misfit()) == set(release.structure.cliques)
    strapped = bootstrap(model, 30, randomness=SeededRandomness(2))
    found = strapped.intervals("a")
    level = model._merged_codes.of["a"]
    noise = level.variance**0.5 / release.total
    assert found.estimate.shape == (5,)
    assert (found.standard_error[~level.is_alone] > noise / 4).all() and (found.standard_error < 4 * noise).all()
    again = strapped.using(unmeasured="uniform").replicates[3]
    np.testing.assert_array_equal(again.marginal("a"), strapped.replicates[3].marginal("a"))
    assert not np.allclose(again.marginal("a"), strapped.replicates[4].marginal("a"))
    assert strapped.coarse.replicates[3].domain == COARSE
    assert strapped.checked and strapped.structure_error().estimate >= 0
    assert strapped.intervals(["a", "c"], given={"b": 0}).widened


def test_an_unknown_split_of_a_block_is_taken_to_be_on_one_code():
    """Claim: without a one-way table, or with one too noisy to tell codes apart, the interval of a merged code holds
    that all of its block may be on one of its codes; codes of their own are as they were."""
    model = learn(session(), learner="eb-map", randomness=SeededRandomness(1)).model
    level, base = model._merged_codes.of["a"], model._distribution.base
    found, blocks, total = model.intervals(("a", "b")), model.coarse.marginal(("a", "b")), model.releases[0].total
    effects = model._grid(("a", "b"), {}).effects(model.learned)
    unknown = []
    for one in (evolve(level, counts=None), evolve(level, variance=1e12)):
        model._answer_from(base, evolve(model._merged_codes, of={**model._merged_codes.of, "a": one}))
        unknown.append(model.intervals(("a", "b")))
    for field in ("low", "high", "standard_error"):
        np.testing.assert_array_equal(getattr(unknown[0], field), getattr(unknown[1], field))
    np.testing.assert_allclose(found.standard_error[level.is_alone], unknown[0].standard_error[level.is_alone])
    influence = np.eye(blocks.size) - blocks.reshape(-1, 1)
    noise = np.diag(effects.noise(influence.reshape(-1, *blocks.shape))).reshape(blocks.shape)[level.codes] / total**2
    sizes, shares = np.bincount(level.codes)[level.codes], model.marginal("a")
    masses = np.bincount(level.codes, weights=shares)[level.codes]
    most = (total * masses) ** 2 + effects.variances[0,]
    answer = found.estimate
    expected = answer * (1 - answer) / total + level.weights[:, None] ** 2 * noise
    expected += (answer / shares[:, None]) ** 2 * ((1 - 1 / sizes) * most / sizes / total**2)[:, None]
    np.testing.assert_allclose(unknown[0].standard_error ** 2, expected)
