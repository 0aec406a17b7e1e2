"""What the tests of releases share: a file of each kind that core writes."""

import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm_core import Beliefs, Budget, ClippedScore, Contributions, Domain, LiveCurator, Structure, Tables, Terms, make
from dpgm_core.sources import as_source
from tests.releases.held import KINDS, held

DOMAIN = Domain.from_sizes({"a": 2, "b": 3})


def textbook(name: str) -> dict[str, object]:
    return {"name": name, "exact": False, "allow_unsafe": True}


@pytest.fixture(scope="session")
def released(tmp_path_factory, members_of):
    """The members of a release file of each kind that core writes, by name."""
    structure = Structure(DOMAIN, [("a", "b"), ("b",)])
    tied = Structure(DOMAIN, [("b",)], tied=[[("a",), ("a", "b")][:1]])
    codes = np.array([[0, 1], [1, 2]] * 20)
    folder = tmp_path_factory.mktemp("released")
    simulated = {"randomness": dpgm.SeededRandomness(1)}
    asked = {
        "laplace": ("laplace", Budget.pure(8), {}),
        "laplace zcdp": ("laplace", Budget.zcdp("1/3"), {}),
        "gaussian": ("gaussian", Budget.zcdp("1/3"), {}),
        "gaussian approx": ("gaussian", Budget.approx(1, "1e-6"), {}),
        "replace-one": ("laplace", Budget.pure(1), {"neighbours": "replace-one"}),
        "gaussian replace-one": ("gaussian", Budget.zcdp("1/3"), {"neighbours": "replace-one"}),
        "optimal": ("laplace", Budget.pure(1), {"split": "optimal"}),
        "optimal gaussian": ("gaussian", Budget.zcdp(1), {"split": "optimal"}),
        "together": ("gaussian", Budget.approx(1, "1e-6"), {"split": "optimal"}),
        "together replace-one": (
            "gaussian",
            Budget.approx(1, "1e-6"),
            {"split": "optimal", "neighbours": "replace-one"},
        ),
        "textbook together": (textbook("gaussian"), Budget.approx(1, "1e-6"), {"split": "optimal"} | simulated),
        "textbook": (textbook("laplace"), Budget.pure(8), simulated),
        "textbook gaussian": (textbook("gaussian"), Budget.zcdp(1), simulated),
    }
    made = {}
    for name, (mechanism, budget, more) in asked.items():
        made[name] = dpgm.release(codes, structure, budget, mechanism, **{"neighbours": "add-remove"} | more)
    made["tied"] = dpgm.release(codes, tied, Budget.zcdp("1/3"), terms=Terms(neighbours="add-remove", total=70))
    alone = Structure(DOMAIN, [("a", "b")])
    made["one table together"] = dpgm.release(
        codes, alone, Budget.approx(1, "1e-6"), "gaussian", neighbours="add-remove", split="optimal"
    )
    one_cell = Structure(Domain.from_sizes({"a": 1, "b": 3}), [("a",)])
    for name in ("laplace", "gaussian"):
        made[f"one cell {name}"] = dpgm.release(
            codes * [0, 1], one_cell, Budget.zcdp(1), name, neighbours="replace-one"
        )

    def curator(mechanism, budget, **more):
        return LiveCurator(
            as_source(codes),
            structure,
            make("mechanism", mechanism),
            terms=Terms(neighbours="add-remove", **more),
            budget=budget,
        )

    persons = pa.table({"who": ["x", "x", "y"] * 13, "a": ["0", "1", "1"] * 13, "b": ["0", "1", "2"] * 13})
    made["persons"] = dpgm.release(
        persons, structure, Budget.pure(1), terms=Terms(neighbours="add-remove", person="who", rows_per_person=2)
    )
    made["weighted"] = dpgm.release(
        persons,
        structure,
        Budget.pure(1),
        terms=Terms(
            neighbours="add-remove",
            person="who",
            rows_per_person=2,
            contributions=Contributions(per="clique", grid=12),
        ),
    )
    made["public total"] = dpgm.release(
        codes, structure, Budget.pure(1), terms=Terms(neighbours="add-remove", total="public", unit="one visit")
    )
    budgets = {("a", "b"): Budget.pure(1), ("b",): Budget.pure(2)}
    made["per clique"] = curator("laplace", Budget.pure(3)).release(budget=budgets)
    clip = {"clip": ClippedScore(norm="1/2", grid=64)}
    mu = Beliefs(marginals=Tables(structure, np.full(structure.cells, 1 / 6)), log_partition=0.0)
    for kind, mechanism, budget in (
        ("pure", "laplace", Budget.pure(2)),
        ("zcdp", "gaussian", Budget.zcdp(1)),
        ("laplace approx", "laplace", Budget.approx(1, "1e-6")),
        ("approx", "gaussian", Budget.approx(1, "1e-6")),
    ):
        for rate in (1, 0.25):
            for scored in ({}, clip):
                with curator(mechanism, budget, total=50.0).rounds(5, sampling_rate=rate, **scored) as rounds:
                    noisy = rounds.next(mu if scored else None)
                made[f"rounds {kind} {rate}" + " clipped" * bool(scored)] = noisy
    replaced = LiveCurator(  # a table of one cell counts by the presence of a person alone
        as_source(codes * [0, 1]),
        Structure(one_cell.domain, [("a",), ("b",)]),
        make("mechanism", "laplace"),
        terms=Terms(neighbours="replace-one", total=50.0),
        budget=Budget.pure(2),
    )
    with replaced.rounds(5, sampling_rate=0.25) as rounds:
        made["rounds pure 0.25 replace-one"] = rounds.next()
    found = {}
    for number, (name, noisy) in enumerate(made.items()):
        noisy.save(folder / str(number))
        found[name] = members_of(folder / str(number)), noisy
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory, members_of):
    """The members of a file of each kind of budget, and the release behind it."""
    folder = tmp_path_factory.mktemp("sessions")
    return {kind: (held(folder / kind, budget), members_of(folder / kind)) for kind, budget in KINDS.items()}
