"""Several releases as one, with holdouts, with (epsilon, delta) over all tables, and with stated totals."""

import json

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Terms
from dpgm_core.errors import BudgetError, OptionError, StructureError

DOMAIN = Domain.from_sizes(dict.fromkeys("abcd", 2))
CHAIN = Structure.chain(DOMAIN)
ESTIMATED = Terms(neighbours="add-remove")
DELTA = "1e-6"


def codes_of(records=4000, seed=0):
    """a and c are alike beyond what b, which lies between them, tells."""
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=records)
    noise = [rng.random(records) < one for one in (0.3, 0.2, 0.3)]
    return np.column_stack([a, a ^ noise[0], a ^ noise[1], a ^ noise[1] ^ noise[2]])


CODES = codes_of()


def run(seed, structure=CHAIN, budget=4, codes=CODES, share="0.2", terms=ESTIMATED):
    """The release that was learned from, and that of the check."""
    asked = {"terms": terms, "split": {"holdout": share}, "randomness": SeededRandomness(seed)}
    return dpgm.fit(codes, structure, Budget.pure(budget), learner="naive-mle", **asked).releases


def released(structure, seed, budget=1, terms=ESTIMATED, codes=CODES):
    return dpgm.release(codes, structure, Budget.pure(budget), terms=terms, randomness=SeededRandomness(seed))


def learned(*releases, **more):
    return dpgm.learn(releases, "naive-mle", **more)


@pytest.fixture(scope="module")
def runs():
    return run(1), run(2)


def test_a_check_among_pooled_releases_is_compared_with_and_never_pooled(runs, tmp_path):
    """In any order; the model costs all three, its pool has two; bootstrapped, saved and loaded it answers the same."""
    (one, check), (two, _) = runs
    done = learned(check, one, two)
    model = done.model
    assert model.releases == done.releases == (one, two, check)
    assert model.learned == (one, two) and model.pooled and model.seen == (model.release,)
    assert done.release is model.release and done.release.published == (one, two)
    assert model.cost == Budget.pure("7.2") and done.release.cost == Budget.pure("6.4")
    assert model.holdout is check and model.standing(["a", "c"]) == "by structure"
    assert any(note.startswith("the structure misses about") for note in done.notes)
    sure = dpgm.bootstrap(model, 5, randomness=SeededRandomness(3))
    sure.save(tmp_path / "one.dpgm")
    loaded = dpgm.load_model(tmp_path / "one.dpgm")
    assert [release.holdout for release in loaded.releases] == [False, False, True] and loaded.pooled
    np.testing.assert_allclose(loaded.release.tables.values, done.release.tables.values, rtol=1e-12)
    for pair, wider in ((["a", "c"], True), (["a", "b"], False)):
        found, again = sure.intervals(pair), loaded.intervals(pair)
        assert found.widened == again.widened == wider
        np.testing.assert_allclose(found.low, again.low, rtol=1e-6, atol=1e-9)


def test_the_commands_take_a_check_among_several_releases(runs, tmp_path, capsys):
    """learn, query with intervals, evaluate; a table that two releases name in another order is counted once."""
    (one, check), _ = runs
    other = released(Structure(DOMAIN, [("b", "a"), ("c", "b")]), 7)
    files = {"one": one, "other": other, "check": check}
    for name, release in files.items():
        release.save(tmp_path / f"{name}.dpgm")
    paths = [str(tmp_path / f"{name}.dpgm") for name in files]
    model = str(tmp_path / "model.dpgm")

    def done(*arguments):
        main(arguments)
        return "".join(capsys.readouterr()) if "--json" not in arguments else capsys.readouterr().out

    said = done("learn", *paths, "--learner", "naive-mle", "-o", model)
    assert "holdout: the structure misses about" in said and "paid before: epsilon = 5" in said
    asked = ("query", model, "a", "c", "--intervals", "0.9", "--replicates", "5", "--seed", "1", "--json")
    found = json.loads(done(*asked))
    assert (found["standing"], found["widened"]) == ("by structure", True)
    compared = json.loads(done("compare", model, "--json"))
    assert [row["clique"] for row in compared["tables"]] == [["a", "b"], ["b", "c"], ["c", "d"]]
    stated = Terms(neighbours="add-remove", total=4000)
    few = [released(Structure(DOMAIN, [pair]), 8, "1/2000", stated) for pair in (("a", "b"), ("b", "a"))]
    for number, release in enumerate(few):
        release.save(tmp_path / f"few-{number}.dpgm")
    paths = [str(tmp_path / f"few-{number}.dpgm") for number in range(2)]
    said = done("learn", *paths, "--learner", "naive-mle", "-o", str(tmp_path / "few.model.dpgm"))
    assert "the noise is larger than the average cell in 1 of 1 tables" in said


def test_two_checks_speak_together(runs):
    """Each pair once, the mean of both by inverse variance; one check given twice is refused before the learning."""
    (one, first), (two, second) = runs
    model = learned(one, first, two, second).model
    assert model.holdout.published == (first, second)
    np.testing.assert_allclose(model.holdout.tables.values, (first.tables.values + second.tables.values) / 2)
    single = [learned(one, two, check).model._error for check in (first, second)]
    lowest, highest = sorted(float(error.variance) for error in single)
    assert lowest < model._error.variance < highest
    with pytest.raises(BudgetError, match="given twice"):
        learned(one, two, first, first)


def test_a_check_that_tells_nothing_any_more_is_kept_and_not_spoken_of(runs):
    """A second release measured all that the check did: the fit stands, nothing is widened, the error is refused."""
    one, check = runs[0]
    others = released(Structure(DOMAIN, check.structure.cliques), 3)
    done = learned(one, others, check)
    assert done.model.cost == Budget.pure(5) and not done.model.checked
    assert not any("misses" in note for note in done.notes)
    sure = dpgm.bootstrap(done.model, 3, randomness=SeededRandomness(1))
    assert not sure.intervals(["a", "b", "c"]).widened
    with pytest.raises(OptionError, match="cannot be estimated"):
        sure.structure_error()


def test_a_check_of_more_than_was_learned_from_tells_of_the_rest(runs):
    """d is in pairs of the check and in no release that was learned from: only (a, c) is compared."""
    check = runs[0][1]
    assert ("a", "d") in check.structure.cliques
    done = learned(released(Structure(DOMAIN, [("a", "b"), ("b", "c")]), 4), check)
    assert done.model.unmeasured == ("d",) and done.model.checked
    for model in (done.model, done.model.using(unmeasured="uniform")):
        assert model._error.pairs == 1
        assert 0 < float(model.structure_error().estimate) < 1
    alone = learned(released(Structure(DOMAIN, [("a", "b")]), 4), check)
    assert not alone.model.checked


def test_attributes_that_no_clique_pairs_are_widened_too():
    """A model of single attributes answers every pair by structure, and the check measures just these."""
    singles = Structure(DOMAIN, [(name,) for name in "abcd"])
    release, check = run(5, singles)
    model = dpgm.bootstrap(learned(release, check).model, 3, randomness=SeededRandomness(1))
    assert len(check.structure.cliques) == 6
    assert model.intervals(["a", "b"]).widened and not model.intervals("a").widened


@pytest.mark.parametrize("sizes", [{"a": 3, "b": 2, "c": 2, "d": 2}, {"w": 2, "x": 2, "y": 2, "z": 2}])
def test_releases_over_other_attributes_are_refused_before_the_learning(runs, sizes):
    """As a check, as a release, as what a model was learned from, and for a structure of other labels: one sentence."""
    other = run(6, Structure.chain(Domain.from_sizes(sizes)))
    one = runs[0][0]
    for releases in ((one, other[1]), (one, runs[1][0], other[1])):
        with pytest.raises(StructureError, match="other labels"):
            learned(*releases)
    model = learned(one).model
    for wrong in other:
        with pytest.raises(StructureError, match="other labels"):
            dpgm.Model(CHAIN, model.potentials, releases=[one, wrong])
    if "a" in sizes:
        with pytest.raises(StructureError, match="other labels"):
            learned(one, structure=other[0].structure)


def test_tables_paid_for_together_pool_with_others(tmp_path):
    """(epsilon, delta) over all tables, a check of the same run, and a release of a rho: costs add at the delta."""
    structure, split = Structure(DOMAIN, [*CHAIN.cliques, ("a",)]), {"tables": "optimal", "holdout": "0.1"}
    asked = {"terms": ESTIMATED, "split": split, "randomness": SeededRandomness(1)}
    done = dpgm.fit(CODES, structure, Budget.approx(1, DELTA), "gaussian", "naive-mle", **asked)
    together, check = done.releases
    assert done.model.cost == Budget.approx(1, DELTA) and together.measurement.together is not None
    assert not done.model.pooled and done.model.holdout is check
    zcdp = dpgm.release(CODES, CHAIN, Budget.zcdp("1/10"), "gaussian", terms=ESTIMATED, randomness=SeededRandomness(2))
    with pytest.raises(BudgetError, match="conversion delta"):
        learned(together, zcdp, check)
    again = learned(together, zcdp, check, conversion_delta="1e-7")
    assert again.model.cost.delta == Budget.approx(1, "1.1e-6").delta
    variances = 1 / (1 / together.variances[:3] + 1 / zcdp.variances)
    np.testing.assert_allclose(again.release.variances, [*variances, together.variances[3]], rtol=1e-12)
    dpgm.bootstrap(again.model, 3, randomness=SeededRandomness(3)).save(tmp_path / "one.dpgm")
    loaded = dpgm.load_model(tmp_path / "one.dpgm")
    assert loaded.cost == again.model.cost and loaded.learned[0].measurement.together == together.cost


def test_a_stated_total_is_held_against_all_that_is_pooled_with_it():
    """Alone its own noise is too wide to tell; the check or the other release says it, in the notes once."""
    terms = Terms(neighbours="add-remove", total=4300)
    stated = released(CHAIN, 1, "1/50", terms=terms)
    assert not any("stated as public" in note for note in learned(stated).notes)
    check = run(1, budget=10, share="0.9", terms=terms)[1]
    for other in (released(CHAIN, 2, 4), check):
        notes = [note for note in learned(stated, other).notes if "the total of 4,300 is stated as public" in note]
        assert len(notes) == 1


@pytest.mark.landing
def test_pooled_releases_of_a_right_model_are_not_accused():
    """Of a clique in R releases the furthest of R scores would exceed z R times as often as it may: of 60 right models
    with 8 releases of one table each, the score exceeds 1.645 in 3 by right, in 10 or more once in 1,500 such studies
    (binomial, .05); the largest of 8 would in 20."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    beyond = 0
    for number in range(60):
        codes = np.random.default_rng(number).integers(2, size=(1000, 1))
        terms = Terms(neighbours="add-remove", total=1000)
        releases = [released(structure, 100 * number + one, "1/20", terms, codes) for one in range(8)]
        model = dpgm.Model(structure, dpgm.Tables.zeros(structure), releases=releases)
        beyond += model.misfit()["a",] > 1.645
    assert beyond < 10
