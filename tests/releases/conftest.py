"""What the tests of releases share: a file of each kind that core writes."""

import itertools
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Beliefs, Budget, ClippedScore, Contributions, Domain, Structure, Tables, Terms, make
from tests.fixtures import live_curator
from tests.releases.held import ACCOUNT, KINDS, held

DOMAIN, APPROX = Domain.from_sizes({"a": 2, "b": 3}), Budget.approx(1, "1e-6")


def textbook(name):
    return {"name": name, "exact": False, "allow_unsafe": True}


@pytest.fixture(scope="session")
def released(tmp_path_factory, members_of):
    """The members of a release file of each kind that core writes, by name."""
    structure = Structure(DOMAIN, [("a", "b"), ("b",)])
    tied = Structure(DOMAIN, [("b",)], tied=[[("a",), ("a", "b")][:1]])
    codes = np.array([[0, 1], [1, 2]] * 20)
    simulated = {"randomness": dpgm.SeededRandomness(1)}
    asked = {
        "laplace": ("laplace", Budget.pure(8), {}),
        "laplace zcdp": ("laplace", Budget.zcdp("1/3"), {}),
        "gaussian": ("gaussian", Budget.zcdp("1/3"), {}),
        "gaussian approx": ("gaussian", APPROX, {}),
        "replace-one": ("laplace", Budget.pure(1), {"neighbours": "replace-one"}),
        "gaussian replace-one": ("gaussian", Budget.zcdp("1/3"), {"neighbours": "replace-one"}),
        "optimal": ("laplace", Budget.pure(1), {"split": "optimal"}),
        "optimal gaussian": ("gaussian", Budget.zcdp(1), {"split": "optimal"}),
        "together": ("gaussian", APPROX, {"split": "optimal"}),
        "together replace-one": ("gaussian", APPROX, {"split": "optimal", "neighbours": "replace-one"}),
        "textbook together": (textbook("gaussian"), APPROX, {"split": "optimal"} | simulated),
        "textbook": (textbook("laplace"), Budget.pure(8), simulated),
        "textbook gaussian": (textbook("gaussian"), Budget.zcdp(1), simulated),
    }
    made = {}
    for name, (mechanism, budget, more) in asked.items():
        made[name] = partial(dpgm.release, codes, structure, budget, mechanism, **{"neighbours": "add-remove"} | more)
    made["tied"] = partial(
        dpgm.release, codes, tied, Budget.zcdp("1/3"), terms=Terms(neighbours="add-remove", total=70)
    )
    alone = Structure(DOMAIN, [("a", "b")])
    alone_settings = {"neighbours": "add-remove", "split": "optimal"}
    made["one table together"] = partial(dpgm.release, codes, alone, APPROX, "gaussian", **alone_settings)
    one_cell = Structure(Domain.from_sizes({"a": 1, "b": 3}), [("a",)])
    for name in ("laplace", "gaussian"):
        made[f"one cell {name}"] = partial(
            dpgm.release, codes * [0, 1], one_cell, Budget.zcdp(1), name, neighbours="replace-one"
        )
    persons = pa.table({"who": ["x", "x", "y"] * 13, "a": ["0", "1", "1"] * 13, "b": ["0", "1", "2"] * 13})
    two_rows = Terms(neighbours="add-remove", person="who", rows_per_person=2)
    weights = Contributions(per="clique", grid=12)
    visits = Terms(neighbours="add-remove", total="public", unit="one visit")
    for name, data, terms in (
        ("persons", persons, two_rows),
        ("weighted", persons, evolve(two_rows, contributions=weights)),
        ("public total", codes, visits),
    ):
        made[name] = partial(dpgm.release, data, structure, Budget.pure(1), terms=terms)
    budgets = {("a", "b"): Budget.pure(1), ("b",): Budget.pure(2)}
    made["per clique"] = lambda: live_curator(codes, structure, budget=Budget.pure(3)).release(budget=budgets)
    clip = {"clip": ClippedScore(norm="1/2", grid=64)}
    mu = Beliefs(marginals=Tables(structure, np.full(structure.cells, 1 / 6)), log_partition=0.0)
    for kind, mechanism, budget in (
        ("pure", "laplace", Budget.pure(2)),
        ("zcdp", "gaussian", Budget.zcdp(1)),
        ("laplace approx", "laplace", APPROX),
        ("approx", "gaussian", APPROX),
    ):
        for rate, scored in itertools.product((1, 0.25), ({}, clip)):
            name = f"rounds {kind} {rate}" + " clipped" * bool(scored)
            settings = {"budget": budget, "rate": rate, "beliefs": mu if scored else None} | scored
            made[name] = partial(first_round, codes, structure, mechanism, **settings)
    # a table of one cell counts by the presence of a person alone
    both = Structure(one_cell.domain, [("a",), ("b",)])
    made["rounds pure 0.25 replace-one"] = partial(
        first_round, codes * [0, 1], both, "laplace", budget=Budget.pure(2), rate=0.25, neighbours="replace-one"
    )
    return Released(made, tmp_path_factory.mktemp("released"), members_of)


def first_round(codes, structure, mechanism, *, budget, rate, neighbours="add-remove", beliefs=None, **scored):
    """The first of five rounds."""
    settings = {"budget": budget, "neighbours": neighbours, "total": 50.0}
    one = live_curator(codes, structure, make("mechanism", mechanism), **settings)
    with one.rounds(5, sampling_rate=rate, **scored) as rounds:
        return rounds.next(beliefs)


class Released(dict):
    """The members of a file and the release in it, by name; each is made when it is first asked for."""

    def __init__(self, made, folder, members_of):
        super().__init__()
        self.made, self.folder, self.members_of = made, folder, members_of

    def __missing__(self, name):
        noisy, path = self.made[name](), self.folder / str(len(self))
        noisy.save(path)
        self[name] = self.members_of(path), noisy
        return self[name]

    def items(self):
        """All of them."""
        return [(name, self[name]) for name in self.made]


@pytest.fixture
def edited(tmp_path, written, changed):
    """Writes x.dpgm with values of its document replaced: {keys that lead there: value}."""

    def edit(members, changes):
        return written(tmp_path / "x.dpgm", members | {"release.json": changed(members["release.json"], changes)})

    return edit


@pytest.fixture(scope="session")
def files(tmp_path_factory, members_of):
    """The members of a file of each kind of budget, and the release behind it."""
    folder = tmp_path_factory.mktemp("sessions")
    accounts = {"exact": ACCOUNT}
    return {
        kind: (held(folder / kind, budget, account=accounts.get(kind)), members_of(folder / kind))
        for kind, budget in KINDS.items()
    }
