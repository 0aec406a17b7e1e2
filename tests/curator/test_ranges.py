"""Ranges in sessions and releases: what they cost, what is saved and read again, what is refused before any charge."""

import json
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Terms, Workload, load_release, make
from dpgm_core.curator.live import LiveCurator
from dpgm_core.privacy.ranges import RangeNoise
from dpgm_core.releases.views import cell_variances, coarsened, implausible, plausible
from dpgm_core.sources import as_source
from dpgm_testing.unusual import TruncatedLaplace
from tests.persons import norms

DOMAIN = Domain.from_sizes({"age": 20, "sex": 2})
STRUCTURE = Structure(DOMAIN, [("age",), ("age", "sex"), ("sex",)])
CODES = np.random.default_rng(0).integers(0, [20, 2], (500, 2))
TRUTH = np.bincount(CODES[:, 0], minlength=20)
BUDGETS = {
    "rho": Budget.zcdp("0.4"), "epsilon": Budget.pure(1), "mu": Budget.gdp("0.8"), "delta": Budget.approx(1, "1e-6"),
}  # fmt: skip


def curator(budget, *, neighbours="add-remove", save_to=None, ranges=("age",), mechanism="gaussian", **terms):
    return LiveCurator(
        as_source(CODES), STRUCTURE, make("mechanism", mechanism),
        terms=Terms(neighbours=neighbours, **terms), budget=budget, randomness=SeededRandomness(4), save_to=save_to,
        split={"ranges": ranges},
    )  # fmt: skip


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_session_measures_ranges_and_spends_its_budget_exactly(tmp_path, kind, neighbours):
    """Whether tables share a budget or have their own; all of it can be spent and no more; its file reads back."""
    opened = curator(BUDGETS[kind], neighbours=neighbours, save_to=tmp_path / "x.dpgm")
    with opened.session(workload=Workload.all(DOMAIN)) as session:
        half = session.remaining * Fraction(1, 2)
        together = session.measure([("age",), ("sex",)], half)
        alone = session.measure({("age",): session.remaining * Fraction(1, 2), ("age", "sex"): half * Fraction(1, 2)})
        with pytest.raises(dpgm.Overspent):
            session.measure([("age",)], half)
        pooled = session.pooled()
    gaussian = kind != "epsilon"  # of 20 codes Laplace noise is on cells as ever
    for one in (together, alone):
        assert (one.ranges == ("age",)) is gaussian
        assert isinstance(one.noise[0], RangeNoise) is gaussian
        assert not isinstance(one.noise[1], RangeNoise)
    back = load_release(tmp_path / "x.dpgm")
    np.testing.assert_array_equal(back.tables.values, pooled.tables.values)
    np.testing.assert_allclose(back.variances, pooled.variances)
    assert back.guarantee() == pooled.guarantee() and ("windows" in back.guarantee()) is gaussian
    assert back.to_document()["schema"] == (7 if gaussian else 3)
    spread = np.sqrt(np.diag(pooled.noise[0].covariance if hasattr(pooled.noise[0], "covariance") else np.eye(20) * 99))
    assert np.all(np.abs(pooled.tables["age",] - TRUTH) < 6 * spread)


def test_tables_of_a_step_share_its_budget_evenly():
    """Under an exact Gaussian account too: each pays a part, and other tables are as noisy as without ranges."""
    for kind in ("rho", "mu"):
        steps = []
        for ranges in ((), ("age",)):
            with curator(BUDGETS[kind], ranges=ranges).session(workload=Workload.all(DOMAIN)) as session:
                steps.append(session.measure([("age",), ("sex",)], session.remaining * Fraction(1, 2)))
                assert session.remaining <= session.budget * Fraction(501, 1000)
        plain, ours = steps
        assert ours.variances[1] == pytest.approx(plain.variances[1], rel=2e-3)
        assert ours.cost.rho == pytest.approx(plain.cost.rho, rel=1e-2)  # of mu, wider noise has a lower price


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_neighbours_move_what_the_noise_is_added_to_by_no_more_than_stated(neighbours):
    """By brute force over all neighbours of a small table, through the counting and the windows of a release."""
    release = curator(BUDGETS["rho"], neighbours=neighbours).release()
    measurement = release.original.measurement if release.original is not None else release.measurement
    strategy, stated = measurement.strategies[0], measurement.calibrations[0].sensitivity
    before = strategy.sums(TRUTH)
    moves = []
    for code in range(20):
        for other in range(20) if neighbours == "replace-one" else [None]:
            after = TRUTH.copy()
            after[code] += 1
            if other is not None:
                after[other] -= 1
            moves.append(norms(strategy.sums(after) - before))
    assert np.max(moves, axis=0).tolist() == [stated.l0, stated.l1, stated.l2_squared, stated.linf]


@pytest.mark.parametrize("kind", ["rho", "mu", "delta"])
def test_a_release_reads_back_and_an_edited_one_is_refused(tmp_path, kind):
    """Windows are in the file, and what a person moves them by is computed again from them."""
    release = curator(BUDGETS[kind], save_to=tmp_path / "x.dpgm").release()
    back = load_release(tmp_path / "x.dpgm")
    np.testing.assert_array_equal(back.tables.values, release.tables.values)
    assert back.ranges == ("age",) and back.measurement.strategies[1] is None

    def edited(change):
        path = tmp_path / "edited.dpgm"
        with zipfile.ZipFile(tmp_path / "x.dpgm") as read, zipfile.ZipFile(path, "w") as write:
            for name in read.namelist():
                content = read.read(name)
                if name == "release.json":
                    document = json.loads(content)
                    change(document)
                    content = json.dumps(document).encode()
                write.writestr(name, content)
        with pytest.raises(dpgm.ModelFileError) as caught:
            load_release(path)
        return str(caught.value)

    assert "one person can change" in edited(lambda one: one["ranges"][0][0].__setitem__(2, 400))
    assert "one person can change" in edited(lambda one: one["ranges"][0].pop())
    assert "edited" in edited(lambda one: one["ranges"][0].pop(0))
    assert "one attribute" in edited(lambda one: one["ranges"].__setitem__(1, [[1, 1, 5]]))
    assert "do not fit" in edited(lambda one: one["ranges"].pop())
    edited(lambda one: one.pop("ranges"))


def test_merged_and_implausible_tables_keep_their_noise():
    """Cells summed by block have the summed covariance; an honest release is never changed as implausible."""
    release = curator(BUDGETS["rho"]).release()
    codes = [code // 5 for code in range(20)]
    view = coarsened(release, {"age": codes})
    blocks = np.eye(4)[codes]
    wanted = blocks.T @ release.noise[0].covariance @ blocks
    np.testing.assert_allclose(view.noise[0].covariance, wanted)
    np.testing.assert_allclose(cell_variances(view, ("age",)), np.diag(wanted))
    assert view.tables["age",].sum() == pytest.approx(release.tables["age",].sum())
    assert implausible(release) == 0
    far = release.tables.values.astype(float).copy()
    far[3] = 2.0**40
    damaged = dpgm.Tables(release.structure, far)
    assert plausible(release) is release
    assert implausible(evolve(release, tables=damaged)) == 1


def test_n_is_estimated_from_windows_too():
    """The sum of all cells has the noise of a range, less than a sixth of that of twenty cells."""
    release = curator(BUDGETS["rho"]).release()
    total = release.measurement.total_variances * np.asarray(STRUCTURE.sizes)
    assert total[0] == pytest.approx(release.noise[0].covariance.sum()) and total[0] < total[1] / 6
    assert release.total_variance == pytest.approx(1 / np.sum(1 / total))
    assert abs(release.total - 500) < 6 * np.sqrt(release.total_variance)


def test_what_goes_not_with_ranges_is_refused_before_a_charge(tmp_path):
    book = dpgm.Ledger.create(
        tmp_path / "a.ledger", name="a", budget=Budget.zcdp(9), neighbours="add-remove", unit="row"
    )
    terms, split, rho = Terms(neighbours="add-remove", unit="row"), {"ranges": ["age"]}, Budget.zcdp(1)
    pairs, lacking = Structure(DOMAIN, [("age", "sex")]), {"workload": Workload.of(DOMAIN, [["sex"]])}
    for verb, target, mechanism, more, words in (
        (dpgm.release, STRUCTURE, None, {"split": split | {"tables": "contrasts"}}, "not with split = 'contrasts'"),
        (dpgm.release, STRUCTURE, None, {"split": {"ranges": "age"}}, "must be a list of attributes"),
        (dpgm.release, pairs, "gaussian", {}, r"no clique is \['age'\] alone"),
        (dpgm.fit, pairs, "gaussian", {}, r"no clique is \['age'\] alone"),
        (dpgm.fit, "mst", None, lacking, r"no clique is \['age'\] alone"),
    ):
        given = {"mechanism": mechanism} if mechanism else {}
        with pytest.raises((dpgm.OptionError, dpgm.StructureError), match=words):
            verb(CODES, target, rho, **given, **{"split": split, "terms": terms, "ledger": book} | more)
    assert not book.history()
    with pytest.raises(dpgm.StructureError, match="did you mean 'age'"):
        curator(BUDGETS["rho"], ranges=("agee",))
    opened = curator(BUDGETS["rho"])
    with pytest.raises(dpgm.BudgetError, match="ranges out"):
        opened.rounds(3, sampling_rate=0.1)
    assert opened.remaining == opened.budget
    asked, delta = {"neighbours": "add-remove", "split": split}, Budget.approx(1, "1e-6")
    wide = Structure(Domain.from_sizes({"age": 64, "sex": 2}), [("age",), ("sex",)])
    with pytest.raises(dpgm.BudgetError, match="ranges out"):
        dpgm.plan(STRUCTURE, delta, mechanism="gaussian", learner="psgd", **asked)
    with pytest.raises(dpgm.BudgetError, match=r"measure ranges beside other tables for Gaussian.* leave ranges out$"):
        dpgm.plan(wide, delta, mechanism=TruncatedLaplace(), **asked)
