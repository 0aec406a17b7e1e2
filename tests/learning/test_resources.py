"""What a learner takes of the machine is said by plans, and refused before a charge where the machine lacks it."""

import math
import sys

import numpy as np
import pytest
from attrs import evolve, frozen

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure, TooLarge, Workload
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning import Resources
from dpgm_core.learning import contract as resources
from dpgm_core.learning.contract import check_resources, memory_limit
from dpgm_core.pipeline import planning as verbs
from dpgm_core.pipeline import run as pipeline
from dpgm_core.pipeline.run import Run
from tests.fixtures import Unchecked
from tests.learning.pairs import TERMS, Undirected, new_ledger

DOMAIN = Domain.from_sizes({"a": 2, "b": 2})
PAIR = Structure(DOMAIN, [("a", "b")])
CODES = np.array([[0, 0], [1, 1]] * 50)
EPSILON = Budget.pure(1)
GIB = 2**30


@frozen(kw_only=True)
class Hungry(Unchecked):
    """It would take so much, and learns like another one."""

    answer: object = Resources(memory=4 * GIB, cpu_seconds=3, calls=10)

    def estimate_resources(self, structure, inference):
        return self.answer

    def learn(self, curator, inference, *, randomness, progress):
        return dpgm.make("learner", "naive-mle").learn(curator, inference, randomness=randomness, progress=progress)


def test_what_the_machine_lacks_is_refused_before_the_charge(tmp_path, monkeypatch):
    """By plan, check and fit, for named cliques, private bins' and a selector's; nothing is charged."""
    monkeypatch.setattr(resources, "memory_limit", lambda: 2 * GIB)
    book = new_ledger(tmp_path, EPSILON)
    asked = {"learner": Hungry(), "terms": TERMS}
    pairs = Workload.all(DOMAIN, 2)
    for refused in (
        lambda: pipeline.plan(PAIR, EPSILON, **asked),
        lambda: Run(CODES, PAIR, EPSILON, **asked).check(),
        lambda: pipeline.fit(CODES, PAIR, EPSILON, ledger=book, **asked),
        lambda: pipeline.plan_selection(Undirected(), EPSILON, pairs, **asked),
        lambda: Run(CODES, Undirected(), EPSILON, workload=pairs, **asked).check(),
        lambda: pipeline.fit(CODES, Undirected(), EPSILON, workload=pairs, ledger=book, **asked),
    ):
        with pytest.raises(TooLarge, match=r"learner Hungry needs about 4\.0 GiB .* this machine has 2\.0 GiB"):
            refused()
    assert not book.history()


def test_a_plan_says_what_a_fit_takes():
    """With the time of the engine's calls; of a learner that does not say, nothing."""
    told = pipeline.plan(PAIR, EPSILON, learner=Hungry(), terms=TERMS)
    assert told.learner_memory == 4 * GIB
    assert told.learner_seconds == pytest.approx(3 + 10 * told.seconds_per_inference)
    assert told.to_dict()["learner_memory"] == 4 * GIB and "4.0 GiB" in told._repr_html_()
    silent = pipeline.plan(PAIR, EPSILON, terms=TERMS)
    assert silent.learner_memory is None and silent.to_dict()["learner_seconds"] is None


@pytest.mark.parametrize("learner", ["eb-map", "naive-mle", "cgm-em"])
def test_the_first_learners_say_what_they_take(learner):
    """Of one column of so many labels: it goes by their number, once there are many, and not by its square."""
    sizes = [Structure(Domain.from_sizes({"a": labels}), [("a",)]) for labels in (10_000, 20_000)]
    few, many = (check_resources(dpgm.make("learner", learner), one, JunctionTree()) for one in sizes)
    beyond = [one.memory - resources.PROGRAM for one in (few, many)]
    assert 5e6 < beyond[0] < 200e6 and beyond[1] == pytest.approx(2 * beyond[0], rel=0.01)
    assert 0.1 < few.seconds(1e-3) < many.seconds(1e-3) < 20


def test_the_other_learners_say_what_they_take():
    """By the number of cells; bayes-net as the learner that it makes do the work."""
    domain = Domain.from_sizes({"a": 1000, "b": 500})
    table, graph = Structure(domain, [("a", "b")]), dpgm.Dag(domain, {"b": ["a"]}).structure()
    engine = JunctionTree()
    for learner, structure in (("psgd", table), ("local", graph), ("bayes-net-two-stage", graph)):
        told = check_resources(dpgm.make("learner", learner), structure, engine)
        assert 250 <= (told.memory - resources.PROGRAM) / structure.cells <= 600, learner
    for inner in ("cgm-em", "local"):
        other = check_resources(dpgm.make("learner", inner), graph, engine)
        told = check_resources(dpgm.make("learner", {"name": "bayes-net", "learner": inner}), graph, engine)
        assert told.memory == pytest.approx(other.memory, rel=0.01) and told.calls == other.calls


@frozen(kw_only=True)
class Bounded(Undirected):
    """Its model has so many cells at most."""

    most: int = 100

    def plan(self, workload, budget, terms, records=None):
        return evolve(
            super().plan(workload, budget, terms, records),
            limits={"max_fit_seconds": 1, "max_fit_bytes": 16 * self.most},
            order=2,
        )


@frozen(kw_only=True)
class ByCells(Hungry):
    """1 MiB for each cell."""

    def estimate_resources(self, structure, inference):
        return Resources.by_cells(structure, each=2**20, cpu_seconds=0.5, calls=3)


def test_a_selection_states_the_most_that_its_learner_may_take(monkeypatch):
    """It is that of the largest candidates within the limits; a note, no refusal, where the machine has less."""
    wanted = Workload.all(Domain.from_sizes({"a": 5, "b": 4, "c": 3}), 3)  # pairs of 20, 15 and 12 cells
    asked = {"learner": ByCells(), "terms": TERMS}
    for most, cells in ((100, 12 + 47), (36, 12 + 35), (33, 12 + 32), (11, 12)):
        told = pipeline.plan_selection(Bounded(most=most), EPSILON, wanted, **asked)
        assert told.learner_memory == resources.PROGRAM + cells * 2**20, most
        assert told.learner_seconds == told.to_dict()["learner_seconds"] == 0.5 * cells
    monkeypatch.setattr(verbs, "memory_limit", lambda: 2**20)
    assert "lower max_fit_seconds" in pipeline.plan_selection(Bounded(), EPSILON, wanted, **asked).notes[-1]
    assert pipeline.plan_selection(Undirected(), EPSILON, wanted, **asked).learner_memory is None
    told = pipeline.plan_selection(Bounded(), EPSILON, wanted, "naive-mle", terms=TERMS)
    assert told.learner_memory > resources.PROGRAM


def test_an_answer_that_is_none():
    """It is the plugin's fault, and a learner without the method is asked nothing."""
    with pytest.raises(IncompatiblePlugin, match="learner Hungry estimates its resources as int"):
        check_resources(Hungry(answer=7), PAIR, JunctionTree())
    assert check_resources(object(), PAIR, JunctionTree()) is None


@pytest.mark.parametrize("said", ["1000\n", "max\n", None])
def test_a_container_has_less_than_its_machine(tmp_path, monkeypatch, said):
    """Where the system says how much; elsewhere what the machine has."""
    if said is not None:
        (tmp_path / "memory.max").write_text(said)
    monkeypatch.setattr(resources, "_MEMORY_LIMIT_FILES", [])
    whole = memory_limit()
    monkeypatch.setattr(resources, "_MEMORY_LIMIT_FILES", [tmp_path / "memory.max"])
    assert memory_limit() == (1000 if said == "1000\n" else whole)


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
def test_a_limit_of_the_process_counts(monkeypatch):
    """`ulimit -v` is what a shell's owner sets."""
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (12345, -1) if which == resource.RLIMIT_AS else (-1, -1))
    assert memory_limit() == 12345
    monkeypatch.setattr(resource, "getrlimit", lambda which: (-1, -1))
    assert memory_limit() > 12345


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1, True, "1"])
@pytest.mark.parametrize("name", ["memory", "cpu_seconds", "calls"])
def test_an_estimate_that_is_no_amount_is_refused(name, bad):
    """NaN compares as less than any limit, so it would let every fit begin."""
    with pytest.raises(IncompatiblePlugin, match=name):
        Resources(**{"memory": 1, "cpu_seconds": 1.0, "calls": 1, name: bad})
