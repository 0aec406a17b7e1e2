"""Bounded noise and noise that is not log-concave through the whole pipeline: who serves, who refuses, and files."""

from functools import cache

import attrs
import numpy as np
import pytest
from attrs import frozen

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, OptionError, Structure
from dpgm_core.releases.release_file import load_release
from dpgm_core.releases.totals import _log_moment
from dpgm_core.releases.views import equalize_totals
from dpgm_testing.unusual import Power, TruncatedLaplace, TruncatedLaplaceNoise, TwoWidths
from tests.fixtures import offered, seeded

STRUCTURE = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 3)))
CODES = np.random.default_rng(1).integers(0, 3, (2000, 3)).cumsum(axis=1) % 3


@frozen(kw_only=True)
class LaxNoise(TruncatedLaplaceNoise):
    """Checks nothing of what it claims."""

    def __attrs_post_init__(self):
        pass


@frozen(kw_only=True)
class Lax(TruncatedLaplace):
    """Half the bound that the stated cost needs."""

    def noise(self, sensitivity, budget):
        good = super().noise(sensitivity, budget)
        return LaxNoise(**attrs.asdict(attrs.evolve(good), recurse=False) | {"bound": good.bound // 2})


NOISES = {"truncated": Budget.approx(1, "1e-6"), "two-widths": Budget.pure(1)}


@pytest.fixture(autouse=True)
def under_names():
    """The mechanisms under names, as a plugin would offer them."""
    with offered({"truncated": TruncatedLaplace, "two-widths": TwoWidths, "lax": Lax, "power": Power}):
        yield


def fitted(tmp_path, mechanism, learner):
    path = tmp_path / "x.release.dpgm"
    budget = NOISES.get(mechanism, Budget.approx(1, "1e-6"))
    return dpgm.fit(CODES, STRUCTURE, budget, mechanism, learner, save_release=path, **seeded(1)), path


@cache
def paid_for(mechanism):
    """A release that was made for another learner."""
    return dpgm.fit(CODES, STRUCTURE, NOISES[mechanism], mechanism, "naive-mle", **seeded(1)).release


def fitted_to_shares(mechanism, budget):
    """A fit of normalised contributions, and the noise of its first table, in persons and as it was drawn."""
    rows = {name: CODES[:, column] for column, name in enumerate("abc")} | {"id": np.arange(len(CODES)) // 2}
    weighted = dpgm.Contributions(per="clique", grid=60)
    terms = dpgm.Terms(neighbours="add-remove", person="id", rows_per_person=2, contributions=weighted)
    seed = dpgm.SeededRandomness(1)
    done = dpgm.fit(rows, STRUCTURE, budget, mechanism, "naive-mle", terms=terms, randomness=seed)
    assert np.abs(done.model.marginal("a") - np.bincount(CODES[:, 0]) / len(CODES)).max() < 0.05
    noise, drawn = equalize_totals(done.release).noise[0], done.release.noise[0]
    return done.release, noise, drawn, (noise.variance / drawn.variance) ** 0.5


@pytest.mark.parametrize("mechanism", [*NOISES, "power"])
@pytest.mark.parametrize("learner", ["naive-mle", "eb-map"])
def test_learners_that_need_the_variance_only_serve_any_noise(tmp_path, mechanism, learner):
    """The model is near the 2,000 records, within 100 of them in each cell; model and release are read back.

    The seed is fixed; the noise has a standard deviation of at most 11 records.
    """
    done, path = fitted(tmp_path, mechanism, learner)
    true = np.zeros((3, 3))
    np.add.at(true, (CODES[:, 0], CODES[:, 1]), 1 / len(CODES))
    assert np.abs(done.model.marginal(("a", "b")) - true).max() < 0.05
    release = load_release(path)
    assert release.noise == done.release.noise and release.cost == NOISES.get(mechanism, Budget.approx(1, "1e-6"))
    assert not release.cost_stated
    done.model.save(tmp_path / "x.dpgm")
    assert dpgm.load_model(tmp_path / "x.dpgm").release.noise == release.noise


@pytest.mark.parametrize("e_step", ["collective-dual", "nlbp", "soft-sign"])
@pytest.mark.parametrize(
    ("mechanism", "words"), [("truncated", r"ends at -\d+ and \d+ records"), ("two-widths", "not log-concave")]
)
def test_cgm_em_refuses_them_with_a_sentence_and_nothing_is_lost(tmp_path, mechanism, words, e_step):
    """What was asked, what is wrong, what would do; before anything is paid for, and on a release that was."""
    sentence = rf"log-concave noise without bounds.*{words}.*naive-mle or eb-map"
    with pytest.raises(OptionError, match=sentence) as caught:
        fitted(tmp_path, mechanism, {"name": "cgm-em", "e_step": e_step})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "x.release.dpgm").exists()
    with pytest.raises(OptionError, match=sentence):
        dpgm.learn(paid_for(mechanism), {"name": "cgm-em", "e_step": e_step})


def test_core_computes_the_cost_of_truncated_noise_itself(tmp_path, monkeypatch):
    """It is refused before the charge, and where a release of it exists, when that is read."""
    claim = r"its noise claims to cost .* = \(1, 1e-06\), but truncated-discrete-laplace noise .* costs .* \(1, 0.0007"
    with pytest.raises(dpgm.BudgetError, match=claim):
        fitted(tmp_path, "lax", "naive-mle")
    assert not (tmp_path / "x.release.dpgm").exists()
    monkeypatch.setattr("dpgm_core.privacy.mechanism.check_claims", lambda *_: None)
    _, path = fitted(tmp_path, "lax", "naive-mle")
    with pytest.raises(dpgm.ModelFileError, match=claim):
        load_release(path)


@pytest.mark.parametrize("mechanism", NOISES)
def test_shares_of_persons_take_them_too(mechanism):
    """Normalised contributions scale the noise with the tables, and its support; the same learners serve or refuse."""
    release, noise, drawn, factor = fitted_to_shares(mechanism, NOISES[mechanism])
    assert noise.support == pytest.approx([end * factor for end in drawn.support])
    with pytest.raises(OptionError, match="log-concave noise without bounds"):
        dpgm.learn(release, "cgm-em")


@pytest.mark.parametrize("e_step", ["collective-dual", pytest.param("nlbp", marks=pytest.mark.landing)])
def test_cgm_em_learns_from_log_concave_noise_of_a_third_party(tmp_path, e_step):
    """By its log-density and score alone, as it offers no dual form."""
    done, _ = fitted(tmp_path, "power", {"name": "cgm-em", "e_step": e_step})
    assert np.abs(done.model.marginal("a") - np.bincount(CODES[:, 0]) / len(CODES)).max() < 0.05


def test_shares_of_persons_take_tabulated_noise():
    """Its variance, density and moments are those of the view in persons; a public N that is far off is noticed."""
    _, noise, drawn, factor = fitted_to_shares("power", Budget.pure(1))
    slopes = np.array([0.0, 0.01, 0.1])
    assert _log_moment(noise, slopes) == pytest.approx(_log_moment(drawn, slopes * factor))
