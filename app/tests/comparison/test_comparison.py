"""Each of the others against the first: right numbers, by brute force, and clear refusals; releases by their noise."""

import itertools

import attrs
import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import CODES, LABELS, domain_of, model_of, release_of
from dpgm.comparison import compare
from dpgm_core import Model, Structure, Tables
from dpgm_core.errors import DomainError, OptionError
from dpgm_testing.oracles import enumerated


def shuffled(model: Model) -> Model:
    """The same distribution over a domain with attributes and labels in another order."""
    domain = domain_of(**{name: list(model.domain[name].labels[::-1]) for name in reversed(model.domain.names)})
    structure = Structure(domain, model.structure.cliques)
    arrays = {clique: np.flip(table) for clique, table in model.potentials.items()}
    return Model(structure, Tables.from_arrays(structure, arrays))


def test_two_models(people):
    """Total variation and KL of random models, against the enumeration of all records."""
    one, two = model_of(people, ("sex", "age"), ("age", "job")), model_of(people, ("sex", "job"), ("age",), seed=1)
    pair = compare(one, two, names=["one", "two"]).pairs[0]
    p, q = (enumerated(model.potentials).probabilities.reshape(2, 3, 2) for model in (one, two))
    assert pair.kl == pytest.approx((float(np.sum(p * np.log(p / q))), float(np.sum(q * np.log(q / p)))))
    far = {found.attributes: found for found in pair.differences}
    assert set(far) == {*((name,) for name in people.names), *itertools.combinations(people.names, 2)}
    for names, found in far.items():
        away = tuple(axis for axis, name in enumerate(people.names) if name not in names)
        ours, theirs = p.sum(axis=away), q.sum(axis=away)
        assert found.total_variation == pytest.approx(np.abs(ours - theirs).sum() / 2)
        cell = tuple(people[name].labels.index(found.cell[name]) for name in names)
        assert (found.first, found.other) == pytest.approx((ours[cell], theirs[cell]))
        assert abs(found.first - found.other) == pytest.approx(np.abs(ours - theirs).max())
    distances = [found.total_variation for found in pair.differences]
    assert distances == sorted(distances, reverse=True)
    assert pair.only_first == (("sex", "age"), ("age", "job")) and pair.only_other == (("sex", "job"), ("age",))
    assert (pair.common, pair.no_kl) == (0, None)
    assert all(found.score is None for found in pair.differences) and "lacks replicates" in pair.notes[0]


def test_labels_in_another_order_are_the_same_labels(people):
    """Distances and KL are those of the model in its own order; the cliques are the same up to order."""
    one, two = model_of(people, ("sex", "age"), ("age", "job")), model_of(people, seed=1)
    plain_one, turned = compare(one, two).pairs[0], compare(one, shuffled(two)).pairs[0]
    assert turned.matching.reordered == people.names
    assert turned.kl == pytest.approx(plain_one.kl)
    told = {found.attributes: found.total_variation for found in plain_one.differences}
    assert {found.attributes: found.total_variation for found in turned.differences} == pytest.approx(told)
    same = compare(two, shuffled(two)).pairs[0]
    assert same.common == 1 and same.kl == pytest.approx((0, 0), abs=1e-9)


def test_what_differs_or_was_not_measured_is_left_out(people):
    """Another label makes an attribute incomparable, and the KL; the rest is compared. What was not measured is named;
    the KL counts it as the model has it."""
    two = model_of(domain_of(**(LABELS | {"job": ["y", "no"]}), town=["A", "B"]), seed=1)
    pair = compare(model_of(people), two).pairs[0]
    assert pair.matching.shared == ("sex", "age") and set(pair.matching.labels) == {"job"}
    assert {found.attributes for found in pair.differences} == {("sex",), ("age",), ("sex", "age")}
    assert pair.kl is None and "not over the same attributes and labels" in pair.no_kl
    model = dpgm.learn(release_of(people, CODES, ("sex", "age"))).model
    pair = compare(model, model_of(people)).pairs[0]
    assert pair.matching.unmeasured == ("job",) and "job" not in pair.matching.shared
    assert pair.kl is not None and any("takes 'job' as the models have" in note for note in pair.notes)


def test_wrong_requests(folder, people, fitted, tmp_path):
    """One subject, one twice, a release against records, records without a domain, nothing shared, and a file that is
    no model."""
    for subjects, words in (
        ([folder / "m.dpgm"], "at least 2"),
        ([folder / "m.dpgm", folder / ".." / folder.name / "m.dpgm"], "are the same"),
        ([fitted[0], fitted[0]], "are the same"),
        ([folder / "m.release.dpgm", folder / "s.parquet"], "dpgm learn RELEASE"),
        ([folder / "s.arrow", folder / "s.parquet"], "--domain FILE"),
    ):
        with pytest.raises(OptionError, match=words):
            compare(*subjects)
    with pytest.raises(DomainError, match="share no attribute with the same labels"):
        compare(model_of(people), model_of(domain_of(town=["A", "B"])))
    (tmp_path / "x.dpgm").write_text("no")
    with pytest.raises(dpgm.ModelFileError, match=r"x\.dpgm"):
        compare(tmp_path / "x.dpgm", tmp_path / "y.dpgm")


def test_that_records_are_synthetic_is_their_stamps_word(folder):
    """Anybody can write a stamp beside real records, so the comparison says whom it trusts."""
    found = compare(folder / "m.dpgm", folder / "s.parquet", names=["m", "s"])
    assert "that 's' is synthetic is the word of its stamp, which nothing proves" in found.privacy
    assert "word of" not in compare(folder / "m.dpgm", folder / "n.dpgm").privacy


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
    alone = release_of(people, CODES, ("age",))
    for other, words in ((products, "sums of products"), (alone, "no table was measured by")):
        pair = compare(one, other).pairs[0]
        assert pair.gaps == () and words in pair.notes[0]


def test_a_model_and_a_release(fitted, people):
    """Either first; the scores are those of misfit; of its own release the distances are those of evaluate."""
    model = fitted[0]
    pair, back = compare(model, model.release).pairs[0], compare(model.release, model).pairs[0]
    expected = dpgm.total_variation(model, model.release.tables)
    for found in (pair, back):
        assert {one.attributes: one.total_variation for one in found.differences} == pytest.approx(expected)
    scores = {clique: max(0.0, score) for clique, score in model.misfit().items()}
    assert {one.attributes: one.score for one in pair.differences} == pytest.approx(scores)
    assert pair.differences[0].standing == ("measured", "measured")
    assert back.differences[0].first == pair.differences[0].other
