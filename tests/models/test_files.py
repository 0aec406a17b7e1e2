"""Model files: of schema 2 with any number of releases, and, for ever, of schema 1 with one at most; stamps."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Model, ModelFileError, Structure, Tables, load_model, load_release
from dpgm_core.models.model_file import read_stamp, sidecar_path

DOMAIN = Domain.from_sizes({"a": 2, "b": 3})
STRUCTURE = Structure(DOMAIN, [("a", "b")])
CODES = np.array([[0, 1], [1, 2]] * 20)


def test_equal_content_makes_equal_bytes(tmp_path):
    """No clock and no name of the machine in a file."""
    structure = Structure(DOMAIN, [("a",)])
    for name in ("1", "2"):
        Model(structure, Tables.zeros(structure), provenance={"x": 1}).save(tmp_path / name)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_round_trips_are_exact(tmp_path):
    """Floats, -inf potentials, tied groups, odd labels and odd remarks come back."""
    domain = Domain.from_dict(
        {"é\n": {"labels": ["", "x,y", "\x00"], "unknown": ""}, "b": {"labels": ["0", "1", "2"], "unknown": "0"}}
    )
    structure = Structure(domain, [("é\n",)], tied=[[("é\n", "b"), ("b", "é\n")][:1]])
    rng = np.random.default_rng(0)
    values = np.where(rng.random(structure.cells) < 0.3, -np.inf, rng.normal(size=structure.cells) * 1e-300)
    model = Model(structure, Tables(structure, values), provenance={"gap": np.inf, "notes": ["ü"], "x": (1, b"y")})
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert again.structure == structure
    assert np.array_equal(again.potentials.values, values)
    assert again.provenance["gap"] == "inf"


def test_a_large_uniform_model_is_no_bomb(tmp_path):
    """Zeros pack a thousandfold; they are stored as they are, so that reading may refuse what is packed so."""
    domain = Domain.from_sizes({"a": 600, "b": 600})
    structure = Structure(domain, [("a", "b")])
    Model(structure, Tables.zeros(structure)).save(tmp_path / "m.dpgm")
    assert load_model(tmp_path / "m.dpgm").potentials.values.size == 360_000


# --- several releases -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def several(tmp_path_factory, members_of, adaptive) -> dict[str, bytes]:
    """The members of the file of a model that was learned from 1/4, 1/4 and 1/2 of epsilon = 1."""
    path = tmp_path_factory.mktemp("several") / "m.dpgm"
    learner, seed = adaptive(shares=("1/4", "1/4", "1/2")), dpgm.SeededRandomness(1)
    done = dpgm.fit(CODES, STRUCTURE, Budget.pure(1), learner=learner, neighbours="add-remove", randomness=seed)
    done.model.save(path)
    return members_of(path)


@pytest.fixture
def read_with(tmp_path, several, written, changed):
    """Reads that file with other members, or with changes to the facts of the model."""

    def read(members=(), *, facts=None) -> Model:
        edited = {"model.json": changed(several["model.json"], facts)} if facts else {}
        return load_model(written(tmp_path / "m.dpgm", several | edited | dict(members)))

    return read


def test_all_releases_are_in_the_file(tmp_path, several, written):
    """They come in their order, each with its tables; read as a release file it picks none of them silently."""
    model = load_model(written(tmp_path / "m.dpgm", several))
    assert [str(one.cost) for one in model.releases] == ["epsilon = 0.25", "epsilon = 0.25", "epsilon = 0.5"]
    assert model.release is model.releases[-1]
    for number, one in enumerate(model.releases, start=1):
        name = "release.json" if number == 1 else f"release-{number}.json"
        assert one.to_document() == json.loads(several[name])
    first, second, third = (one.tables.values for one in model.releases)
    assert not (np.array_equal(first, second) or np.array_equal(second, third))
    with pytest.raises(ModelFileError, match=r"m\.dpgm carries several releases; take one of load_model"):
        load_release(written(tmp_path / "m.dpgm", several))


@pytest.fixture(scope="module")
def pooled(tmp_path_factory, members_of) -> dict[str, bytes]:
    """The members of the file of a model that was learned from two releases as one."""
    path = tmp_path_factory.mktemp("pooled") / "m.dpgm"
    terms = [{"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(seed)} for seed in (1, 2)]
    both = [dpgm.release(CODES, STRUCTURE, Budget.pure("1/40"), **one) for one in terms]
    dpgm.learn(both, "naive-mle").model.save(path)
    return members_of(path)


def test_a_file_keeps_what_was_pooled(tmp_path, pooled, written):
    """Both releases as they were published, their sum for the cost; the pool is made again."""
    model = load_model(written(tmp_path / "m.dpgm", pooled))
    assert model.pooled and len(model.releases) == 2 and model.cost == Budget.pure("1/20")
    assert all(one.tables.values.dtype == np.int64 and one.published == (one,) for one in model.releases)
    assert model.release.published == model.releases and model.release is model.release
    mean = (model.releases[0].tables.values + model.releases[1].tables.values) / 2
    np.testing.assert_allclose(model.release.tables.values, mean)


def test_a_file_of_releases_that_do_not_pool_is_refused(tmp_path, pooled, written):
    """Nobody learned from one release twice as if it were two; nor is `pooled` anything but yes or no."""
    twice = {**pooled, "release-2.json": pooled["release.json"], "tables-2.npz": pooled["tables.npz"]}
    with pytest.raises(ModelFileError, match="one release is given twice"):
        load_model(written(tmp_path / "twice.dpgm", twice))
    facts = json.loads(pooled["model.json"])
    facts["provenance"]["pooled"] = "yes"
    with pytest.raises(ModelFileError, match="not one that dpgm writes"):
        load_model(written(tmp_path / "yes.dpgm", {**pooled, "model.json": json.dumps(facts).encode()}))


EDITS = {
    "cheaper": ({("cost",): {"epsilon": "1/2"}}, "the cost is not that of its releases"),
    "dearer": ({("cost",): {"epsilon": "2"}}, "the cost is not that of its releases"),
    "cost unsaid": ({("cost",): None}, "the cost is not that of its releases"),
    "other kind of cost": ({("cost",): {"epsilon": "1", "delta": "1e-6"}}, "the cost is not that of its releases"),
    "two releases": ({("releases",): 2}, "carries more releases than the 2 it states"),
    "two releases at their cost": (
        {("releases",): 2, ("cost",): {"epsilon": "1/2"}},
        "carries more releases than the 2 it states",
    ),
    "no releases": ({("releases",): 0}, "carries more releases than the 0 it states"),
    "four releases": ({("releases",): 4}, "has no release-4.json"),
    "releases text": ({("releases",): "3"}, "the number of releases must be"),
    "releases true": ({("releases",): True}, "the number of releases must be"),
    "releases negative": ({("releases",): -1}, "the number of releases must be"),
    "many releases": ({("releases",): 10**9}, "the number of releases must be"),
    "older schema": ({("schema",): 1}, "carries more releases than the 1 it states"),
}


@pytest.mark.parametrize("key", EDITS)
def test_an_edited_count_or_cost_is_refused(read_with, key):
    """The cost is recomputed from the releases, and the releases are those that are there."""
    changes, words = EDITS[key]
    with pytest.raises(ModelFileError, match=words) as caught:
        read_with(facts=changes)
    assert "m.dpgm" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["cost", "releases", "conversion_delta"])
def test_what_schema_2_states_must_be_there(tmp_path, several, written, key):
    """A file that leaves it out is not taken for an older one."""
    document = json.loads(several["model.json"])
    del document[key]
    with pytest.raises(ModelFileError):
        load_model(written(tmp_path / "m.dpgm", several | {"model.json": json.dumps(document).encode()}))


@pytest.mark.parametrize("name", ["release.json", "release-2.json", "tables-2.npz", "release-3.json", "tables-3.npz"])
def test_a_dropped_member_is_refused(tmp_path, several, written, name):
    """A file with one release fewer than it states is not read as one that cost less."""
    members = {key: content for key, content in several.items() if key != name}
    with pytest.raises(ModelFileError, match=f"has no {name}"):
        load_model(written(tmp_path / "m.dpgm", members))


@pytest.mark.parametrize("name", ["release-4.json", "tables-4.npz", "release-9.json", "release-1.json"])
def test_an_extra_member_is_refused(read_with, several, name):
    """Whatever its number: a release that the cost leaves out is not carried along."""
    with pytest.raises(ModelFileError, match="carries more releases than the 3 it states"):
        read_with({name: several["release-3.json"]})


RELEASES = ("release.json", "release-2.json", "release-3.json")
CHEAPER, OTHERS = {("cost",): {"epsilon": "1/8"}}, "do not add up to one guarantee"


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("release-2.json", {("terms", "unit"): "one visit"}, OTHERS),  # one sentence stands for all of them
        ("release-2.json", {("terms", "person"): "who"}, OTHERS),
        *((name, CHEAPER, "cost is not that of the noise") for name in RELEASES),
    ],
)
def test_each_release_of_a_model_is_checked(read_with, several, changed, name, changes, words):
    """A lie in the second one is found out as in the first; a cheap one in the place of a dear one changes the sum."""
    with pytest.raises(ModelFileError, match=words):
        read_with({name: changed(several[name], changes)})
    with pytest.raises(ModelFileError, match="the cost is not that of its releases"):
        read_with({"release-3.json": several["release-2.json"], "tables-3.npz": several["tables-2.npz"]})


def test_a_stamp_without_a_release_is_refused(tmp_path, several, written, changed):
    """Nothing is known of what made it."""
    changes = {("releases",): 0, ("cost",): None, ("private",): True}
    members = {"model.json": changed(several["model.json"], changes), "potentials.npz": several["potentials.npz"]}
    with pytest.raises(ModelFileError, match="claims a privacy stamp but carries no release"):
        load_model(written(tmp_path / "m.dpgm", members))


# --- schema 1 ---------------------------------------------------------------------------------------------------------

SCHEMA1 = Path(__file__).parents[1] / "data" / "schema1"
STATED = "The cost of the rounds together is as the author of the file states it; it was not recomputed. "
MODELS = {"model": 1, "model-replicates": 1, "model-rounds": 1, "model-without-release": 0}


def test_the_models_of_schema_1_are_all_here():
    """What the tests below read."""
    assert {path.stem for path in SCHEMA1.glob("model*.schema1")} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_schema_1_says_what_it_said(members_of, name):
    """Its guarantee is the old one, but for whose word the cost of rounds is; its cost is its release's."""
    old = json.loads(members_of(SCHEMA1 / f"{name}.schema1")["model.json"])
    assert old["schema"] == 1
    model = load_model(SCHEMA1 / f"{name}.schema1")
    assert model.guarantee().replace(STATED, "") == old["guarantee"]
    assert (STATED in model.guarantee()) is (name == "model-rounds")
    assert len(model.releases) == MODELS[name]
    assert model.cost == (model.release.cost if MODELS[name] else None)
    assert (model.private, model.converged) == (old["private"], old["converged"])
    assert dict(model.provenance) == old["provenance"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_schema_1_is_saved_as_schema_2(tmp_path, members_of, name):
    """And reads back equal, with its replicates; its releases are of schema 2 as well."""
    model = load_model(SCHEMA1 / f"{name}.schema1")
    model.save(tmp_path / "m.dpgm")
    members = members_of(tmp_path / "m.dpgm")
    assert {json.loads(content)["schema"] for member, content in members.items() if member.endswith(".json")} == {2}
    again = load_model(tmp_path / "m.dpgm")
    assert again.to_document() == model.to_document()
    assert np.array_equal(again.potentials.values, model.potentials.values)
    assert [one.to_document() for one in again.releases] == [one.to_document() for one in model.releases]
    assert len(again.replicates) == len(model.replicates) == (5 if name == "model-replicates" else 0)
    for one, other in zip(again.replicates, model.replicates, strict=True):
        assert np.array_equal(one.potentials.values, other.potentials.values)


@pytest.mark.parametrize(
    ("member", "changes"),
    [
        ("release.json", {("cost",): {"epsilon": "1/2"}}),
        ("model.json", {("provenance",): []}),
        ("model.json", {("replicates",): 4}),
        ("model.json", {("schema",): 2}),
        ("model.json", {("schema",): 0}),
    ],
)
def test_a_hostile_edit_of_a_model_of_schema_1_is_refused(tmp_path, members_of, written, changed, member, changes):
    """A stronger claim of its release, of which test_claims.py has many, or a fact that is none."""
    members = members_of(SCHEMA1 / "model.schema1")
    with pytest.raises(ModelFileError):
        load_model(written(tmp_path / "m.dpgm", members | {member: changed(members[member], changes)}))


def test_a_model_of_schema_1_carries_one_release_at_most(tmp_path, members_of, written):
    """A second one would not be in its cost."""
    members = members_of(SCHEMA1 / "model.schema1")
    more = {"release-2.json": members["release.json"], "tables-2.npz": members["tables.npz"]}
    with pytest.raises(ModelFileError, match="carries more releases than the 1 it states"):
        load_model(written(tmp_path / "m.dpgm", members | more))


STAMP = {"dpgm": "0.2", "guarantee": "epsilon = 1"}


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"dpgm": 1}', "[" * 100_000, json.dumps(json.dumps(STAMP))])
def test_what_is_no_stamp(tmp_path, text):
    """Broken, deep or other JSON, as a file and in metadata."""
    path = sidecar_path(tmp_path / "x.csv")
    path.write_text(text)
    pyarrow.parquet.write_table(pa.table({"a": [1]}).replace_schema_metadata({"dpgm": text}), tmp_path / "x.parquet")
    assert read_stamp(path) is None and read_stamp(tmp_path / "x.parquet") is None


def test_stamps_are_read(tmp_path):
    """As a file, and in the metadata of a Parquet file; of files that are not there or broken there is none."""
    path = sidecar_path(tmp_path / "x.csv")
    path.write_text(json.dumps(STAMP))
    table = pa.table({"a": [1]}).replace_schema_metadata({"dpgm": json.dumps(STAMP)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert read_stamp(path) == read_stamp(tmp_path / "x.parquet") == STAMP
    (tmp_path / "y.arrow").write_bytes(b"no")
    assert read_stamp(tmp_path / "y.arrow") is None and read_stamp(tmp_path / "y.json") is None
