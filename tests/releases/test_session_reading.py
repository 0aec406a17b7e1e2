"""The file of a session's release: the same again, bit for bit, and edited ones refused."""

import json
from fractions import Fraction

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import (
    Budget,
    BudgetError,
    Domain,
    ModelFileError,
    NoisyTables,
    SeededRandomness,
    Structure,
    TableDistance,
    Terms,
    Workload,
    bootstrap,
    learn,
    load_model,
    load_release,
    make,
    release,
)
from dpgm_core.privacy.mechanism import calibrate
from dpgm_core.privacy.tabulated import TabulatedNoise
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes
from dpgm_core.releases.calibrations import calibration_to
from dpgm_core.releases.session import score_sensitivity, session_release
from dpgm_core.releases.steps import Choice, Descent, NoisyScores, SessionTerms, Verdict
from dpgm_testing.unusual import Power
from tests.fixtures import live_curator, seeded
from tests.releases.held import CODES, DOMAIN, KINDS, WORKLOAD, held


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_comes_back_bit_for_bit(tmp_path, files, written, members_of, kind):
    """Numbers, temperatures, choices, scores, workload, merged codes, checks; and writing it again gives the file."""
    made, members = files[kind]
    again = load_release(written(tmp_path / "x", members))
    assert again.guarantee() == made.guarantee() and again.cost == KINDS[kind] == made.cost
    assert again.session.to_dict() == made.session.to_dict() and again.session.workload == WORKLOAD
    assert again.tables.values.tobytes() == made.tables.values.tobytes()
    assert (again.total, again.total_variance) == (made.total, made.total_variance)
    for one, other in zip(made.steps, again.steps, strict=True):
        assert type(one) is type(other) and one.cost == other.cost
        if isinstance(one, Choice | Descent):
            assert one == other
        elif isinstance(one, NoisyScores):
            assert one.candidates == other.candidates and one.values.tobytes() == other.values.tobytes()
            assert one.calibration == other.calibration and one.groups == other.groups
        else:
            assert one.structure == other.structure and one.tables.values.tobytes() == other.tables.values.tobytes()
            assert (one.holdout, one.total, one.calibrations) == (other.holdout, other.total, other.calibrations)
    again.save(tmp_path / "y")
    assert members_of(tmp_path / "y") == members


def place_of(kind):
    """The numbers of the file's steps of that kind."""
    order = ["measure", "select", "select", "select", "score", "mean", "measure", "descend", "descend", "measure"]
    return [number for number, one in enumerate(order) if one == kind]


FIRST, LAST, CHECK = place_of("measure")
ALL, ONE, TWO = place_of("select")
(SCORE,), (MEAN,) = place_of("score"), place_of("mean")
DOWN, AGAIN = place_of("descend")
STEPS = ("steps",)
EDITED = {
    # what a step cost
    "a choice sharper than was paid": {(*STEPS, ALL, "temperature"): "1/20"},
    "a choice of no temperature": {(*STEPS, ALL, "temperature"): "0"},
    "a negative temperature": {(*STEPS, ALL, "temperature"): "-1/20"},
    "a temperature divided by 0": {(*STEPS, ALL, "temperature"): "1/0"},
    "a temperature that takes for ever": {(*STEPS, ALL, "temperature"): "1e9999999999"},
    "a temperature beyond doubles": {(*STEPS, ALL, "temperature"): "1e999"},
    "a temperature below doubles": {(*STEPS, ALL, "temperature"): "1e-999"},
    "a temperature as a number": {(*STEPS, ALL, "temperature"): 0.01},
    "no table has so many weights": {(*STEPS, ALL, "temperature"): "1/1000000"},
    "a grid that makes the choice cheap": {(*STEPS, ALL, "grid"): 3},
    "no grid": {(*STEPS, ALL, "grid"): 0},
    "a finer grid": {(*STEPS, ALL, "grid"): 2048},
    "nothing chosen": {(*STEPS, ALL, "chosen"): [[]]},
    "another group chosen": {(*STEPS, ONE, "chosen"): [[1]]},
    "chosen twice": {(*STEPS, TWO, "chosen"): [[0, 0], [1, 2]]},
    "fewer chosen of a group": {(*STEPS, TWO, "chosen"): [[0], [1, 2]]},
    "a group less": {(*STEPS, TWO, "chosen"): [[0, 2]]},
    "chosen outside": {(*STEPS, ALL, "chosen"): [[9]]},
    "groups outside": {(*STEPS, ONE, "groups"): [[0, 9]]},
    "a descent at twice its temperature, which costs 4 times as much": {(*STEPS, DOWN, "temperature"): "1/24"},
    "a descent of no temperature": {(*STEPS, DOWN, "temperature"): "0"},
    "no table of a descent has so many weights": {(*STEPS, DOWN, "temperature"): "1/100000000"},
    "a descent in larger units": {(*STEPS, DOWN, "residual_grid"): 1},
    "a descent in units below 0": {(*STEPS, DOWN, "residual_grid"): -16},
    "a descent in finer units": {(*STEPS, DOWN, "residual_grid"): 2**13},
    "a descent without a radius": {(*STEPS, DOWN, "radius"): "0"},
    "a descent with a radius beyond all": {(*STEPS, DOWN, "radius"): "1e999"},
    "a descent clipped to nothing": {(*STEPS, DOWN, "clip"): "1e-9"},
    "a descent clipped beyond all": {(*STEPS, DOWN, "clip"): "2"},
    "a descent without a clip, for the same": {(*STEPS, DOWN, "clip"): None},
    "a descent of another loss": {(*STEPS, DOWN, "loss"): "hinge"},
    "a descent of two codes that are three": {(*STEPS, DOWN, "loss"): "logistic"},
    "a descent of a choice less": {(*STEPS, DOWN, "picks"): [[0, 3, 1], [3, 0, 1]]},
    "a descent to another choice's row": {(*STEPS, DOWN, "picks"): [[3, 0, 1], [0, 3, 1], [5, 3, 1]]},
    "a descent to no column": {(*STEPS, DOWN, "picks"): [[0, 99, 1], [3, 0, 1], [5, 3, 1]]},
    "a descent to a column before all": {(*STEPS, DOWN, "picks"): [[0, -1, 1], [3, 0, 1], [5, 3, 1]]},
    "a descent to itself": {(*STEPS, DOWN, "picks"): [[0, 1, 1], [3, 0, 1], [5, 3, 1]]},
    "a descent to what was left out": {(*STEPS, DOWN, "picks"): [[0, 5, 1], [3, 0, 1], [5, 3, 1]]},
    "a descent by two": {(*STEPS, DOWN, "picks"): [[0, 3, 2], [3, 0, 1], [5, 3, 1]]},
    "a descent by nothing": {(*STEPS, DOWN, "picks"): [[0, 3, 0], [3, 0, 1], [5, 3, 1]]},
    "a descent of texts": {(*STEPS, DOWN, "picks"): "abc"},
    "a descent over other codes": {(*STEPS, DOWN, "coarse"): False},
    "candidates of no descent before": {(*STEPS, DOWN, "candidates"): None},
    "a descent of another loss than the one before": {(*STEPS, AGAIN, "loss"): "pairs"},
    "a descent over other codes than the one before": {(*STEPS, AGAIN, "coarse"): False},
    "candidates of descents twice": {(*STEPS, DOWN, "candidates"): [3, 3]},
    "scores of less noise": {(*STEPS, SCORE, "calibration", "noise", "sigma_squared"): "100"},
    "scores for nothing": {
        (*STEPS, SCORE, "calibration", "noise", "cost"): {"rho": "1/100000000"},
        (*STEPS, SCORE, "calibration", "budget"): {"rho": "1/100000000"},
    },
    "scores that nobody moves": {(*STEPS, SCORE, "calibration", "sensitivity", "l2_squared"): 1},
    "means of less noise": {(*STEPS, MEAN, "calibration", "noise", "sigma_squared"): "100"},
    "means that nobody moves": {(*STEPS, MEAN, "calibration", "sensitivity", "l2_squared"): 1},
    "means that are distances": {(*STEPS, MEAN, "kind"): "score"},
    "distances that are means": {(*STEPS, SCORE, "kind"): "mean", (*STEPS, SCORE, "groups"): None},
    "a mean less": {(*STEPS, MEAN, "groups"): [[0, 2]]},
    "a mean of nothing": {(*STEPS, MEAN, "groups"): [[0, 2], []]},
    "a mean of a table twice": {(*STEPS, MEAN, "groups"): [[0, 2], [1, 1]]},
    "a mean of other tables": {(*STEPS, MEAN, "groups"): [[0, 2], [1, 9]]},
    "tables for nothing": {(*STEPS, FIRST, "calibrations", 0, "noise", "cost"): {"rho": "1/100000000"}},
    "tables that nobody moves": {(*STEPS, FIRST, "calibrations", 0, "sensitivity", "l2_squared"): 1},
    "tables of less noise": {(*STEPS, FIRST, "calibrations", 0, "noise", "sigma_squared"): "1"},
    "other noise": {(*STEPS, FIRST, "calibrations", 0, "component"): "laplace"},
    "unsafe noise": {(*STEPS, FIRST, "calibrations", 0, "options"): {"exact": False, "allow_unsafe": True}},
    "noise for one table of two": {(*STEPS, LAST, "calibration_of"): [0, 0]},
    "noise for another table": {(*STEPS, LAST, "calibration_of"): [1, 0]},
    "noise that is not there": {(*STEPS, FIRST, "calibration_of"): [0, 0, 9]},
    # what it cost together
    "a cheaper session": {("cost",): {"rho": "1/2"}},
    "a cheaper session with less to spend": {("cost",): {"rho": "1/10"}, ("session", "budget"): {"rho": "1/10"}},
    "more to spend than was paid": {("session", "budget"): {"rho": "2"}},
    "another kind of budget": {("session", "budget"): {"epsilon": "1"}},
    "another kind of cost": {("cost",): {"epsilon": "1"}},
    "a delta for nothing": {("cost",): {"epsilon": "1/2", "delta": "1e-6"}},
    "the other relation": {("terms", "neighbours"): "replace-one"},
    # what was asked
    "a table outside": {(*STEPS, FIRST, "cliques"): [0, 1, 99]},
    "a negative table": {(*STEPS, FIRST, "cliques"): [0, 1, -1]},
    "a table twice": {(*STEPS, FIRST, "cliques"): [0, 1, 1]},
    "candidates outside": {(*STEPS, ALL, "candidates"): [3, 4, 99]},
    "candidates twice": {(*STEPS, ALL, "candidates"): [3, 4, 4]},
    "scores of a candidate less": {(*STEPS, SCORE, "candidates"): [3, 4]},
    "no candidates": {(*STEPS, ALL, "candidates"): []},
    "a smaller workload": {("session", "workload"): {"order": 1}},
    "no workload": {("session", "workload"): 3},
    "a workload that takes for ever": {("session", "workload"): {"order": 2, "max_cells": -1}},
    "not merged": {("session", "merges"): {}},
    "merged otherwise": {("session", "merges"): {"c": [0, 1, 2, 2]}},
    "merged with gaps": {("session", "merges"): {"c": [0, 2, 2, 2]}},
    "merged unknown": {("session", "merges"): {"z": [0, 0]}},
    "coarse before": {(*STEPS, FIRST, "coarse"): True},
    "fine after": {(*STEPS, LAST, "coarse"): False},
    "coarse as a text": {(*STEPS, FIRST, "coarse"): "no"},
    "check as a text": {(*STEPS, FIRST, "check"): "no"},
    "only checks": {(*STEPS, FIRST, "check"): True, (*STEPS, LAST, "check"): True},
    # numbers
    "fewer numbers": {("numbers",): 5},
    "more numbers": {("numbers",): 10**9},
    "total NaN": {(*STEPS, FIRST, "total"): float("nan")},
    "total infinite": {(*STEPS, FIRST, "total"): float("inf")},
    "total 0": {(*STEPS, FIRST, "total"): 0},
    "variance": {(*STEPS, FIRST, "total_variance"): -1},
    # steps
    "no steps": {STEPS: []},
    "steps as a table": {STEPS: {"0": 1}},
    "a step of no kind": {(*STEPS, ALL): 3},
    "a step of another kind": {(*STEPS, ALL, "kind"): "vote"},
    "no session": {("session",): None},
    "private as a text": {("private",): "yes"},
    # what it was made to learn
    "made for a text": {("modelled",): "a"},
    "made for other names": {("modelled",): {"cliques": [["z"]]}},
    "made for less than it measured": {("modelled",): {"cliques": [["a"]]}},
    "made for a helper": {("modelled",): {"graph": "complete"}},
}


def refused(path):
    """One line that names the file, at once; none of it is a raw error."""
    with pytest.raises(ModelFileError, match=r"x\.dpgm") as caught:
        load_release(path)
    assert "\n" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (kind, case)
        for kind in ("zcdp", "exact")
        for case in EDITED
        if kind != "exact" or case != "a descent without a clip, for the same"  # an exact account has room for it
    ],
)
def test_edited_files_are_refused(files, edited, kind, case):
    """Whatever was edited, also where an exact Gaussian account pays for the steps."""
    refused(edited(files[kind][1], EDITED[case]))


def account_of(members):
    return json.loads(members["release.json"])["session"]["account"]


def test_an_edited_account_is_refused(files, edited):
    """Of mu, of choices, of its kind and of the budget beside it."""
    made, members = files["exact"]
    own = account_of(members)
    assert json.loads(members["release.json"])["schema"] == 6 and own["kind"] == "gaussian"
    (two, each), (four, fourth) = own["choices"]
    at = ("session", "account")
    budget = made.session.budget.rho
    for edit in (
        {(*at, "mu_squared"): str(Fraction(own["mu_squared"]) * Fraction(1001, 1000))},
        {(*at, "choices"): []},
        {(*at, "choices"): [[two - 1, each], [four, fourth]]},
        {(*at, "choices"): [[two, each], [four + 1, fourth]]},
        {(*at, "choices"): [[two, str(Fraction(each) * Fraction(999, 1000))], [four, fourth]]},
        {(*at, "kind"): "pure"},
        {(*at, "kind"): "concentrated"},
        {at: None},
        {at: {}},
        {at: [own]},
        {(*at, "mu_squared"): own["mu_squared"] + "0"},
        {(*at, "choices"): [], (*at, "mu_squared"): str(2 * budget)},
        {(*at, "choices"): [], ("session", "budget"): {"rho": str(Fraction(own["mu_squared"]) / 2)}},
        {("session", "budget"): {"rho": str(budget * Fraction(1001, 1000))}},
        {("cost",): {"epsilon": "199/100", "delta": "1/1000000"}},
        {("cost",): {"epsilon": "2", "delta": "999/1000000000"}},
        {("cost",): {"rho": str(budget)}},
        {("schema",): 5, (*at, "kind"): 3},
    ):
        refused(edited(members, edit))


def test_without_its_account_more_was_spent_than_zcdp_converts(files, edited):
    """The account alone proves what was charged: zCDP's conversion of the same steps does not."""
    members = files["exact"][1]
    document = json.loads(members["release.json"])
    session = {key: value for key, value in document["session"].items() if key != "account"}
    refused(edited(members, {("session",): session}))


def test_steps_cannot_be_cut_or_doubled(tmp_path, files, written, npz):
    """Steps and numbers must agree, and leaving a step out with its numbers makes the rest no cheaper."""
    made, members = files["zcdp"]
    document = json.loads(members["release.json"])
    numbers = made.numbers
    for number, step in enumerate(made.steps):
        start = sum(len(one.numbers) for one in made.steps[:number])
        part = slice(start, start + len(step.numbers))
        doubled = [*document["steps"][: number + 1], *document["steps"][number:]]
        cut = [one | ({"candidates": [3, 5]} if one["kind"] == "descend" else {}) for one in document["steps"]]
        del cut[number]
        twice, less = np.insert(numbers, part.start, numbers[part]), np.delete(numbers, part)

        def read(steps, values):
            content = json.dumps(document | {"steps": steps, "numbers": len(values)}).encode()
            return load_release(written(tmp_path / "x", {"release.json": content, "tables.npz": npz(values=values)}))

        if len(step.numbers):
            for steps, values in ((doubled, numbers), (cut, numbers), (document["steps"], twice)):
                with pytest.raises(ModelFileError, match="noisy numbers"):
                    read(steps, values)
        assert read(cut, less).cost == made.cost  # who cuts both away is not found out, and gains nothing
        if not step.cost * 11 <= made.session.budget:
            with pytest.raises(ModelFileError, match="cost more"):
                read([*doubled] + [document["steps"][number]] * 9, np.concatenate([twice, *[numbers[part]] * 9]))


@pytest.mark.parametrize("depth", [10**3, 10**5])
def test_deep_and_huge_documents_are_refused(tmp_path, files, written, changed, depth):
    """A list in a list in a list, a hundred thousand steps and more, a workload beyond counting."""
    members = files["pure"][1]
    text = members["release.json"].decode()
    deep = text[: text.index('"steps"')] + '"steps": ' + "[" * depth + "]" * depth + "}"
    for content in (
        deep.encode(),
        changed(members["release.json"], {STEPS: [0] * 100_001}),
        changed(members["release.json"], {("session", "workload"): {"weights": [{"clique": ["a"] * depth}]}}),
    ):
        with pytest.raises(ModelFileError):
            load_release(written(tmp_path / "x", members | {"release.json": content}))


def test_a_wide_workload_is_refused_at_once(files, edited):
    """A clique of 60 attributes has 2^60 candidates inside, unless they are looked for with sense."""
    wide = Domain.from_sizes({f"x{number}": 2 for number in range(60)})
    workload = {"weights": [{"clique": list(wide.names), "weight": "1"}]}
    path = edited(files["pure"][1], {("domain",): wide.to_dict(), ("session", "workload"): workload})
    with pytest.raises(ModelFileError, match="candidates"):
        load_release(path)


def test_what_cannot_be_told_does_not_help(files, edited):
    """A choice less sharp than it was is believed; the release costs what was charged all the same."""
    made, members = files["zcdp"]
    again = load_release(edited(members, {(*STEPS, ALL, "temperature"): str(made.steps[ALL].temperature / 2)}))
    assert again.cost == made.cost and again.guarantee() == made.guarantee()


# --- votes ----------------------------------------------------------------------------------------------------------

VOTED = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
BOTH, PART = Budget.approx(3, "3e-6"), Budget.approx(1, "1e-6")


@pytest.fixture(scope="module")
def voted(tmp_path_factory, members_of):
    """The members of a file with two votes, the first of which names a graph, a choice and tables; and the release."""
    path = tmp_path_factory.mktemp("votes") / "x"
    codes = np.random.default_rng(0).integers(0, 2, (900, 2))[:, [0, 0, 1]]
    settings = {"total": 900, "budget": BOTH, "save_to": path, "randomness": SeededRandomness(1)}
    curator = live_curator(codes, Structure(VOTED, [("a",)]), **settings)
    pairs = Structure.complete(VOTED)
    with curator.session(workload=Workload.all(VOTED, order=2), votes=PART * 2) as session:
        session.vote(ThresholdVotes(pairs=pairs, tau=0.3), PART)
        pair = Structure(VOTED, [("a", "c")])
        session.vote(EdgeVotes(pairs=pair, blocks=3, least=0.3, whole=True, order=3), PART)
        session.measure([("a", "b"), ("c",)], session.budget * Fraction(1, 2))
        flat = TableDistance(candidates=pairs, predicted=np.full(12, 225.0))
        session.select(flat, session.budget * Fraction(1, 4))
    return curator.released[0], members_of(path)


def test_votes_come_back_as_they_were(tmp_path, voted, written, members_of):
    """The voters, what they cost, the graph or nothing; and writing it again gives the file."""
    made, members = voted
    again = load_release(written(tmp_path / "x", members))
    assert again.cost == BOTH and again.session.votes == PART * 2 and again.guarantee() == made.guarantee()
    assert again.steps[:2] == made.steps[:2] and all(isinstance(one, Verdict) for one in made.steps[:2])
    assert [one.edges for one in again.steps[:2]] == [(("a", "b"),), None]
    again.save(tmp_path / "y")
    assert members_of(tmp_path / "y") == members


VOTE = ("steps", 0)
VOTES_EDITED = {
    "a cheaper cost": {("cost",): {"epsilon": "5/2", "delta": "3/1000000"}},
    "a smaller delta": {("cost",): {"epsilon": "3", "delta": "2/1000000"}},
    "a bit cheaper": {("cost",): {"epsilon": "2.999", "delta": "3/1000000"}},
    "a cost of rho": {("cost",): {"rho": "1"}},
    "less for votes": {("session", "votes"): {"epsilon": "19/10", "delta": "2/1000000"}},
    "nothing for votes": {("session", "votes"): None},
    "less for votes and cheaper": {
        ("session", "votes"): {"epsilon": "1", "delta": "2/1000000"},
        ("cost",): {"epsilon": "2", "delta": "3/1000000"},
    },
    "all of it for votes": {("session", "votes"): {"epsilon": "3", "delta": "3/1000000"}},
    "more for votes": {("session", "votes"): {"epsilon": "5/2", "delta": "2/1000000"}},
    "rho for votes": {("session", "votes"): {"rho": "1"}},
    "a dearer vote": {(*VOTE, "budget"): {"epsilon": "2", "delta": "1/1000000"}},
    "a vote with more delta": {(*VOTE, "budget"): {"epsilon": "1", "delta": "2/1000000"}},
    "a vote for rho": {(*VOTE, "budget"): {"rho": "1/10"}},
    "a vote for epsilon": {(*VOTE, "budget"): {"epsilon": "1"}},
    "a vote for nothing": {(*VOTE, "budget"): {}},
    "more rho after it": {("session", "budget"): {"rho": "1"}},
    "an edge that is no candidate": {("steps", 1, "edges"): [3]},
    "an edge that is no pair": {(*VOTE, "edges"): [0]},
    "an edge twice": {(*VOTE, "edges"): [3, 3]},
    "edges as a text": {(*VOTE, "edges"): ""},
    "edges as nothing": {(*VOTE, "edges"): 0},
    "candidates that are no pairs": {(*VOTE, "candidates"): [0, 1, 2]},
    "no candidates": {(*VOTE, "candidates"): []},
    "no voter": {(*VOTE, "voter"): {}},
    "a voter of no kind": {(*VOTE, "voter", "by"): "all"},
    "a voter without tau": {(*VOTE, "voter"): {"by": "threshold"}},
    "a voter of half a block": {("steps", 1, "voter", "blocks"): 1.5},
    "a voter of half an order": {("steps", 1, "voter", "order"): 2.5},
    "a total that was not known": {("terms", "total"): "estimated"},
}


@pytest.mark.parametrize("case", VOTES_EDITED)
def test_edited_votes_are_refused(voted, edited, case):
    """What votes cost is part of the sum, and what they say is what a session says."""
    refused(edited(voted[1], VOTES_EDITED[case]))


def test_votes_after_other_steps_and_votes_too_many_are_refused(voted, edited):
    """The proof is of votes first; a third vote was not paid for, nor are votes where the session had none."""
    document = json.loads(voted[1]["release.json"])
    first, second, *rest = document["steps"]
    without = {name: value for name, value in document["session"].items() if name != "votes"}
    for changes, why in (
        ({("steps",): [first, *rest, second]}, "after other steps"),
        ({("steps",): [first, second, second, *rest]}, "more than its session had for votes"),
        ({("session",): without}, "more than its session had for votes"),
    ):
        with pytest.raises(ModelFileError, match=why):
            load_release(edited(voted[1], changes))


def test_a_file_without_votes_has_none(files):
    """And says nothing of them, as before there were any."""
    made, members = files["approx"]
    assert made.session.votes is None and "votes" not in json.loads(members["release.json"])["session"]


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory, members_of):
    """The members of a file of each kind of budget whose tables have noise of a third party's distribution."""
    folder = tmp_path_factory.mktemp("tabulated")
    made = {kind: held(folder / kind, budget, mechanism=Power()) for kind, budget in KINDS.items()}
    return {kind: (one, members_of(folder / kind)) for kind, one in made.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_of_a_third_party_s_noise_comes_back(tmp_path, tabulated, written, kind):
    """Of a mechanism that is not even registered; choices, descents and scores are core's own."""
    made, members = tabulated[kind]
    again = load_release(written(tmp_path / "x", members))
    assert again.cost == KINDS[kind] and again.guarantee() == made.guarantee()
    assert [one.cost for one in again.steps] == [one.cost for one in made.steps]
    assert np.array_equal(again.tables.values, made.tables.values)
    tables = [noise for one in again.steps if isinstance(one, NoisyTables) for noise in one.noise]
    assert {type(noise) for noise in tables} == {TabulatedNoise}
    scores = {one.calibration.component for one in again.steps if isinstance(one, NoisyScores)}
    assert scores == (set() if kind == "pure" else {"gaussian"})


NOISE = (*STEPS, FIRST, "calibrations", 0, "noise")


def narrower(document):
    """Every other weight: noise half as wide for the same price."""
    return {(*NOISE, "distribution", "weights"): document["distribution"]["weights"][::2]}


EDITED_NOISE = {
    "half as wide": narrower,
    "a tail of less": lambda _: {(*NOISE, "distribution", "tail"): "1/1000"},
    "an end": lambda _: {(*NOISE, "distribution", "weights"): [4, 2, 0]},
    "no weights": lambda _: {(*NOISE, "distribution", "weights"): []},
    "no tail": lambda _: {(*NOISE, "distribution", "tail"): "0"},
    "weights as texts": lambda _: {(*NOISE, "distribution", "weights"): ["4", "2"]},
    "a lower cost": lambda _: {(*NOISE, "cost"): {"rho": "1/1000000"}},
    "another kind of cost": lambda _: {(*NOISE, "cost"): {"epsilon": "100"}},
    "of another mechanism's class": lambda _: {(*STEPS, FIRST, "calibrations", 0, "tabulated"): False},
    "less to change": lambda _: {(*STEPS, FIRST, "calibrations", 0, "sensitivity", "l2_squared"): 1},
}


@pytest.mark.parametrize("case", EDITED_NOISE)
def test_edited_distributions_are_refused(tabulated, edited, case):
    """The cost is computed again from the distribution in the file."""
    members = tabulated["zcdp"][1]
    document = json.loads(members["release.json"])["steps"][FIRST]["calibrations"][0]["noise"]
    refused(edited(members, EDITED_NOISE[case](document)))


@pytest.mark.parametrize(
    ("step", "mechanism", "words"),
    [
        (FIRST, {"name": "gaussian", "exact": False, "allow_unsafe": True}, "other noise than sessions draw"),
        (FIRST, {"name": "laplace", "exact": False, "allow_unsafe": True}, "other noise than sessions draw"),
        (SCORE, "laplace", "scores of its session have other noise"),
    ],
)
def test_noise_that_no_session_draws_is_refused(files, edited, step, mechanism, words):
    """Textbook noise, and other noise of scores than core's, at the cost that the file states."""
    made, members = files["zcdp"]
    one = made.steps[step]
    before = one.calibration if step == SCORE else one.measurement.calibrations[0]
    drawn = make("mechanism", mechanism)
    after = calibrate(drawn, drawn.noise(before.sensitivity, before.budget), before.sensitivity, before.budget)
    place = (*STEPS, step, "calibration") if step == SCORE else (*STEPS, step, "calibrations", 0)
    with pytest.raises(ModelFileError, match=words):
        load_release(edited(members, {place: calibration_to(after)}))


def test_the_pool_has_every_table_once_and_none_of_the_check(files):
    """`a` was measured twice: the mean by inverse variance; `c` is summed over merged codes."""
    made, _ = files["zcdp"]
    assert made.structure.cliques == (("a",), ("b",), ("c",), ("b", "c"))
    first, last = made.steps[0], made.steps[6]
    precisions = [1 / one.measurement.noise[place].variance for one, place in ((first, 0), (last, 1))]
    mean = sum(w * one.tables["a"] for w, one in zip(precisions, (first, last), strict=True)) / sum(precisions)
    assert made.tables["a"] == pytest.approx(mean)
    assert made.variances[0] == pytest.approx(1 / sum(precisions))
    assert made.tables["c"].tolist() == [first.tables["c"][0], first.tables["c"][1:].sum()]
    assert made.published == (made,) and f"{len(made.steps)} adaptive steps" in made.guarantee()


def test_a_session_is_shown_in_a_line(files):
    """It and its steps; a fit and a selection that hold it stay readable too."""
    made, _ = files["zcdp"]
    assert repr(made).startswith(f"NoisyTables(a session of {len(made.steps)} steps, 4 tables, ")
    assert all(len(repr(one)) < 200 and "array" not in repr(one) for one in (made, *made.steps))
    assert "a holdout" in repr(next(one for one in made.steps if getattr(one, "holdout", False)))
    assert len(repr(learn(made))) < 1000


def test_merged_and_unmerged_tables_are_refused_in_words_that_say_why(files):
    """In either order: the domain file was the same, so "another domain" would puzzle whoever wrote it."""
    made, _ = files["zcdp"]
    plain = release(np.zeros((9, 3), int), Structure(DOMAIN, [("c",)]), Budget.zcdp(1), "gaussian", **seeded())
    for both in ([made, plain], [plain, made]):
        with pytest.raises(
            dpgm.StructureError, match=r"counted rare labels of 'c' together.*choose with merge = false"
        ):
            learn(both)


def test_a_session_without_tables_is_no_release():
    """Choices alone cannot be learned from."""
    choice = Choice(
        candidates=(("a",),), groups=((0,),), chosen=((0,),), temperature=Fraction(1, 32), grid=1, person=1, kind="pure"
    )
    opened = SessionTerms(workload=WORKLOAD, budget=Budget.pure(1), merges={})
    with pytest.raises(BudgetError, match="measured no table"):
        session_release(
            opened, [choice], Terms(neighbours="add-remove"), cost=Budget.pure(1), private=True, provenance={}
        )


def test_a_model_of_a_session(tmp_path, files):
    """Cost, guarantee, standing, misfit, bootstrap, intervals; saved and loaded; and with another release."""
    made, _ = files["zcdp"]
    done = learn(made, "naive-mle", randomness=SeededRandomness(1))
    model = done.model
    assert model.cost == made.cost and "chosen privately" in model.guarantee()
    model.save(tmp_path / "m.dpgm")
    again = load_model(tmp_path / "m.dpgm")
    assert again.guarantee() == model.guarantee() and again.cost == made.cost
    assert [step.cost for step in again.releases[0].steps] == [step.cost for step in made.steps]
    assert again.marginal(("b", "c")) == pytest.approx(model.marginal(("b", "c")))
    assert set(model.misfit()) == set(made.structure.cliques) and again.misfit() == model.misfit()
    assert model.structure_error().estimate == pytest.approx(again.structure_error().estimate)
    interval = bootstrap(model, 10, randomness=SeededRandomness(2)).intervals(("a",))
    assert (interval.low <= interval.high).all() and interval.high.shape == (3,)
    # Codes of c were merged, so its table with b tells of blocks; that of a and b was for the check alone.
    assert {one.standing(("b", "c")) for one in (model, again)} == {"by structure"}
    assert model.coarse.standing(("b", "c")) == "measured" != model.coarse.standing(("a", "b"))
    coarse = made.structure.domain
    rows, pair = np.minimum(CODES, [9, 9, 1]), Structure(coarse, [("a", "b")])
    other = release(rows, pair, Budget.zcdp(1), "gaussian", neighbours="add-remove")
    both = learn([made, other], "naive-mle")
    assert both.model.cost == Budget.zcdp(2) and len(both.releases) == 2
    assert "Assumed public" in both.model.guarantee()
    with pytest.raises(BudgetError, match="given twice"):
        learn([made, made], "naive-mle")


def test_the_sensitivity_of_scores():
    """Each of K moves by D records, all at once."""
    found = score_sensitivity(5, 2)
    assert (found.l0, found.l1, found.l2_squared, found.linf) == (5, 5 * 2048, 5 * 2048**2, 2048)


# --- forests ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest(tmp_path_factory, members_of):
    """The members of a file with a forest of two pairs, c and b being connected before; and the release."""
    path = tmp_path_factory.mktemp("forest") / "x"
    codes = np.random.default_rng(1).integers(0, 2, (400, 4))
    domain = Domain.from_sizes(dict.fromkeys("abcd", 2))
    curator = live_curator(codes, Structure(domain, [("a",)]), budget=Budget.zcdp(1), save_to=path)
    pairs = Structure(domain, [("a", "b"), ("a", "c"), ("b", "d")])
    with curator.session(workload=Workload.all(domain, order=2)) as session:
        flat = TableDistance(candidates=pairs, predicted=np.full(12, 100.0))
        session.select(flat, session.budget * Fraction(1, 2), 2, forest=[("b", "c")])
        session.measure(["a"], session.budget * Fraction(1, 4))
    return curator.released[0], members_of(path)


def test_a_forest_comes_back_as_it_was(tmp_path, forest, written):
    """With what was connected before; a to b closes a cycle with a to c, so one of these was picked, and b to d."""
    made, members = forest
    again = load_release(written(tmp_path / "x", members))
    choice = again.steps[0]
    assert choice == made.steps[0] and choice.forest == (("b", "c"),)
    assert 2 in choice.chosen[0] and len(choice.chosen[0]) == 2


@pytest.mark.parametrize(
    "edits",
    [
        {"chosen": [[0, 1]]},
        {"forest": [["a", "b"]]},
        {"forest": [["b", "zz"]]},
        {"forest": 7},
        {"forest": [["b", 3]]},
        {"forest": [], "chosen": [[0, 1, 2], [0]]},
    ],
)
def test_a_forest_that_no_session_chooses_is_refused(forest, edited, edits):
    """A cycle, a candidate inside a tree, other attributes, and what is no list of cliques."""
    refused(edited(forest[1], {("steps", 0, key): value for key, value in edits.items()}))
