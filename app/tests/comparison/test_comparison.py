"""Comparisons of models, releases and synthetic records; a file is what it says it is."""

import itertools
import json

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from app.tests.made import CODES, LABELS, domain_of, model_of, release_of
from dpgm.cli import main
from dpgm.comparison import Synthetic, compare, read_subject
from dpgm.comparison.subjects import ModelSide, subject_of
from dpgm_core import DataError, Model, ModelFileError, NoisyTables, Structure, Tables
from dpgm_core.errors import DomainError, OptionError
from dpgm_testing.oracles import enumerated


def shuffled(model: Model) -> Model:
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
    """Another label makes an attribute and the KL incomparable; what was not measured is named."""
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
    """One subject, one twice, a release with records, records without a domain, nothing shared, and no model."""
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


STAMP = {"dpgm": "0.2", "guarantee": "epsilon = 1", "synthetic": True, "private": True, "cost": {"epsilon": "1"}}


def test_each_kind_is_told(folder):
    """By what the file holds, and of records by the stamp."""
    assert isinstance(read_subject(folder / "m.dpgm"), Model)
    assert isinstance(read_subject(folder / "m.release.dpgm"), NoisyTables)
    assert isinstance(read_subject(folder / "s.parquet"), Synthetic)
    with pytest.raises(ModelFileError, match="there is no file"):
        read_subject(folder / "none.dpgm")
    with pytest.raises(DataError, match="there is no file"):
        read_subject(folder / "none.csv")


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        (None, "it may hold records of people"),
        ({**STAMP, "synthetic": False}, "it may hold records of people"),
        ({**STAMP, "synthetic": "yes"}, "it may hold records of people"),
        ({**STAMP, "guarantee": 1}, "it may hold records of people"),
        ({**STAMP, "completed": True}, "rows of people that dpgm complete filled in"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_records_without_a_stamp_are_refused(tmp_path, stamp, words, suffix):
    """Beside a CSV file, in the metadata of a Parquet file; the records are not read."""
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        path.write_bytes(b"\xff\xff")
        if stamp is not None:
            (tmp_path / "x.csv.dpgm.json").write_text(json.dumps(stamp))
    else:
        told = {} if stamp is None else {"dpgm": json.dumps(stamp)}
        pyarrow.parquet.write_table(pa.table({"a": ["x"]}).replace_schema_metadata(told), path)
    with pytest.raises(DataError, match=words):
        read_subject(path)


@pytest.mark.parametrize(
    ("stamp", "caveat"),
    [
        ({}, None),
        ({"private": False}, "NOT PRIVATE"),
        ({"private": "yes"}, "NOT PRIVATE"),
        ({"private": None}, "nothing is known"),
        ({"unsafe": "textbook noise"}, "UNSAFE: textbook noise"),
        ({"conditions": ["It is CONDITIONAL on N.", 3]}, "CONDITIONAL"),
        ({"cost": {"epsilon": []}, "provenance": {"learner": {"name": 3}}}, None),
    ],
)
def test_what_a_stamp_says_is_repeated(tmp_path, stamp, caveat):
    """Its caveats go with all that is computed from the records; what makes no sense is left out."""
    (tmp_path / "x.csv").write_text("a\nx\n")
    (tmp_path / "x.csv.dpgm.json").write_text(json.dumps(STAMP | stamp))
    found = subject_of("x", read_subject(tmp_path / "x.csv"))
    assert bool(found.caveats) is (caveat is not None)
    assert caveat is None or caveat in found.caveats[0]
    assert found.facts["cost"] == (None if "cost" in stamp else "epsilon = 1") and found.facts["learner"] is None


def test_drawn_records_are_held_against_the_model(folder, people):
    """Those of its own are within their errors; those of another are not. Both formats are the same records."""
    found = compare(folder / "m.dpgm", folder / "s.parquet", folder / "s.arrow")
    assert [one.kind for one in found.subjects] == ["model", "synthetic", "synthetic"]
    assert found.subjects[1].facts["records"] == 2000 and found.subjects[1].facts["cost"] == "epsilon = 2"
    parquet, arrow = (pair.to_dict()["differences"] for pair in found.pairs)
    assert parquet == arrow
    assert max(one["score"] for one in parquet) < 3
    away = compare(folder / "s.parquet", model_of(people, seed=4)).pairs[0]
    assert max(one.score for one in away.differences) > 5
    both = compare(folder / "s.parquet", folder / "s.arrow", domain=people).pairs[0]
    assert all(one.total_variation == 0 and one.score == 0 for one in both.differences)


def test_a_csv_file_is_read_as_it_was_written(tmp_path, fitted):
    """Quotes where labels need them; values that are no label count as the unknown one; other columns are named."""
    domain = dpgm.Domain.from_dict({"a": ['x,"y', "z"], "b": ["0", "1"]})
    model = model_of(domain)
    model.save(tmp_path / "m.dpgm")
    main(["sample", str(tmp_path / "m.dpgm"), "-n", "500", "--seed", "1", "-o", str(tmp_path / "s.csv")])
    found = compare(tmp_path / "m.dpgm", tmp_path / "s.csv")
    assert found.subjects[1].facts["records"] == 500
    assert max(one.score for one in found.pairs[0].differences) < 3
    text = (tmp_path / "s.csv").read_text().replace('"b"', '"c"')
    (tmp_path / "s.csv").write_text(text)
    assert compare(tmp_path / "m.dpgm", tmp_path / "s.csv").pairs[0].matching.only_first == ("b",)
    (tmp_path / "s.csv").write_text(text.replace(",", ";"))
    assert compare(tmp_path / "m.dpgm", tmp_path / "s.csv").pairs[0].matching.only_first == ("b",)
    (tmp_path / "s.csv").write_text(text.replace(",", ":"))
    with pytest.raises(DataError, match="say how it is written: --dialect"):
        compare(tmp_path / "m.dpgm", tmp_path / "s.csv")


def test_a_models_errors_are_those_of_its_intervals(fitted):
    """Of tables in any order, asked at once."""
    cliques = [("job", "sex"), ("age",), ("sex", "age")]
    for names, error in zip(cliques, ModelSide(model=fitted[0]).errors(cliques), strict=True):
        assert error == pytest.approx(fitted[0].intervals(names).standard_error)
