"""Reading releases: of schema 2 and, for ever, of schema 1; whatever is wrong is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, ModelFileError, PluginError, load_model, load_release

TERMS, CALIBRATION = ("terms",), ("calibrations", 0)
WRONG = {
    "format": (("format",), "dpgm-model"),
    "newer schema": (("schema",), 8),
    "older schema": (("schema",), 1),
    "schema text": (("schema",), "2"),
    "no neighbours": ((*TERMS, "neighbours"), "adjacent"),
    "total 0": (("total",), 0),
    "total NaN": (("total",), float("nan")),
    "total text": (("total",), "many"),
    "variance": (("total_variance",), -1),
    "policy": ((*TERMS, "total"), "guessed"),
    "policy below 1": ((*TERMS, "total"), 0),
    "rows": ((*TERMS, "rows_per_person"), 0),
    "rows true": ((*TERMS, "rows_per_person"), True),
    "rows without a person": ((*TERMS, "rows_per_person"), 2),
    "unit": ((*TERMS, "unit"), None),
    "unit number": ((*TERMS, "unit"), 3),
    "person number": ((*TERMS, "person"), 3),
    "contributions": ((*TERMS, "contributions"), {"per": "clique"}),
    "one term more": ((*TERMS, "x"), 1),
    "terms": (("terms",), {"neighbours": "add-remove"}),
    "terms text": (("terms",), "add-remove"),
    "cheaper than the noise": (("cost",), {"epsilon": "1/2"}),
    "free": (("cost",), {"epsilon": "0"}),
    "private text": (("private",), "yes"),
    "no calibrations": (("calibrations",), []),
    "calibration out of range": (("calibration_of",), [1]),
    "too many calibrations": (("calibration_of",), [0, 0]),
    "calibration no list": (("calibration_of",), 0),
    "sizes not spelled out": (("domain",), {"attributes": {"a": {"size": 2}, "b": {"size": 3}}}),
    "domain text": (("domain",), "a"),
    "structure": (("structure",), {"cliques": [["a", "z"]]}),
    "huge structure": (("structure",), {"cliques": [["a", "b"], ["a"]]}),
    "provenance": (("provenance",), 3),
    "modelled text": (("modelled",), "a"),
    "modelled helper": (("modelled",), {"graph": "chain"}),
    "modelled without room": (("modelled",), {"cliques": [["a"]]}),
    "modelled unknown": (("modelled",), {"cliques": [["a", "b"], ["z"]]}),
    "round": (("round",), 3),
    # nothing makes the loader do anything but read numbers
    "noise scale": ((*CALIBRATION, "noise", "scale"), "nan"),
    "noise scale negative": ((*CALIBRATION, "noise", "scale"), -1),
    "noise l1": ((*CALIBRATION, "noise", "l1"), 10**9),
    "noise class": ((*CALIBRATION, "noise", "__class__"), "os.system"),
    "option text": ((*CALIBRATION, "options", "exact"), "yes"),
    "no such option": ((*CALIBRATION, "options", "x"), 1),
    "sensitivity": ((*CALIBRATION, "sensitivity", "l1"), -1),
    "budget": ((*CALIBRATION, "budget", "epsilon"), "1e99999"),
    "no component": ((*CALIBRATION, "component"), None),
    "component number": ((*CALIBRATION, "component"), 3),
}


@pytest.mark.parametrize("key", WRONG)
def test_wrong_facts_are_refused(sound, edited, refused_file, key):
    """Each fact, replaced by nonsense or by a lie about the budget; in a release file and in a model's."""
    keys, value = WRONG[key]
    refused_file(edited(sound, {keys: value}))


def test_a_missing_mechanism_is_a_plugin_error(sound, edited):
    """The file is sound; what it needs is not installed, and the error says its name."""
    path = edited(sound, {(*CALIBRATION, "component"): "not-installed"})
    for read in (load_model, load_release):
        with pytest.raises(PluginError, match="not-installed"):
            read(path)


FIELDS = ("structure", "measurement", "terms", "total", "total_variance", "private", "round", "provenance")


def test_every_kind_of_release_comes_back(tmp_path, released, written):
    """What core writes it reads, with the same guarantee; only a cost of rounds that needs more may be stated."""
    for name, (members, noisy) in released.items():
        again = load_release(written(tmp_path / "x.dpgm", members))
        assert (again.cost, again.unsafe, again.noise) == (noisy.cost, noisy.unsafe, noisy.noise), name
        if name != "weighted":  # handed out levelled; the file holds the release behind it
            assert np.array_equal(again.tables.values, noisy.tables.values), name
            assert again.tables.values.dtype == noisy.tables.values.dtype
            for field in FIELDS:
                assert getattr(again, field) == getattr(noisy, field), (name, field)
        assert not again.cost_stated or "approx" in name
        assert ("as the author" in again.guarantee()) == again.cost_stated
        if not again.cost_stated:
            assert again.guarantee() == noisy.guarantee()


def test_a_newer_schema_is_refused_by_its_number(tmp_path, sound, written, changed):
    """One line: which schema it has, which this reads, and who wrote it."""
    for name, read in (("release.json", load_release), ("model.json", load_model)):
        content = changed(sound[name], {("schema",): 8, ("dpgm",): "9.9"})
        with pytest.raises(ModelFileError, match=r"x\.dpgm has schema 8, .* up to [37]; it was written by dpgm '9\.9'"):
            read(written(tmp_path / "x.dpgm", sound | {name: content}))


# --- schema 1, read for ever --------------------------------------------------------------------------------------

# dpgm 0.1.0 wrote them at commit 021e21a, by `git show 73196090:tests/data/schema1/make.py`.
SCHEMA1 = Path(__file__).parents[1] / "data" / "schema1"
RELEASES = sorted(path.stem for path in SCHEMA1.glob("*.schema1") if not path.stem.startswith("model"))
STATED = "The cost of the rounds together is as the author of the file states it; it was not recomputed. "
CORRECTED = (
    "equivalently twice the budget under replace-one",
    "between data sets of equal N that differ in one person the loss is at most 2 epsilon",
)
FACTS = {
    # name: (total, person, rows per person, round, private)
    "plain": ("estimated", None, 1, None, True),
    "declared-total": (60.0, None, 1, None, True),
    "public-total": ("public", None, 1, None, True),
    "persons": ("estimated", "who", 3, None, True),
    "persons-public-total": ("public", "who", 3, None, True),
    "contributions": ("estimated", "who", 3, None, True),
    "rounds-pure": ("estimated", None, 1, (2, 5, "1/4", None, None), True),
    "rounds-clipped": (60.0, None, 1, (2, 5, "1/4", "1/2", 64), True),
    "seeded": ("estimated", None, 1, None, False),
}


def test_the_files_of_schema_1_are_all_here():
    """What the tests below read: 24 kinds of release, each of schema 1."""
    assert len(RELEASES) == 24 and set(FACTS) < set(RELEASES)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_of_schema_1_says_what_it_said(tmp_path, members_of, name):
    """Its guarantee is, to the letter, the one that its writer put into the file. For rounds that only the author's
    accountant can prove a reader adds whose word that is, as readers of schema 1 did. What a public total leaves was
    said for every kind of budget and query alike, which was false, and is now said of the release's own."""
    old = json.loads(members_of(SCHEMA1 / f"{name}.schema1")["release.json"])
    assert old["schema"] == 1
    release = load_release(SCHEMA1 / f"{name}.schema1")
    assert release.cost_stated is (name in ("rounds-approx", "rounds-clipped") and STATED in release.guarantee())
    corrected = old["guarantee"].replace(*CORRECTED)
    assert (corrected != old["guarantee"]) is (name == "public-total")
    assert release.guarantee().replace(STATED, "") == corrected
    assert release.cost == Budget.parse(old["cost"])
    assert (release.total, release.total_policy) == (old["total"], old["total_policy"])
    assert (release.private, release.unsafe) == (old["private"], old["unsafe"])
    assert not {"rounds", "person_key"} & set(release.provenance)


@pytest.mark.parametrize("name", FACTS)
def test_the_facts_of_schema_1_stand_where_schema_2_has_them(name):
    """Terms and round; what schema 1 kept in the provenance is gone from there."""
    release = load_release(SCHEMA1 / f"{name}.schema1")
    round = None if release.round is None else tuple(release.round.to_dict().values())
    terms = release.terms
    assert (terms.total, terms.person, terms.rows_per_person, round, release.private) == FACTS[name]
    assert (terms.contributions is None) is not name.startswith("contributions")


def test_a_release_of_schema_1_keeps_its_entry_in_the_ledger():
    """Provenance that is no fact of the guarantee stays as it was."""
    assert load_release(SCHEMA1 / "ledger.schema1").provenance == {"ledger": "census", "entry": 1}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_of_schema_1_is_saved_as_schema_2(tmp_path, members_of, name):
    """And reads back equal: every field, every number, the guarantee."""
    release = load_release(SCHEMA1 / f"{name}.schema1")
    release.save(tmp_path / "r.dpgm")
    document = json.loads(members_of(tmp_path / "r.dpgm")["release.json"])
    assert document["schema"] == 2 and document["terms"]["neighbours"] == release.neighbours.value
    again = load_release(tmp_path / "r.dpgm")
    assert np.array_equal(again.tables.values, release.tables.values)
    assert again.tables.values.dtype == release.tables.values.dtype
    for field in (*FIELDS, "cost", "unsafe", "cost_stated"):
        assert getattr(again, field) == getattr(release, field), field
    assert again.guarantee() == release.guarantee()


def test_a_release_of_schema_1_can_be_learned_from():
    """As often as wanted; the model says what the file says."""
    release = load_release(SCHEMA1 / "plain.schema1")
    model = dpgm.learn(release, "naive-mle").model
    assert (model.cost, model.guarantee()) == (release.cost, release.guarantee())


def test_the_first_files_of_schema_1_did_not_know_of_contributions(tmp_path, members_of, written):
    """A file that lacks the key weights nothing."""
    members = members_of(SCHEMA1 / "plain.schema1")
    document = json.loads(members["release.json"])
    del document["contributions"]
    path = written(tmp_path / "x.dpgm", members | {"release.json": json.dumps(document).encode()})
    assert load_release(path).contributions is None
