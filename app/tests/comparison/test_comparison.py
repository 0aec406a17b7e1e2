"""Comparisons of models, releases and synthetic records; a file is what it says it is."""

import itertools
import json
from html.parser import HTMLParser

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import norm

import dpgm_core as dpgm
from app.tests.made import CODES, LABELS, domain_of, model_of, release_of
from dpgm.cli import main
from dpgm.comparison import Synthetic, compare, distances, make_page, read_subject
from dpgm.comparison import page as page_module
from dpgm.comparison.distances import joint_cell_score
from dpgm.comparison.page import apart, shared_lines, short_names, side_by_side
from dpgm.comparison.subjects import ModelSide, subject_of
from dpgm.comparison.values import matching
from dpgm_core import DataError, Domain, Model, ModelFileError, NoisyTables, Structure, Tables
from dpgm_core._util.files import plain
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


# --- Domains are matched by names and labels; all attributes and pairs are compared, of many the important ones -------


def test_of_many_pairs_some_are_compared(monkeypatch):
    """Those in tables, then those of the attributes that differ most; it says how many."""
    monkeypatch.setattr(distances, "MAX_PAIRS", 10)
    domain = Domain.from_sizes({f"x{number}": 2 for number in range(7)})
    structure = Structure.chain(domain)
    uniform = Tables.zeros(structure)
    far = Tables(structure, np.array([0.0, 0.0, 3.0, *[0.0] * 21]))  # x0 and x1 tend to be 1 and 0
    found = compare(Model(structure, uniform), Model(structure, far)).pairs[0]
    pairs = {one.attributes for one in found.differences if len(one.attributes) == 2}
    assert len(pairs) == 10 and pairs >= {*itertools.pairwise(domain.names), ("x0", "x2"), ("x0", "x3")}
    assert "10 of 21 pairs" in found.notes[0]


def test_large_tables_are_left_out(monkeypatch):
    """And said to be; what fits is compared, in as many runs as memory asks for."""
    domain = Domain.from_sizes({"a": 4, "b": 4, "c": 2})
    structure = Structure(domain, [("a", "b"), ("b", "c")])
    models = [Model(structure, Tables(structure, np.random.default_rng(n).normal(size=24))) for n in (1, 2)]
    whole = {one.attributes: one.total_variation for one in compare(*models).pairs[0].differences}
    monkeypatch.setattr(distances, "_MAX_TABLE_CELLS", 10)
    monkeypatch.setattr(distances, "_CELLS_AT_ONCE", 9)
    found = compare(*models).pairs[0]
    del whole["a", "b"]
    assert {one.attributes: one.total_variation for one in found.differences} == whole
    assert "1 tables of more than 10 cells" in found.notes[0]


@pytest.mark.parametrize(("cells", "degrees"), [(1, np.inf), (40, np.inf), (40, 5.0)])
def test_a_score_is_above_z_as_rarely_as_a_normal_deviate(cells, degrees):
    """Of 4,000 tables of noise alone, for any number of cells; with few replicates, Student's t."""
    generator = np.random.default_rng(7)
    noise = generator.normal(size=(4000, cells))
    if np.isfinite(degrees):
        noise /= np.sqrt(generator.chisquare(degrees, size=(4000, cells)) / degrees)
    scores = [joint_cell_score(row, np.ones(cells), degrees) for row in noise]
    assert np.mean(np.array(scores) > 1.5) <= 2 * norm.sf(1.5) * 1.15
    assert np.mean(np.array(scores) > 1.5) >= norm.sf(1.5) * 0.5


def test_no_error_and_no_difference():
    """Equal without an error is 0; different without one is beyond all errors; errors without end explain all."""
    assert joint_cell_score(np.zeros(3), np.zeros(3)) == 0
    assert joint_cell_score(np.array([0.1, 0.0]), np.zeros(2), 5.0) == np.inf
    assert joint_cell_score(np.array([0.1]), np.array([np.inf])) == 0


def test_scores_are_of_what_errors_do_not_explain(fitted, people):
    """Two models of the same people: nothing; one of other people: where they differ, and there only."""
    same = compare(*fitted).pairs[0]
    assert max(found.score for found in same.differences) < 3
    others = CODES.copy()
    others[:800, 1] = 2  # older
    other = dpgm.learn(release_of(people, others, ("sex", "job"), ("age",), seed=5), "naive-mle").model
    other = dpgm.bootstrap(other, 10, randomness=dpgm.SeededRandomness(5))
    scores = {found.attributes: found.score for found in compare(fitted[0], other).pairs[0].differences}
    assert scores["age",] > 3 and scores["sex",] < 3 and scores["sex", "job"] < 3


def test_other_orders_are_matched():
    """Of attributes and of labels: a table of the other is turned into the first's order, axis by axis."""
    one = domain_of(a=["x", "y", "z"], b=["1", "2"])
    two = domain_of(b=["2", "1"], a=["z", "x", "y"])
    found = matching(one, two)
    assert found.shared == found.reordered == ("a", "b")
    table = np.arange(6).reshape(3, 2)  # axes a, b, the other's labels
    aligned = found.aligned(("a", "b"), table)
    for label, code in {"x": 1, "y": 2, "z": 0}.items():
        for number, place in {"1": 1, "2": 0}.items():
            assert aligned[one["a"].labels.index(label), one["b"].labels.index(number)] == table[code, place]
    assert matching(two, one).aligned(("a", "b"), aligned) == pytest.approx(table)


def test_what_cannot_be_compared_is_named():
    """Other labels under one name, attributes of one side, and what was not measured."""
    found = matching(
        domain_of(a=["x", "y"], b=["1", "2"], c=["0", "1"], d=["0", "1"]),
        domain_of(a=["x", "w"], c=["0", "1"], d=["0", "1"], e=["0", "1"]),
        unknown=("d",),
    )
    assert found.shared == ("c",) and found.reordered == ()
    assert found.labels == {"a": (("y",), ("w",))}
    assert (found.only_first, found.only_other, found.unmeasured) == (("b",), ("e",), ("d",))
    assert found.to_dict()["other_labels"] == {"a": {"only_first": ["y"], "only_other": ["w"]}}


def test_the_plain_values_are_json(folder):
    found = compare(folder / "m.dpgm", folder / "n.dpgm", folder / "s.parquet", folder / "m.release.dpgm")
    told = json.loads(json.dumps(plain(found.to_dict())))
    assert [one["kind"] for one in told["subjects"]] == ["model", "model", "synthetic", "release"]
    assert [one["private"] for one in told["subjects"]] == [False] * 4  # all come from a seed
    assert "no more private than they are: NOT PRIVATE (private = false)" in told["privacy"]
    assert [bool(pair["kl"]) for pair in told["pairs"]] == [True, False, False]


# --- The page of a comparison: whole, harmless, and stamped where its subjects are; and its words ---------------------

SCRIPT = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_all_kinds_stand_on_the_page(folder):
    """A section of facts, one of each pair, one of guarantees; a red stamp on each, as all noise had a seed."""
    made = make_page(compare(*(folder / name for name in ("m.dpgm", "n.dpgm", "s.parquet", "m.release.dpgm"))))
    assert made.startswith("<!doctype html>\n<!-- dpgm comparison -->")
    for words in ("n.dpgm against m.dpgm", "s.parquet against m.dpgm", "s.parquet (by the stamp of its file)", "KL("):
        assert words in made
    tags = Tags(made).found
    sections = sum(tag == "section" for tag, _ in tags)
    assert sections == 5 and sum(attrs.get("class") == "stamp" for _, attrs in tags) == sections
    assert not any({"src", "onload"} & set(attrs) for _, attrs in tags)


def test_names_and_labels_are_texts(tmp_path):
    structure = Structure(domain_of(**{SCRIPT: [SCRIPT, "b"], "a": ["x", "y"]}), [(SCRIPT, "a")])
    models = [Model(structure, Tables(structure, np.array([number, 0.0, 0.0, 0.0]))) for number in (0, 1)]
    made = make_page(compare(*models, names=[f"1{SCRIPT}", f"2{SCRIPT}"]))
    assert sum(tag == "script" for tag, _ in Tags(made).found) == 1  # the page's own
    assert "alert(&#x27;x&#x27;)" in made


@pytest.mark.parametrize(("folded", "words"), [(500, "The next 3 rows"), (2, "The next 2 rows; 1 are closer")])
def test_long_tables_are_folded(monkeypatch, folded, words):
    """The worst rows are seen at once, more on demand, and how many are left out."""
    monkeypatch.setattr(page_module, "_MAX_ROWS_SHOWN", 2)
    monkeypatch.setattr(page_module, "_MAX_MORE_ROWS", folded)
    domain = domain_of(**{name: ["0", "1"] for name in "abcde"})
    structure = Structure(domain, [(name,) for name in domain.names])
    models = [Model(structure, Tables(structure, np.random.default_rng(n).normal(size=10))) for n in (1, 2)]
    assert words in make_page(compare(*models))


def test_files_are_called_by_their_names_where_these_differ(folder, people, tmp_path):
    model_of(people, seed=3).save(tmp_path / "m.dpgm")
    assert list(short_names(compare(folder / "m.dpgm", folder / "n.dpgm")).values()) == ["m.dpgm", "n.dpgm"]
    both = [folder / "m.dpgm", tmp_path / "m.dpgm"]
    assert list(short_names(compare(*both)).values()) == [str(path) for path in both]


def test_facts_are_rows_and_lines_say_what_is_shared(people):
    """Unknown facts are left out; reservations and unmeasured attributes are there where there are any."""
    rows = {row[0]: row[1:] for row in side_by_side(compare(release_of(people, CODES, ("sex",)), model_of(people)))}
    assert rows["is a"] == ["release", "model"] and rows["cost"] == ["epsilon = 2", "-"]
    assert rows["private"] == ["with reservations"] * 2
    assert rows["not measured"] == ["age, job", "-"] and "learner" not in rows
    assert rows["records"][0].startswith(("2,9", "3,0"))
    pair = compare(model_of(people, ("sex", "age")), model_of(people, ("age", "job"))).pairs[0]
    lines = shared_lines(pair, "A", "B")
    assert lines[0] == "attributes: 3 compared" and "cliques: 0 in both, 1 in A alone, 1 in B alone" in lines
    assert "only in A: sex x age" in lines and "only in B: age x job" in lines
    assert lines[-1].startswith("KL(first || other) = ") and apart(pair) is None
