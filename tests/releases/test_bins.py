"""What private bins are in a session's file: the same again, and claims that do not fit refused."""

import json

import numpy as np
import pytest

from dpgm_core import Attribute, Budget, Domain, ModelFileError, SeededRandomness, Structure, Workload, load_release
from tests.fixtures import live_curator
from tests.private_columns import private_bins

DOMAIN = Domain([private_bins("age", 4, cells=10), Attribute.of_size("b", 2)])


def curator(data, budget):
    structure = Structure(DOMAIN, [("age",), ("b",)])
    return live_curator(data, structure, budget=budget, randomness=SeededRandomness(2))


@pytest.fixture(scope="module")
def found(tmp_path_factory, members_of):
    """A session's release with private bins, and the members of its file."""
    made = curator(np.random.default_rng(0).integers(0, [10, 2], (400, 2)), Budget.pure(4))
    with made.session(workload=Workload.all(DOMAIN)) as session:
        session.measure([("age", "b")], session.remaining)
    (release,) = made.released
    path = tmp_path_factory.mktemp("bins") / "x.dpgm"
    release.save(path)
    return release, members_of(path)


def test_bins_come_back_as_they_were(tmp_path, found, written, members_of):
    """Claim: what was found, how, and what it cost; and writing it again gives the same file."""
    release, members = found
    again = load_release(written(tmp_path / "x", members))
    assert again.session.to_dict() == release.session.to_dict()
    assert again.session.bins[0].cost == release.session.bins[0].cost
    assert again.structure == release.structure
    assert again.guarantee() == release.guarantee()
    assert "the domain but for the bins of 'age', which were found privately" in again.guarantee()
    again.save(tmp_path / "y")
    assert members_of(tmp_path / "y") == members


def test_codes_are_those_of_the_edges(found):
    """Claim: each cell's code is that of the bin it lies in, and missing values keep their label."""
    (bins,) = found[0].session.bins
    middles = np.arange(10) + 0.5
    assert bins.recoding(DOMAIN["age"].grid())[:10].tolist() == bins.attribute.bin_codes(middles).tolist()
    assert bins.recoding(DOMAIN["age"].grid())[10:].tolist() == [bins.attribute.null]
    assert bins.attribute.labels[bins.attribute.null] == "missing"


def _set(key, value):
    return lambda document, bins: bins.update({key: value})


def _other_domain(document, bins):
    table = document["domain"]["attributes"]["age"]
    table["bins"][1] += 1 if table["bins"][1] + 1 != table["bins"][2] else -1
    table["labels"] = [f"bin {number}" for number in range(len(table["bins"]) - 1)]


EDITED = {
    "sharper than was paid": _set("temperatures", ["3", "3"]),
    "a temperature of none": _set("temperatures", ["0", "0"]),
    "a temperature that takes for ever": _set("temperatures", ["1e99999999", "1"]),
    "numbers for temperatures": _set("temperatures", [0.01, 0.01]),
    "fewer levels than choices": lambda document, bins: bins["temperatures"].pop(),
    "more levels than choices": lambda document, bins: bins["temperatures"].append(bins["temperatures"][0]),
    "levels for more bins than were asked for": lambda document, bins: (
        bins["temperatures"].append("1/1000"),
        bins["choices"].append([]),
    ),
    "another edge": lambda document, bins: bins["choices"][0].__setitem__(0, bins["choices"][0][0] % 8 + 1),
    "an edge outside": _set("choices", [[10], [3, 12]]),
    "an edge too many": lambda document, bins: bins["choices"][1].append(9),
    "another grid": _set("cells", 11),
    "another column": _set("column", "b"),
    "no such column": _set("column", "hours"),
    "no declaration": _set("declared", {"labels": ["x"], "unknown": "x"}),
    "something more": _set("free", True),
    "found twice": lambda document, bins: document["session"]["bins"].append(bins),
    "no list": lambda document, bins: document["session"].update(bins={"age": bins}),
    "another domain": _other_domain,
    "several rows a person": lambda document, bins: document["terms"].update(person="id", rows_per_person=2),
    "votes beside": lambda document, bins: document["session"].update(votes={"epsilon": "1", "delta": "1e-9"}),
    "the whole budget for steps": lambda document, bins: document["session"].update(budget={"epsilon": "3.93"}),
    "replace-one at the price of add-remove": lambda document, bins: document["terms"].update(neighbours="replace-one"),
}


@pytest.mark.parametrize("case", EDITED)
def test_edited_bins_are_refused(tmp_path, found, written, case):
    """Claim: one line that names the file, for whatever does not fit the rest."""
    members = found[1]
    document = json.loads(members["release.json"])
    EDITED[case](document, *document["session"]["bins"])
    path = written(tmp_path / "x.dpgm", members | {"release.json": json.dumps(document).encode()})
    with pytest.raises(ModelFileError, match=r"x\.dpgm") as caught:
        load_release(path)
    assert "\n" not in str(caught.value)


def test_bins_left_out_are_not_free(found, edited):
    """Without its bins the file's session would be over public ones; bins that are still to be found are refused."""
    declared = json.loads(found[1]["release.json"])["session"]["bins"][0]["declared"]
    path = edited(found[1], {("domain", "attributes", "age"): declared, ("session", "bins"): []})
    with pytest.raises(ModelFileError, match="'age'"):
        load_release(path)


def test_what_was_too_large_to_plan_for_stays_out(tmp_path):
    """Where fewer bins come out than were planned for, the candidates are those of the plan, here and in the file."""
    workload = Workload.all(DOMAIN, max_cells=9)
    made = curator(np.zeros((50, 2), int), Budget.pure(90))
    with made.session(workload=workload) as session:
        assert session.domain["age"].size * session.domain["b"].size <= 9 < DOMAIN["age"].size * DOMAIN["b"].size
        assert session.workload.candidates == workload.candidates == (("age",), ("b",))
        session.measure([("b",), ("age",)], session.remaining)
    (release,) = made.released
    release.save(tmp_path / "x.dpgm")
    again = load_release(tmp_path / "x.dpgm")
    assert again.session.workload == release.session.workload
    assert again.tables.values.tolist() == release.tables.values.tolist()
