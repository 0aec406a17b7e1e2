"""How well it fits: misfit, and what a holdout found."""

import numpy as np

import dpgm_core as dpgm
from dpgm.report import make_report
from dpgm.report.model_sections import _score_text


def test_a_model_that_does_not_fit_is_told(codes, model, parsed):
    """Uniform potentials over a release that is not; the sound model lies near its tables."""
    wrong = dpgm.Model(model.structure, dpgm.Tables.zeros(model.structure), releases=model.releases)
    assert "it does not fit what it was learned from" in parsed(make_report(wrong)).texts["fit"]
    sound = parsed(make_report(model)).texts["fit"]
    assert "All 2 tables lie as near to the model" in sound
    assert "No table was set aside" in sound


def test_a_structure_check_is_told(codes, parsed):
    """Its error in total variation, with an interval."""
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcd", 2))
    structure = dpgm.Structure.chain(domain)
    many = np.tile(codes, (5, 1))
    checked = dpgm.fit(many, structure, dpgm.Budget.pure(5), neighbours="add-remove", split={"holdout": 0.2}).model
    assert "the model is off by about" in parsed(make_report(checked)).texts["fit"]


def test_no_score_is_minus_zero():
    """A reader takes it for a slip."""
    scores = [-0.04, -0.06, 1.66, -11]
    assert list(map(_score_text, scores)) == ["0.0", "-0.1", "1.7", "below -10"]
