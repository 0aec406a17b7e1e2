"""Releases are apart by their noise, and models from releases by their distance and misfit."""

import attrs
import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.comparison.made import CODES, LABELS, domain_of, release_of
from dpgm.comparison import compare


def test_releases_are_apart_by_their_noise(people):
    """About one deviation under the same records, far more under others; tables by name and label."""
    cliques = [("sex", "age"), ("job",)]
    one, two = (release_of(people, CODES, *cliques, seed=seed) for seed in (1, 2))
    gaps = {gap.attributes: gap for gap in compare(one, two).pairs[0].gaps}
    assert set(gaps) == set(cliques)
    for clique, gap in gaps.items():
        apart = one.tables[clique] - two.tables[clique]
        scale = np.sqrt(float(one.variances[0] + two.variances[0]))
        assert gap.deviations == pytest.approx(np.sqrt(np.mean(apart**2)) / scale)
        assert gap.largest == pytest.approx(np.abs(apart).max() / scale) and gap.deviations < 3
        assert gap.noise_first == pytest.approx(np.sqrt(one.variances[0]))
    turned = domain_of(job=["n", "y"], age=LABELS["age"][::-1], sex=LABELS["sex"])
    codes = np.stack([1 - CODES[:, 2], 2 - CODES[:, 1], CODES[:, 0]], axis=1)
    other = release_of(turned, codes, ("age", "sex"), seed=2)
    (gap,) = compare(one, other).pairs[0].gaps
    assert gap.attributes == ("sex", "age") and gap.deviations < 3
    assert compare(one, release_of(people, CODES[:2000], *cliques)).pairs[0].gaps[0].deviations > 10


def test_one_release_under_two_names_is_found_out(people):
    """Independent noise never gives the same numbers twice."""
    noisy = release_of(people, CODES, ("sex", "age"))
    pair = compare(noisy, attrs.evolve(noisy)).pairs[0]
    assert pair.gaps[0].deviations == 0 and pair.notes == (
        "all numbers of these tables are the same: it is one release under two names",
    )


def test_tables_of_other_sums_are_not_compared(people):
    """Sums of products, rows that count otherwise, and no table of both; it is said."""
    one = release_of(people, CODES, ("sex", "job"))
    products = attrs.evolve(one, measurement=attrs.evolve(one.measurement, contrasts=True))
    for other, words in (
        (products, "sums of products"),
        (release_of(people, CODES, ("age",)), "no table was measured by"),
    ):
        pair = compare(one, other).pairs[0]
        assert pair.gaps == () and words in pair.notes[0]


def test_a_model_and_a_release(fitted, people):
    """Either first; the scores are those of misfit; of its own release the distances are those of evaluate."""
    model = fitted[0]
    pair, back = compare(model, model.release).pairs[0], compare(model.release, model).pairs[0]
    expected = dpgm.total_variation(model, model.release.tables)
    for found in (pair, back):
        assert {one.attributes: one.total_variation for one in found.differences} == pytest.approx(expected)
    scores = model.misfit()
    assert {one.attributes: one.score for one in pair.differences} == pytest.approx(
        {clique: max(0.0, score) for clique, score in scores.items()}
    )
    assert pair.differences[0].standing == ("measured", "measured")
    assert back.differences[0].first == pair.differences[0].other
