"""Normalised contributions: what one person adds is bounded as declared, and learners get tables they understand."""

import json
import math
import zipfile

import numpy as np
import pytest
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, Contributions, Domain, Neighbours, SeededRandomness, Structure
from dpgm_core.counting.statistic import pieces, sum_pieces
from dpgm_core.counting.table_counts import count
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.learning import Simulator, expected_absolute
from dpgm_core.releases.views import ScaledNoise, equalize_totals
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource
from tests.fixtures import Unread
from tests.persons import everybody, norms, rows_of, source_of, structures

AB = Domain.from_dict(
    {"attributes": {name: {"labels": ["away", "home", "work"], "unknown": "away"} for name in ("x1", "x2", "x3")}}
)
CHAIN = Structure(AB, [("x1",)], tied=[[("x1", "x2"), ("x2", "x3")]])


def count_contributions(source, structure, contributions):
    """The weighted tables of all records."""
    statistic = WeightedCounts(structure, contributions)
    return statistic.tables(sum_pieces(statistic, pieces(source, structure.domain, statistic.columns)))


def by_hand(structure, contributions, persons, rounded=math.floor):
    """The weighted tables, one row and one clique at a time; each person has at most r rows already."""
    names = structure.domain.names
    values = np.zeros(structure.cells, np.int64)
    for person in persons:
        for group, at in zip(structure.groups, structure.slices, strict=True):
            pairs = []
            for clique in group:
                labels = [structure.domain[name].labels for name in clique]
                for row in person:
                    codes = [row[names.index(name)] for name in clique]
                    said = [own[code] for own, code in zip(labels, codes, strict=True)]
                    if said and all(label == contributions.empty for label in said):
                        continue
                    shape = structure.domain.shape(clique)
                    cell = int(np.ravel_multi_index(codes, shape)) if codes else 0
                    pairs.append((clique, at.start + cell))
            for clique, cell in pairs:
                if contributions.per == "group":
                    share = len(pairs)
                else:
                    share = sum(1 for other, _ in pairs if other == clique)
                values[cell] += rounded(contributions.grid / share)
    return values


def counted(structure, contributions, persons, r, order=0, chunk=5):
    return count_contributions(source_of(structure, persons, r, order, chunk), structure, contributions).values


def declared(structure, contributions, neighbours, r):
    found = contributions.sensitivity(structure, neighbours, rows_per_person=r)
    return found.l0, found.l1, found.l2_squared, found.linf


def weightings():
    grids, empties = st.integers(1, 60), st.sampled_from([None, "0", "1"])
    return st.builds(Contributions, per=st.sampled_from(["clique", "group"]), grid=grids, empty=empties)


@pytest.mark.landing
@settings(max_examples=150)
@given(st.data(), structures(3), weightings())
def test_weights_are_those_counted_by_hand(data, structure, contributions):
    """Whatever the structure, the grid, the empty label, the order of the rows and the batches."""
    r = data.draw(st.integers(1, 3))
    persons = data.draw(st.lists(st.lists(rows_of(structure), min_size=1, max_size=r), max_size=4))
    order, chunk = data.draw(st.integers(0, 99)), data.draw(st.integers(1, 7))
    found = counted(structure, contributions, persons, r, order, chunk)
    assert found.tolist() == by_hand(structure, contributions, persons).tolist()


@settings(max_examples=60)
@given(st.data(), structures(3), weightings(), st.sampled_from(Neighbours), st.integers(1, 3))
def test_no_neighbours_are_further_apart_than_declared(data, structure, contributions, neighbours, r):
    """Whoever is added, removed or replaced, with more rows than count, in whatever order and batches."""
    person = st.lists(rows_of(structure), min_size=1, max_size=5)
    others = data.draw(st.lists(person, max_size=3))
    one = data.draw(person)
    another = data.draw(person) if neighbours is Neighbours.REPLACE_ONE else []
    before = counted(structure, contributions, [*others, one], r, data.draw(st.integers(0, 99)))
    after = counted(structure, contributions, [*others, another], r, data.draw(st.integers(0, 99)), chunk=2)
    for actual, bound in zip(norms(before - after), declared(structure, contributions, neighbours, r), strict=True):
        assert actual <= bound


def worst(structure, contributions, neighbours, r, count_rows=by_hand):
    """The largest L0, L1, squared L2 and Linf over all pairs of neighbours that differ in one person."""
    tables = np.unique([count_rows(structure, contributions, [person]) for person in everybody(structure, r)], axis=0)
    nobody = np.zeros((1, structure.cells), np.int64)
    others = tables if neighbours is Neighbours.REPLACE_ONE else nobody
    pairs = (norms(one - other) for one in tables for other in others)
    return tuple(max(column) for column in zip(*pairs, strict=True))


def sized(sizes, cliques, tied=()):
    return Structure(Domain.from_sizes(sizes), cliques, tied=tied)


SMALL = {
    "one clique": sized({"a": 2, "b": 2}, [("a", "b")]),
    "two cliques": sized({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")]),
    "tied edges": sized({"a": 2, "b": 2, "c": 2}, [], [[("a", "b"), ("b", "c")]]),
    "tied edges and a node": sized({"a": 2, "b": 2, "c": 2}, [("a",)], [[("a", "b"), ("b", "c")]]),
    "three tied": sized(dict.fromkeys("abc", 3), [], [[("a",), ("b",), ("c",)]]),
    "one-cell tables": sized({"a": 1, "b": 2}, [("a",), ("b",)]),
}


@pytest.mark.parametrize("empty", [None, "0"])
@pytest.mark.parametrize("per", ["clique", "group"])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", SMALL)
def test_the_declared_sensitivity_is_the_worst_case(name, neighbours, per, empty):
    """Over all persons of up to two rows: L1 and Linf are attained, L2 where all cells count (else it is a bound)."""
    structure, contributions = SMALL[name], Contributions(per=per, grid=12, empty=empty)
    seen = worst(structure, contributions, neighbours, 2)
    stated = declared(structure, contributions, neighbours, 2)
    assert all(actual <= bound for actual, bound in zip(seen, stated, strict=True)), (seen, stated)
    if min(structure.sizes) > 1:
        assert (seen[1], seen[3]) == (stated[1], stated[3])
        assert empty is not None or seen[2] == stated[2]


def test_the_numbers_of_the_case_study():
    """24 segments, a chain of six slots with tied edges: 5 D and 1 D per group, and 1 D for the node."""
    domain = Domain.from_sizes({f"x{t}": 4 for t in range(1, 7)})
    edges = [(f"x{t}", f"x{t + 1}") for t in range(1, 6)]
    chain = Structure(domain, [("x1",)], tied=[edges])
    clique = Contributions(per="clique", grid=120).sensitivity(chain, "add-remove", rows_per_person=24)
    group = Contributions(per="group", grid=120).sensitivity(chain, "replace-one", rows_per_person=24)
    assert (clique.l1, clique.l2_squared, clique.linf, clique.l0) == (6 * 120, 26 * 120**2, 5 * 120, 16 + 4)
    assert (group.l1, group.l2_squared, group.linf) == (4 * 120, 4 * 120**2, 120)
    untied = Contributions(per="group", grid=120).sensitivity(chain.untied(), "add-remove", rows_per_person=24)
    assert untied == Contributions(per="clique", grid=120).sensitivity(chain.untied(), "add-remove", rows_per_person=24)


def rounded_up(structure, contributions, persons):
    """Wrong: ceil(D / K)."""
    return by_hand(structure, contributions, persons, math.ceil)


def share_of_one_clique(structure, contributions, persons):
    """Wrong for "group": K over one clique only."""
    return by_hand(structure, evolve(contributions, per="clique"), persons)


def each_row_a_person(structure, contributions, persons):
    """Wrong: K over one row only."""
    return sum(by_hand(structure, contributions, [[row]]) for person in persons for row in person)


@pytest.mark.parametrize("wrong", [rounded_up, share_of_one_clique, each_row_a_person])
def test_a_wrong_weight_exceeds_the_declared_sensitivity(wrong):
    """The check above would have found each of these."""
    contributions = Contributions(per="group", grid=3)
    stated = declared(SMALL["tied edges"], contributions, Neighbours.ADD_REMOVE, 2)
    right = worst(SMALL["tied edges"], contributions, Neighbours.ADD_REMOVE, 2)
    seen = worst(SMALL["tied edges"], contributions, Neighbours.ADD_REMOVE, 2, wrong)
    assert right[1] <= stated[1] < seen[1]


def test_a_person_without_anything_to_count_adds_nothing():
    contributions = Contributions(per="group", empty="away")
    with_nobody = counted(CHAIN, contributions, [[(1, 1, 2)], [(0, 0, 0), (0, 0, 0)]], 2)
    assert with_nobody.tolist() == counted(CHAIN, contributions, [[(1, 1, 2)]], 2).tolist()
    assert counted(CHAIN, contributions, [], 2).sum() == 0


def test_each_row_is_a_person_without_a_key():
    """Then a row adds 1 to each clique, or shares 1 among the cliques of a group."""
    codes = as_source(np.array([[1, 1, 2], [0, 0, 1]]))
    plain = count(codes, CHAIN).tables.values
    assert (count_contributions(codes, CHAIN, Contributions(per="clique", grid=60)).values == 60 * plain).all()
    found = count_contributions(codes, CHAIN, Contributions(per="group", grid=60, empty="away"))
    assert found["x1"].tolist() == [0, 60, 0]
    assert found["x1", "x2"].tolist() == [[0, 60, 0], [0, 30, 30], [0, 0, 0]]


def test_many_persons_are_counted_piece_by_piece():
    """Persons are never split between pieces: 50,000 persons with 3 equal rows add 3 floor(D / 3) each."""
    people = np.repeat(np.arange(50_000), 3)
    source = PersonSource(
        source=as_source({"id": people, "a": np.ones(150_000, np.int64)}), person="id", rows_per_person=3
    )
    structure = sized({"a": 2}, [("a",)])
    assert count_contributions(source, structure, Contributions(per="clique", grid=10))["a"].tolist() == [0, 50_000 * 9]


def test_tables_that_cannot_fit_are_refused_with_their_size():
    structure = sized(dict.fromkeys("abcdefgh", 100), [tuple("abcdefgh")])
    with pytest.raises(dpgm.TooLarge, match="cells"):
        count_contributions(as_source(np.zeros((2, 8), int)), structure, Contributions(per="clique"))


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"per": "row"}, "per must be one of clique, group"),
        ({"per": "grup"}, "did you mean 'group'"),
        ({}, "must be a table"),
        ("group", "must be a table"),
        ({"per": "group", "girid": 3}, "did you mean 'grid'"),
        ({"per": "group", "grid": 0}, "grid must be a whole number"),
        ({"per": "group", "grid": 2.0}, "grid must be a whole number"),
        ({"per": "group", "grid": True}, "grid must be a whole number"),
        ({"per": "group", "grid": 2**30}, "grid must be a whole number"),
        ({"per": "group", "empty": ""}, "must name a label"),
        ({"per": "group", "empty": 0}, "must name a label"),
    ],
)
def test_bad_settings_are_refused(plain, message):
    with pytest.raises(dpgm.DpgmError, match=message):
        Contributions.parse(plain)


@pytest.mark.parametrize(
    ("contributions", "more", "message"),
    [
        (Contributions(per="group", grid=40), {}, "too coarse: a person can have 48"),
        (Contributions(per="clique", grid=10), {}, "too coarse: a person can have 24"),
        (Contributions(per="group", empty="Away"), {}, "did you mean 'away'"),
        (Contributions(per="group"), {"total": "public"}, "no public total"),
        (Contributions(per="group"), {"total": 500}, "no public total"),
        ({"per": "group"}, {}, "must be Contributions"),
        (Contributions(per="group"), {"learner": {"name": "psgd"}}, "rounds of subsamples"),
    ],
)
def test_what_cannot_be_is_refused_before_any_record_is_read(contributions, more, message):
    stated = {"neighbours": "add-remove", "person": "id", "rows_per_person": 24, "contributions": contributions} | more
    learner = stated.pop("learner", "naive-mle")
    with pytest.raises(dpgm.DpgmError, match=message):
        dpgm.fit(Unread(), CHAIN, Budget.pure(1), learner=learner, terms=dpgm.Terms(**stated))


def walks(persons, rows, seed=0):
    """Persons with different numbers of rows, of different habits, some of them away."""
    rng = np.random.default_rng(seed)
    ids, codes = [], []
    for person in range(persons):
        stays = rng.random() < 0.5
        for _ in range(rng.integers(1, rows + 1)):
            steps = [rng.integers(0, 3)]
            for _ in range(2):
                steps.append(steps[-1] if stays else rng.integers(0, 3))
            ids.append(person)
            codes.append(steps)
    return {"id": np.array(ids)} | {f"x{t + 1}": np.array(codes)[:, t] for t in range(3)}


def released(per="group", empty="away", budget=None, **more):
    weights = Contributions(per=per, empty=empty)
    terms = dpgm.Terms(neighbours="add-remove", person="id", rows_per_person=4, contributions=weights)
    spent = budget or Budget.pure(50)
    return dpgm.release(walks(400, 4), CHAIN, spent, terms=terms, randomness=SeededRandomness(4), **more)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_release_comes_back_from_its_file(mechanism, tmp_path):
    """Tables, weights and guarantee; the sensitivity is computed again."""
    budget = Budget.pure(2) if mechanism == "laplace" else Budget.zcdp(1)
    noisy = released(budget=budget, mechanism=mechanism)
    noisy.save(tmp_path / "r")
    back = dpgm.load_release(tmp_path / "r")
    assert back.contributions == noisy.contributions and back.tables.values.dtype == np.int64
    assert (back.tables.values == noisy.tables.values).all() and back.guarantee() == noisy.guarantee()
    assert back.totals.tolist() == noisy.totals.tolist() and back.total == noisy.total
    assert "at most 1 per group, in units of 1/5040, cells that are 'away' throughout left out" in back.guarantee()


def edited(path, **changes):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["release.json"])
    document["terms"] = {key: value for key, value in (document["terms"] | changes).items() if value is not ...}
    parts["release.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path


@pytest.mark.parametrize("changes", [
    {"contributions": {"per": "group", "grid": 2520, "empty": "away"}},
    {"contributions": {"per": "clique", "grid": 5040, "empty": "away"}},
    {"contributions": {"per": "group", "grid": 5040, "empty": "away", "more": 1}}, {"contributions": None},
    {"contributions": ...}, {"contributions": 3}, {"total": "public"},
])  # fmt: skip
def test_a_file_that_claims_other_weights_is_refused(changes, tmp_path):
    """A finer grid, another reading or none would make the same noise look like more privacy."""
    released().save(tmp_path / "r")
    dpgm.load_release(edited(tmp_path / "r"))
    with pytest.raises(dpgm.ModelFileError):
        dpgm.load_release(edited(tmp_path / "r", **changes))


@pytest.mark.parametrize("per", ["clique", "group"])
def test_totals_are_those_of_each_table(per):
    """With hardly any noise: each table's sum, and N between 0 and the number of persons."""
    noisy = released(per=per, budget=Budget.pure(10**5))
    assert noisy.totals == pytest.approx(noisy.tables.sums())
    assert noisy.totals[0] / 5040 < noisy.totals[1] / noisy.contributions.wholes(CHAIN)[1] < noisy.total * 1.2
    assert 200 < noisy.total < 400


def test_a_table_of_nothing_but_noise_has_a_sensible_total():
    """Its own sum says nothing; then the noise's spread stands in, so that no cell is multiplied out of reason."""
    noisy = released(budget=Budget.pure("1e-4"))
    assert (noisy.totals >= np.sqrt(np.asarray(CHAIN.sizes) * noisy.variances) * 0.999).all()
    assert np.isfinite(equalize_totals(noisy).tables.values).all()


@given(st.floats(1e-4, 1e4), st.sampled_from(["laplace", "gaussian"]))
@example(1 / 5040, "laplace")
@settings(max_examples=25)
def test_scaled_noise_is_the_noise_of_a_scaled_table(factor, mechanism):
    """Density, score, dual, spread and draws change as those of factor times the noise do."""
    needed = dpgm.Sensitivity(l0=2, l1=600, l2_squared=600**2, linf=600)
    noise = dpgm.make("mechanism", mechanism).noise(needed, Budget.zcdp("0.3"))
    scaled = ScaledNoise(noise=noise, factor=factor)
    points = np.linspace(-5, 5, 101) * math.sqrt(noise.variance) + 0.25
    assert scaled.logpdf(factor * points) == pytest.approx(noise.logpdf(points) - math.log(factor))
    assert scaled.score(factor * points) == pytest.approx(noise.score(points) / factor)
    slope = np.gradient(scaled.logpdf(factor * points), factor * points)[5:-5]
    assert slope[slope != 0] == pytest.approx(scaled.score(factor * points)[5:-5][slope != 0], abs=0.3 / factor)
    assert expected_absolute(scaled) == pytest.approx(factor * expected_absolute(noise))
    assert scaled.variance == pytest.approx(factor**2 * noise.variance) and scaled.cost == noise.cost
    assert scaled.dual.bound * factor == pytest.approx(noise.dual.bound)
    assert scaled.dual.curvature == pytest.approx(noise.dual.curvature * factor**2)
    drawn = scaled.draw((3,), SeededRandomness(1))
    assert drawn == pytest.approx(factor * noise.draw((3,), SeededRandomness(1)))


@pytest.mark.parametrize("learner", ["naive-mle", "cgm-em", "eb-map"])
@pytest.mark.parametrize("per", ["clique", "group"])
def test_learners_learn_the_shares_of_each_table(per, learner):
    """With little noise the model has each table's own proportions, though their sums differ threefold."""
    noisy = released(per=per, empty=None)
    level = noisy.tables.values / noisy.tables.repeat(noisy.totals / [1, 2])
    found = dpgm.learn(noisy, learner)
    marginals = dpgm.make("inference", "junction-tree").compile(CHAIN).infer(found.model.potentials).marginals
    assert np.abs(marginals.values - level).max() < 0.03
    assert found.release is noisy and found.model.release is noisy


class Careless:
    """A learner that returns a release of its own making."""

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        assert "ReplayCurator" in repr(curator) and curator.replayed
        assert curator.remaining == curator.budget and curator.terms.neighbours is Neighbours.ADD_REMOVE
        view = curator.release()
        assert view.original is curator.released[0] and view.contributions is None
        mine = evolve(view, terms=evolve(view.terms, unit="mine"))
        model = dpgm.Model(curator.structure, dpgm.Tables.zeros(curator.structure), releases=[mine])
        return dpgm.Fit(model=model, releases=(mine,))


def test_what_is_kept_is_the_release_and_not_its_levelled_view():
    """A view has no noise that a file could restore."""
    noisy = released()
    assert dpgm.learn(noisy, Careless()).release is noisy


def test_a_plan_prices_the_weights_in_persons():
    """The same noise as the release, without a record; one person has sd of 1 unit / D."""
    noisy = released(per="group", budget=Budget.pure(2))
    planned = dpgm.plan(CHAIN, Budget.pure(2), terms=noisy.terms, records=300)
    assert planned.sensitivity == noisy.calibrations[0].sensitivity and planned.cost == noisy.cost
    sd = math.sqrt(noisy.variances[0])
    assert [table.noise for table in planned.tables] == pytest.approx([sd / 5040, 2 * sd / 5040])
    assert planned.to_dict()["contributions"]["per"] == "group"
    coarse = dpgm.Terms(neighbours="add-remove", contributions=Contributions(per="group", grid=1))
    with pytest.raises(dpgm.BudgetError, match="too coarse"):
        dpgm.plan(CHAIN, Budget.pure(2), terms=coarse)


def test_budgets_per_table_are_charged_by_their_own_weights():
    """split = "optimal" and a budget per clique calibrate each group on its own."""
    noisy = released(per="clique", split="optimal", budget=Budget.pure(2))
    assert [one.sensitivity.l1 for one in noisy.calibrations] == [5040, 2 * 5040]
    assert noisy.cost <= Budget.pure(2)
    with pytest.raises(dpgm.BudgetError, match="weight rows differently"):
        dpgm.ReplayCurator([released(per="group"), noisy])


def test_a_simulated_release_is_one_of_persons():
    """Drawn as learners saw it: levelled tables with their scaled noise, not units of 1/D. Error bars are refused."""
    noisy = released(budget=Budget.pure(20))
    level, model = equalize_totals(noisy), dpgm.learn(noisy).model
    engine = dpgm.make("inference", "junction-tree").compile(CHAIN)
    simulator = Simulator(noisy, engine, model.potentials)
    drawn = [simulator.draw(SeededRandomness(seed)) for seed in range(40)]
    mean = np.mean([one.tables.values for one in drawn], axis=0)
    expected = noisy.total * engine.infer(model.potentials).marginals.values
    # 5 standard errors of 40 draws, each at most multinomial with two hits of a person, and noise
    allowed = 5 * np.sqrt((2 * expected + level.tables.repeat(level.variances)) / 40)
    assert (np.abs(mean - expected) < allowed + 0.5).all()
    assert abs(np.mean([one.total for one in drawn]) - noisy.total) < 10
    assert np.std([one.tables.values[0] % 1 for one in drawn]) > 0.1  # not cut off to whole numbers
    with pytest.raises(dpgm.OptionError, match="how many rows"):  # its spread is only nominal
        dpgm.bootstrap(model, 3)


def test_a_ledger_is_charged_once(tmp_path):
    """And nothing when the settings are refused."""
    ledger = dpgm.Ledger.create(
        tmp_path / "l", name="l", budget=Budget.pure(60), neighbours="add-remove", person="id", rows_per_person=4
    )
    with pytest.raises(dpgm.BudgetError):
        released(ledger=ledger, split="optimal", budget=Budget.approx(1, 1e-6))
    assert not ledger.history()
    released(ledger=ledger)
    assert len(ledger.history()) == 1 and ledger.remaining() == Budget.pure(10)
