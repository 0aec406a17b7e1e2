"""One release, right tables and split; the fit of the other learner, read off; what is refused, and when."""

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from attrs import frozen
from dpgm_bayes_net.learner import BayesNet, MeasuredCurator

import dpgm_core as dpgm
from dpgm_core.pipeline.run import Run
from dpgm_testing.curators import TrappedRecords
from dpgm_testing.learning import sample_codes
from dpgm_testing.unusual import TruncatedLaplace

from .networks import ADD, DAG, DOMAIN, curator_of, turned

ENGINE = dpgm.make("inference", "junction-tree")


def network(dag=DAG, seed=1):
    rng = np.random.default_rng(seed)
    tables = {family[0]: 0.05 + rng.random(dag.domain.shape(family)) ** 2 for family in dag.families}
    return dpgm.Model.from_cpds(dag, {child: table / table.sum(axis=0) for child, table in tables.items()})


TRUTH = network()
CODES = sample_codes(TRUTH, 2000, 1)


def live(source=CODES, budget=None, mechanism="laplace", structure=None, **more):
    records = source if isinstance(source, TrappedRecords) else TrappedRecords(source)
    return curator_of(records, structure or DAG.structure(), budget, mechanism, **more)


def learned(curator, inference=ENGINE, **options):
    learner = BayesNet(**options)
    return learner.learn(curator, inference, randomness=dpgm.SeededRandomness(1), progress=dpgm.silent)


def fitted(learner="bayes-net", budget=None, mechanism="laplace", **more):
    more = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(3)} | more
    return dpgm.fit(CODES, DAG.structure(), budget or dpgm.Budget.pure(1), mechanism, learner, **more)


class Spied:
    """Forwards to a curator what the protocol has, and remembers what releases were asked for."""

    def __init__(self, curator):
        self.inner, self.asked = curator, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def release(self, **asked):
        self.asked.append({name: value for name, value in asked.items() if value is not None})
        return self.inner.release(**asked)


# --- what it asks of the curator -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "cliques", "split"),
    [
        ({}, DAG.maximal, "optimal"),
        ({"measure": "families"}, DAG.families, "optimal"),
        ({"split": "even"}, DAG.maximal, "even"),
        ({"split": "curator", "learner": "local"}, DAG.maximal, None),
    ],
)
def test_it_asks_once_for_these_tables_with_this_split(options, cliques, split):
    """All the budget goes to one release; `planned_tables` says the same before."""
    spied = Spied(live())
    fit = learned(spied, **options)
    arguments = {"cliques": cliques} | ({} if split is None else {"split": split})
    assert spied.asked == [arguments] and spied.inner.remaining.is_zero
    assert fit.model.structure == DAG.structure()
    tables_planned, split_planned = BayesNet(**options).planned_tables(DAG.structure())
    assert (tables_planned.cliques, split_planned) == (cliques, split) and spied.inner.released[
        0
    ].structure == tables_planned
    noises = len(set(spied.inner.released[0].variances))
    assert noises == (len(set(tables_planned.sizes)) if split == "optimal" else 1)


def test_epsilon_and_delta_buy_unequal_gaussian_noise_for_exactly_the_budget():
    """The curator accounts for all noises together. A noise of which that cannot be done is refused with what would do,
    alike by the plan, the dry run and the fit, and nothing is read; equal noise it can buy."""
    budget = dpgm.Budget.approx(1, "0.0001")
    curator = live(budget=budget, mechanism="gaussian")
    learned(curator)
    release = curator.released[0]
    assert release.cost == budget and len(set(release.variances)) == 2
    for noise in (TruncatedLaplace(), dpgm.make("mechanism", "laplace")):
        source = TrappedRecords(CODES)
        for verb in (
            lambda: dpgm.plan(DAG.structure(), budget, noise, terms=ADD, learner="bayes-net"),  # noqa: B023
            lambda: Run(source, DAG.structure(), budget, noise, "bayes-net", terms=ADD).check(),  # noqa: B023
            lambda: dpgm.fit(source, DAG.structure(), budget, noise, "bayes-net", terms=ADD),  # noqa: B023
        ):
            with pytest.raises(dpgm.BudgetError, match=r"for Gaussian noise only, not for .*; ask for mechanism 'gaus"):
                verb()
        assert source.reads == 0
    curator = live(budget=budget, mechanism=TruncatedLaplace())
    learned(curator, learner="local", split="even")
    assert len(set(curator.released[0].variances)) == 1 and curator.released[0].cost == budget


def test_a_replay_is_taken_as_it_is():
    """Whatever its tables and split; of several releases all as one."""
    release = dpgm.release(CODES, DAG.structure(), dpgm.Budget.pure(1), neighbours="add-remove")
    spied = Spied(dpgm.ReplayCurator(release, DAG.structure()))
    fit = learned(spied)
    assert spied.asked == [{}] and fit.model.structure == DAG.structure()
    other = dpgm.release(CODES, DAG.structure(), dpgm.Budget.pure(1), neighbours="add-remove")
    two = dpgm.ReplayCurator([release, other], DAG.structure())
    assert learned(two).converged and two.pooled


def test_its_release_alone_is_enough_to_learn_again(tmp_path):
    """A release of the largest families names no roots; its file knows the graph that it was made for."""
    done = fitted()
    done.releases[0].save(tmp_path / "r.dpgm")
    saved = dpgm.load_release(tmp_path / "r.dpgm")
    assert saved.structure.cliques == DAG.maximal
    assert dpgm.learn(saved, "bayes-net").model.kl(done.model) < 1e-9
    assert dpgm.learn(saved, "local").model.structure == DAG.structure()


def test_a_structure_check_is_left_to_the_curator():
    """With a share set aside the release costs the rest, and the model carries both."""
    done = fitted(split={"tables": "even", "holdout": 0.1})
    assert len(done.releases) == 2 and done.releases[-1].holdout
    assert sum(one.cost.epsilon for one in done.releases) == 1
    assert done.releases[0].structure.cliques == DAG.maximal


# --- what it makes of it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["eb-map", "cgm-em"])
def test_it_is_the_projection_of_the_other_learners_fit(inner):
    """Bit for bit, from the same release; the certificate has the other's numbers and KL(fit || network) as `Model.kl`
    has it, which is not 0, as noise makes the parents of c depend on each other."""
    dag = dpgm.Dag(DOMAIN, {"c": ["a", "b"], "d": ["c"]})
    curator = live(structure=dag.structure())
    fit = learned(curator, learner=inner)
    release = curator.released[0]
    alone = dpgm.make("learner", inner).learn(
        dpgm.ReplayCurator(release, release.structure),
        ENGINE,
        randomness=dpgm.SeededRandomness(1),
        progress=dpgm.silent,
    )
    network = dpgm.project(alone.model, dag)
    assert np.array_equal(fit.model.potentials.values, network.potentials.values)
    assert fit.trace == alone.trace and fit.converged == alone.converged
    assert dict(alone.certificate).items() <= dict(fit.certificate).items()
    assert fit.certificate["projection_kl"] == pytest.approx(alone.model.kl(network), abs=1e-9)
    assert fit.certificate["projection_kl"] > 1e-6 and abs(fit.model.log_partition) < 1e-9


def test_without_noise_it_is_maximum_likelihood():
    """At a budget so large that noise is nothing the conditional tables are the records' own, as the fit is then."""
    actual = dpgm.cpds(fitted(budget=dpgm.Budget.pure(10**5)).model, DAG)
    for family in DAG.families:
        counts = np.zeros(DOMAIN.shape(family))
        np.add.at(counts, tuple(CODES[:, DOMAIN.names.index(name)] for name in family), 1)
        assert actual[family[0]] == pytest.approx(counts / counts.sum(axis=0), abs=0.02)


@pytest.mark.parametrize("inner", ["eb-map", "local"])
@pytest.mark.parametrize("epsilon", ["1e-6", "1e-8"])
def test_with_nothing_but_noise_rows_are_distributions_still(inner, epsilon):
    model = fitted({"name": "bayes-net", "learner": inner}, dpgm.Budget.pure(epsilon)).model
    for table in dpgm.cpds(model, DAG).values():
        assert np.all(np.isfinite(table)) and np.all(table >= 0)
        assert table.sum(axis=0) == pytest.approx(1, abs=1e-9)
    assert model.log_partition == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("neighbours", "person"), [("add-remove", 1), ("replace-one", 2)])
def test_one_person_moves_each_table_by_what_its_noise_is_for(neighbours, person):
    """Over all pairs of records, by enumeration: the largest change of all families' tables is the stated L1."""
    structure = dpgm.Structure(DOMAIN, DAG.maximal)
    everybody = [np.array(codes) for codes in np.ndindex(*DOMAIN.sizes.values())]
    tables = [np.concatenate([counted(one, clique).reshape(-1) for clique in structure.cliques]) for one in everybody]
    changes = tables if person == 1 else [one - other for one in tables for other in tables]
    stated = dpgm.Terms(neighbours=neighbours).sensitivity(structure)
    assert stated.l1 == max(np.abs(change).sum() for change in changes) == person * len(DAG.maximal)
    assert stated.l2_squared == max((change**2).sum() for change in changes)


def counted(record, clique):
    table = np.zeros(DOMAIN.shape(clique))
    table[tuple(record[DOMAIN.names.index(name)] for name in clique)] = 1
    return table


def test_names_and_orders_change_nothing():
    """A release with attributes renamed and reversed, and labels too, gives the same network: eb-map stops where a step
    is short, so to 0.01 of a probability."""
    release = fitted().releases[0]
    first = dpgm.cpds(dpgm.learn(release, learner="bayes-net", structure=DAG.structure()).model, DAG)
    new = dict(zip("abcd", "zyxw", strict=True))
    domain = dpgm.Domain.from_sizes({new[name]: DOMAIN[name].size for name in reversed(DOMAIN.names)})
    structure = dpgm.Structure(domain, [("w", "x"), ("y", "z"), ("x", "y", "z"), ("z",)])
    measured = dpgm.Structure(domain, [tuple(new[name] for name in clique) for clique in release.structure.cliques])
    model = dpgm.learn(turned(release, new, measured), learner="bayes-net", structure=structure).model
    assert model.structure == structure
    again = dpgm.cpds(model, dpgm.Dag.of(structure))
    assert again["y"] == pytest.approx(np.flip(first["b"]), abs=0.01)
    assert again["x"] == pytest.approx(np.flip(first["c"]).transpose(0, 2, 1), abs=0.01)
    assert again["w"] == pytest.approx(np.flip(first["d"]), abs=0.01)


def test_a_session_with_merged_codes_is_learned_over_what_it_counted():
    """The graph is over the merged codes, and so is the network; it answers about all codes, and saves."""
    workload = dpgm.Workload.all(DOMAIN)
    curator = live(budget=dpgm.Budget.zcdp(1))
    with curator.session(workload=workload) as session:
        session.measure([(name,) for name in DOMAIN.names], session.budget * "0.2")
        session.coarsen({"b": [0, 1, 1]})
        session.measure([("a", "b"), ("b", "c"), ("c", "d")], session.remaining)
    release = curator.released[0]
    coarse = dpgm.Dag(release.structure.domain, {"b": ["a"], "c": ["b"], "d": ["c"]})
    for learner in ("bayes-net", "local", {"name": "bayes-net", "learner": "local"}):
        model = dpgm.learn(release, learner=learner, structure=coarse.structure()).model
        assert model.structure == coarse.structure() and model.domain == DOMAIN
        assert model.marginal(("b", "c")).shape == (3, 2)
        exact = TRUTH.marginal(("b", "c"))
        assert np.abs(model.marginal(("b", "c"))[0] - exact[0]).max() < 0.05


def test_approximate_inference_is_said():
    """Off a loop's beliefs the tables are read approximately: a note says so, and no divergence is certified."""
    dag = dpgm.Dag(DOMAIN, {"b": ["a"], "c": ["a"], "d": ["b", "c"]})
    engine = dpgm.make("inference", "loopy-bp")
    fit = learned(live(structure=dag.structure(), budget=dpgm.Budget.pure(5)), inference=engine)
    assert any(note.startswith("inference is approximate: the conditional tables") for note in fit.notes)
    assert "projection_kl" not in fit.certificate
    assert all(table.sum(axis=0) == pytest.approx(1) for table in dpgm.cpds(fit.model, dag).values())


# --- refits and loops ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["eb-map", "cgm-em", "local"])
def test_it_is_bootstrapped_with_the_others_tuning(inner, tmp_path):
    """From its file, by name: `tuning` is the other learner with what it chose; replicates are networks, and around the
    model as far as the truth is, within a factor of 4."""
    done = fitted({"name": "bayes-net", "learner": inner})
    tuned = done.tuning.get("learner", {})
    assert tuned.get("name", "local") == inner
    if inner == "eb-map":
        assert len(tuned["scales"]) > 1 and tuned["widening"] == 1.25
        again = dpgm.learn(done.releases[0], learner={"name": "bayes-net", **done.tuning}, structure=DAG.structure())
        assert done.model.kl(again.model) < 1e-3
        dpgm.make("learner", {"name": "bayes-net", **done.tuning}).check(DAG.structure(), ENGINE)
    done.model.save(tmp_path / "m.dpgm")
    model = dpgm.bootstrap(dpgm.load_model(tmp_path / "m.dpgm"), 8, randomness=dpgm.SeededRandomness(1))
    spread = np.mean([model.kl(one) for one in model.replicates])
    assert TRUTH.kl(model) / 4 < spread < 4 * TRUTH.kl(model)
    assert all(abs(one.log_partition) < 1e-5 for one in model.replicates)


def test_a_loop_is_repeatable_whoever_learns_inside():
    """A learner that draws randomness of its own to tune itself gives the same fit in the same loop, so that a seeded
    selection is the same again."""
    release = fitted({"name": "bayes-net", "learner": "naive-mle"}, dpgm.Budget.pure("0.2")).release
    one, two = (
        BayesNet(learner="naive-mle").fitter(ENGINE)(release, DAG.structure(), None).model.potentials.values
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


@frozen(kw_only=True)
class Plain:
    """A learner without refitter and fitter, which tunes a number."""

    number: int | None = dpgm.option(None, help="what it chose")

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        """One release, and the model whose potentials are the logarithms of its tables."""
        release = curator.release()
        values = [np.log(np.maximum(table, 1.0)).reshape(-1) for table in release.tables.arrays()]
        model = dpgm.Model(
            curator.structure, dpgm.Tables(release.structure, np.concatenate(values)).embed(curator.structure)
        )
        return dpgm.Fit(model=model, tuning={"number": 3})


def test_a_learner_without_refits_and_loops_is_called_through_learn():
    """Fits in a loop and refits are what `learn` makes of the release."""
    curator = live()
    fit = learned(curator, learner=Plain())
    assert fit.tuning == {"learner": {"number": 3}}
    learner, release = BayesNet(learner=Plain()), curator.released[0]
    loop = learner.fitter(ENGINE)
    for before in (None, fit):
        assert np.array_equal(
            loop(release, DAG.structure(), before).model.potentials.values, fit.model.potentials.values
        )
    refit = learner.refitter(fit.model, ENGINE)(release)
    assert np.array_equal(refit.values, fit.model.potentials.values)


def test_refits_start_from_networks_with_zeros_too():
    """-inf is a potential of a network, and no start for who moves potentials: refits are as finite as from others."""
    done = fitted()
    values = done.model.potentials.values.copy()
    values[DAG.structure().slices[3]] = [-np.inf, -np.inf, 0, 0]  # d is 1, whatever c
    model = dpgm.Model(
        DAG.structure(), dpgm.Tables(DAG.structure(), values), releases=done.releases, provenance=done.model.provenance
    )
    learner = dpgm.make("learner", {"name": "bayes-net", **done.tuning})
    assert np.isfinite(learner.refitter(model, ENGINE)(done.releases[0]).values).all()


def test_the_base_of_the_other_learner_stays():
    """eb-map misses its base in a network's potentials, so each refit is a `learn`; the base stays the object that it
    is."""
    public = network(seed=2)
    learner = dpgm.make("learner", "bayes-net", learner=dpgm.make("learner", "eb-map", base=public))
    done = fitted(learner)
    model = dpgm.bootstrap(done.model, 2, learner=learner, randomness=dpgm.SeededRandomness(1))
    assert len(model.replicates) == 2
    with pytest.raises(dpgm.OptionError, match="option 'base' of learner 'eb-map' was a Model given as an object"):
        dpgm.bootstrap(done.model, 2)


# --- what is refused, before anything is read ------------------------------------------------------------------------


def refusals():
    """What is wrong, the structure, the other learner, and what is said."""
    chain, tied = dpgm.Structure.chain(DOMAIN), dpgm.Structure(DOMAIN, [], tied=[[("a",), ("c",)]])
    twice = dpgm.Structure(DOMAIN, [("a",), ("b",), ("b", "a"), ("c",), ("d",)])
    families = DAG.structure()
    return {
        "chain": (chain, "eb-map", "'d' stands first in no clique"),
        "tied": (tied, "eb-map", "some of its cliques are tied"),
        "two heads": (twice, "eb-map", "'b' stands first in two cliques"),
        "itself": (families, "bayes-net", "cannot use learner bayes-net, which divides a budget"),
        "two stages": (families, "bayes-net-two-stage", "cannot use learner bayes-net-two-stage, which"),
        "unknown": (families, "eb-mop", "there is no learner 'eb-mop'; did you mean 'eb-map'"),
        "options": (families, {"name": "eb-map", "scales": [1.0]}, "scales has 1 numbers"),
    }


@pytest.mark.parametrize("case", list(refusals()))
def test_it_is_refused_in_one_line_and_nothing_is_read(case):
    """By `check`, and by `learn` where nobody asked that."""
    structure, inner, said = refusals()[case]
    learner, source = BayesNet(learner=inner), TrappedRecords(CODES)
    curator = live(source, structure=structure)
    for attempt in (
        lambda: learner.check(structure, ENGINE),
        lambda: learner.learn(curator, ENGINE, randomness=dpgm.SeededRandomness(1), progress=dpgm.silent),
    ):
        with pytest.raises(dpgm.DpgmError) as caught:
            attempt()
        assert said in str(caught.value) and "\n" not in str(caught.value)
    assert source.reads == 0 and curator.remaining == curator.budget


@pytest.mark.parametrize("verb", ["plan", "fit", "plan_selection", "select"])
def test_a_learner_of_rounds_is_refused_by_every_verb(verb):
    """Nothing declares that it takes rounds: it is told where it asks for them, before anything is read."""
    learner, source = {"name": "bayes-net", "learner": "psgd"}, TrappedRecords(CODES)
    budget = dpgm.Budget.zcdp(1)
    arguments = {
        "plan": lambda: dpgm.plan(DAG.structure(), budget, "gaussian", learner=learner, terms=ADD),
        "fit": lambda: dpgm.fit(source, DAG.structure(), budget, "gaussian", learner, terms=ADD),
        "plan_selection": lambda: dpgm.plan_selection("privbayes", budget, DOMAIN, learner, terms=ADD),
        "select": lambda: dpgm.select(source, "privbayes", budget, DOMAIN, learner, terms=ADD),
    }
    with pytest.raises(dpgm.OptionError, match="its own learner trains on rounds of subsampled records; take one"):
        arguments[verb]()
    assert source.reads == 0


@frozen(kw_only=True)
class Greedy:
    """A learner that asks for what there is not."""

    ask: Callable = dpgm.option(None, help="what it asks a curator")

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        """Never comes to a fit."""
        self.ask(curator)
        return dpgm.Fit(model=TRUTH)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda door: door.release(budget=door.budget * "0.5"), "asks for other releases than one of all tables"),
        (lambda door: door.release(cliques=[("a",)]), "asks for other releases than one of all tables"),
        (lambda door: door.rounds(3, sampling_rate=0.5), "trains on rounds of subsampled records"),
        (lambda door: door.session(workload=dpgm.Workload.all(DOMAIN)), "opens a session"),
        (lambda door: door.structure, "asked for none"),
    ],
)
def test_a_learner_that_does_not_ask_for_one_release_is_refused_unpaid(ask, said):
    """Also one of which that could not be known before."""
    source = TrappedRecords(CODES)
    curator = live(source)
    with pytest.raises(dpgm.OptionError, match=f"its own learner {said}"):
        learned(curator, learner=Greedy(ask=ask))
    assert source.reads == 0 and curator.remaining == curator.budget


def test_a_second_release_is_refused():
    """The first is paid, and all there is."""
    curator = live()
    with pytest.raises(dpgm.OptionError, match="asks for other releases than one of all tables and all the budget"):
        learned(curator, learner=Greedy(ask=lambda door: (door.release(), door.release())))
    assert len(curator.released) == 1


def test_noise_that_the_other_learner_refuses_is_refused_before_the_charge():
    """What it says of the noise, by `accept`, reaches the curator."""

    def refuse(noises):
        raise dpgm.BudgetError(f"none of these {len(noises)} noises")

    choosy = Greedy(ask=lambda door: door.release(accept=refuse))
    source = TrappedRecords(CODES)
    for budget, mechanism in ((dpgm.Budget.pure(1), "laplace"), (dpgm.Budget.approx(1, "0.0001"), "gaussian")):
        for split in ("optimal", "even"):
            curator = Spied(live(source, budget=budget, mechanism=mechanism))
            with pytest.raises(dpgm.BudgetError, match="none of these 2 noises"):
                learned(curator, learner=choosy, split=split)
            assert len(curator.asked) == 1 and source.reads == 0 and curator.remaining == curator.budget


def test_the_door_is_the_protocol():
    door = MeasuredCurator(live(), DAG.structure(), DAG.maximal, None)
    for name, member in vars(dpgm.Curator).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            names = dict.fromkeys(inspect.signature(member).parameters)
            inspect.signature(getattr(MeasuredCurator, name)).bind(**names)
        elif isinstance(member, property):
            assert name in dir(door)
