"""Models of two related tables, beside enumeration of whole roots."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core import (
    Attribute,
    Budget,
    DataError,
    Domain,
    InferenceError,
    Model,
    ModelFileError,
    OptionError,
    SeededRandomness,
    Structure,
    StructureError,
    Tables,
    Terms,
    fit,
    learn,
    load_model,
    load_release,
)
from dpgm_core.domain.constraints import Listed, Ordered
from dpgm_core.domain.related import Related
from dpgm_core.models.related import RelatedModel
from dpgm_core.sources.related import RelatedSource

ROOT, CHILDREN = Domain.from_sizes({"own": 2}), Domain.from_sizes({"age": 3, "sex": 2})
KINDS = list(itertools.product(range(3), range(2)))  # of a child


def related(most, **more):
    return Related(root=ROOT, children=CHILDREN, key="id", max_children=most, **more)


def world(most, seed=0):
    """Whole roots with their probabilities: the first child depends on the root and the size, a second on the first,
    and each later one on the root, the first and the one before."""
    rng = np.random.default_rng(seed)
    start = rng.dirichlet(np.full(2 * (most + 1), 2.0)).reshape(2, most + 1)
    first = rng.dirichlet(np.full(6, 0.7), (2, most + 1))
    second = rng.dirichlet(np.full(6, 0.7), (2, 6))
    later = rng.dirichlet(np.full(6, 0.7), (2, 6, 6))
    roots = []
    for own, size in itertools.product(range(2), range(most + 1)):
        for kinds in itertools.product(range(6), repeat=size):
            chance = start[own, size]
            for place, kind in enumerate(kinds):
                if place == 0:
                    chance *= first[own, size, kind]
                elif place == 1:
                    chance *= second[own, kinds[0], kind]
                else:
                    chance *= later[own, kinds[0], kinds[place - 1], kind]
            roots.append((own, tuple(KINDS[kind] for kind in kinds), chance))
    return roots


def pair_of(one, own, children, at):
    """The record of a root with the child at a place drawn, by name."""
    size, none = len(children), tuple(CHILDREN.sizes.values())
    record = {"own": own, "size": size}
    slots = {"first.": children[0] if size else none}
    if one.max_children > 1:
        record["position"] = 0 if size < 2 else 1 if at == 1 else 2
        slots[""] = children[at] if size > 1 else none
    if one.max_children > 2:
        slots["previous."] = children[at - 1] if at > 1 else none
    record |= {
        slot + name: code for slot, child in slots.items() for name, code in zip(CHILDREN.names, child, strict=True)
    }
    return record


def exact(one, roots):
    """The model whose one table is the distribution of pairs of a world."""
    names = one.pair.names
    table = np.zeros(one.pair.shape(names))
    for own, children, chance in roots:
        places = range(1, len(children)) if len(children) > 1 else [0]
        for at in places:
            record = pair_of(one, own, children, at)
            table[tuple(record[name] for name in names)] += chance / len(places)
    structure = Structure(one.pair, [names])
    with np.errstate(divide="ignore"):
        return RelatedModel(Model(structure, Tables.from_arrays(structure, {names: np.log(table)})), one)


def counted(roots, names, condition=lambda own, size, child: True):
    """A table over children by enumeration."""
    sizes = ROOT.sizes | CHILDREN.sizes | {"size": 5}
    table = np.zeros([sizes[name] for name in names])
    for own, children, chance in roots:
        for child in children:
            if condition(own, len(children), child):
                values = {"own": own, "size": len(children), "age": child[0], "sex": child[1]}
                table[tuple(values[name] for name in names)] += chance
    return table / table.sum()


def paired(roots, first, second, condition=lambda own: True):
    """A table over ordered pairs of children of one root by enumeration."""
    at = {name: place for place, name in enumerate(CHILDREN.names)}
    table = np.zeros(CHILDREN.shape((first, second)))
    for own, children, chance in roots:
        for one, other in itertools.permutations(children, 2):
            if condition(own):
                table[one[at[first]], other[at[second]]] += chance
    return table / table.sum()


THREE = world(3)
EXACT = exact(related(3), THREE)


@pytest.mark.parametrize("names", [("age",), ("sex", "age"), ("own", "age"), ("age", "size"), ("size", "sex", "own")])
def test_tables_of_children_are_those_of_an_enumeration(names):
    expected = counted(THREE, names)
    index = tuple(slice(4) if name == "size" else slice(None) for name in names)
    assert np.allclose(EXACT.marginal(names), expected[index], atol=1e-12)
    assert np.allclose(EXACT.marginals_of([names])[names], expected[index], atol=1e-12)


def test_what_is_given_of_roots_and_children_means_all_children():
    """A child column that is given counts children, also where only root columns are asked for."""
    found = EXACT.marginal("age", {"own": 1, "sex": "0"})
    assert np.allclose(found, counted(THREE, ("age",), lambda own, size, child: own == 1 and child[1] == 0), atol=1e-12)
    found = EXACT.marginal(("own", "sex"), {"size": 3})
    assert np.allclose(found, counted(THREE, ("own", "sex"), lambda own, size, child: size == 3), atol=1e-12)
    found = EXACT.marginal("own", {"age": 2})
    assert np.allclose(found, counted(THREE, ("own",), lambda own, size, child: child[0] == 2), atol=1e-12)
    alone = sum(chance for own, children, chance in THREE if own == 1)
    assert EXACT.marginal("own")[1] == pytest.approx(alone)  # roots, those without children too
    mean = sum(len(children) * chance for _, children, chance in THREE)
    assert EXACT.mean_size == pytest.approx(mean)


@pytest.mark.parametrize("pair", [("age", "age"), ("age", "sex"), ("sex", "age")])
def test_pairs_of_siblings_are_those_of_an_enumeration(pair):
    assert np.allclose(EXACT.marginal(siblings=pair), paired(THREE, *pair), atol=1e-12)
    found = EXACT.marginal(given={"own": 1}, siblings=pair)
    assert np.allclose(found, paired(THREE, *pair, lambda own: own == 1), atol=1e-12)
    assert EXACT.standing(siblings=pair) == "by definition"


@pytest.mark.landing
def test_pairs_further_apart_are_sampled_and_say_so():
    """With four children the second and the fourth are in no pair."""
    roots = world(4, seed=3)
    model = exact(related(4), roots)
    found = model.marginal(siblings=("age", "age"))
    assert np.abs(found - paired(roots, "age", "age")).sum() / 2 < 0.005
    assert model.standing(siblings=("age", "age")) == "sampled" and model.standing("age") == "by definition"
    found = model.marginal(siblings=("age", "sex"), given={"own": 0})
    assert np.abs(found - paired(roots, "age", "sex", lambda own: own == 0)).sum() / 2 < 0.005


def test_a_sample_has_the_tables_of_the_world():
    """Children that follow the first one and the one before are drawn as they are; 40,000 roots, four children.

    A table of K cells of n draws is off by about sqrt(K / (2 pi n)): 12 cells of 80,000 children, .005.
    """
    roots = world(4, seed=5)
    drawn = exact(related(4, order="line"), roots).sample(40_000, form="labels", randomness=SeededRandomness(1))
    sampled = [(own, children, count / 40_000) for (own, children), count in Counter(whole(drawn)).items()]
    for names in (("own", "age"), ("age", "size"), ("age", "sex")):
        assert np.abs(counted(sampled, names) - counted(roots, names)).sum() / 2 < 0.01
    for pair in (("age", "age"), ("age", "sex")):
        assert np.abs(paired(sampled, *pair) - paired(roots, *pair)).sum() / 2 < 0.01
    later, truth = ([(own, some[1:], chance) for own, some, chance in every] for every in (sampled, roots))
    assert np.abs(paired(later, "age", "age") - paired(truth, "age", "age")).sum() / 2 < 0.01
    third = np.zeros((2, 3, 3))  # the second and the third child, of 13,000 in their order
    for table, every in zip(third, (later, truth), strict=True):
        for _, some, chance in every:
            if len(some) > 1:
                table[some[0][0], some[1][0]] += chance
    third /= third.sum(axis=(1, 2), keepdims=True)
    assert np.abs(third[0] - third[1]).sum() / 2 < 0.02


def whole(drawn):
    """Roots with their children out of two tables, in the order of the children's rows."""
    assert drawn.root["id"].to_pylist() == list(range(1, drawn.root.num_rows + 1))
    children = [[] for _ in range(drawn.root.num_rows)]
    columns = (drawn.children[name].to_pylist() for name in ("id", "age", "sex"))
    for key, age, sex in zip(*columns, strict=True):
        children[key - 1].append((int(age), int(sex)))
    return list(zip(map(int, drawn.root["own"].to_pylist()), map(tuple, children), strict=True))


@pytest.mark.landing
def test_rounded_children_have_the_tables_of_the_model():
    """Conditionals that do not fit together lead away from the tables they were learned with; a few steps lead back."""
    model = random_model(related(4, order="line"), 11)
    expected = {names: model.marginal(names) for names in (("own", "age"), ("size", "sex"), ("own", "sex"))}
    apart = {}
    for method in ("rounded", "independent"):
        drawn = whole(model.sample(20_000, method=method, form="labels", randomness=SeededRandomness(4)))
        sampled = [(own, children, 1.0) for own, children in drawn]
        tables = {names: counted(sampled, names) for names in expected}
        apart[method] = [np.abs(tables[names] - expected[names]).sum() / 2 for names in expected]
    assert max(apart["rounded"]) < 0.015 and min(apart["independent"]) > 0.03, apart


def test_each_root_has_exactly_its_number_of_children_in_order():
    """Numbers run from 1 to the size in rows of one root; none is above r, and no `absent` is written."""
    drawn = exact(related(3, order="line"), THREE).sample(500, form="texts", randomness=SeededRandomness(2))
    keys, numbers = drawn.children["id"].to_numpy(), drawn.children["line"].to_numpy()
    counts = np.bincount(keys, minlength=501)[1:]
    assert counts.max() == 3 and counts.min() == 0 and drawn.root.num_rows == 500
    assert numbers.tolist() == [number for count in counts for number in range(1, count + 1)]
    assert drawn.root.column_names == ["id", "own"] and drawn.children.column_names == ["id", "line", "age", "sex"]
    assert not {"absent"} & {value for name in ("age", "sex") for value in drawn.children[name].to_pylist()}
    sizes = np.asarray(EXACT.model.marginal("size"))
    assert np.abs(np.bincount(counts, minlength=4) / 500 - sizes).max() < 2 / 500  # rounded


def test_without_an_order_children_are_shuffled_within_their_root():
    """The first child of this world is always of age 0 and the others never."""
    roots = [(0, ((0, 0), (1, 0), (1, 1)), 0.5), (1, ((0, 1), (2, 1)), 0.5)]
    plain = exact(related(3), roots).sample(3000, form="labels", randomness=SeededRandomness(3))
    kept = whole(plain)
    first = np.mean([children[0][0] == 0 for _, children in kept])
    assert abs(first - (1 / 3 + 1 / 2) / 2) < 5 * math.sqrt(0.25 / 3000)
    assert all(sum(age == 0 for age, _ in children) == 1 for _, children in kept)
    ordered = whole(exact(related(3, order="line"), roots).sample(300, form="labels"))
    assert all(children[0][0] == 0 for _, children in ordered)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_small_worlds(most):
    """r = 1 and 2, no children at all, and one root."""
    roots = world(most, seed=7)
    model = exact(related(most), roots)
    assert np.allclose(model.marginal(("own", "age")), counted(roots, ("own", "age")), atol=1e-12)
    if most > 1:
        assert np.allclose(model.marginal(siblings=("sex", "age")), paired(roots, "sex", "age"), atol=1e-12)
    one = model.sample(1, randomness=SeededRandomness(0))
    assert one.root.num_rows == 1 and one.children.num_rows <= most
    none = exact(related(most), [(0, (), 0.25), (1, (), 0.75)])
    drawn = none.sample(40, randomness=SeededRandomness(0))
    assert drawn.root.num_rows == 40 and drawn.children.num_rows == 0
    assert drawn.children.schema.names == ["id", "age", "sex"]
    with pytest.raises(InferenceError, match="probability 0"):
        none.marginal("age")


# --- Releases -------------------------------------------------------------------------------------


def records(one, roots, count, seed):
    """So many whole roots of a world, and the source of their pairs."""
    rng = np.random.default_rng(seed)
    drawn = [roots[at] for at in rng.choice(len(roots), count, p=[chance for *_, chance in roots])]
    keys = np.arange(count)
    homes = pa.table({"id": keys, "own": [own for own, *_ in drawn]})
    rows = [
        (key, line, *child) for key, (_, some, _) in zip(keys, drawn, strict=True) for line, child in enumerate(some)
    ]
    columns = np.array(rows).reshape(-1, 4).T
    persons = pa.table(dict(zip(("id", "line", "age", "sex"), columns, strict=True)))
    every = [(own, children, 1 / count) for own, children, _ in drawn]
    return RelatedSource(root=homes, children=persons, related=one), every


CLIQUES = [
    ("own", "size", "first.age"),
    ("first.age", "first.sex"),
    ("own", "size", "age"),
    ("size", "position", "age"),
    ("first.age", "age", "size"),
    ("age", "sex", "own"),
    ("previous.age", "age", "position"),
]


def fitted(one, roots, count, seed, budget, cliques=CLIQUES):
    rows, every = records(one, roots, count, seed)
    terms = Terms(neighbours="add-remove", related=one)
    run = fit(rows, Structure(one.pair, cliques), budget, "gaussian", terms=terms, randomness=SeededRandomness(seed))
    return run, every


def test_a_model_file_and_a_release_remember_both_tables(tmp_path):
    """The statement is in the terms; learning from the saved release gives the same answers; one table is refused."""
    one = related(3, order="line")
    run, _ = fitted(one, THREE, 500, 1, Budget.approx(5, 1e-6), [*CLIQUES[:3], CLIQUES[5]])
    model = RelatedModel(run.model)
    model.save(tmp_path / "household.dpgm")
    again = RelatedModel.load(tmp_path / "household.dpgm")
    assert again.related == one and np.allclose(again.marginal(("own", "age")), model.marginal(("own", "age")))
    assert again.sample(randomness=SeededRandomness(1)).root.num_rows == round(run.release.total)
    assert load_model(tmp_path / "household.dpgm").related == one
    run.release.save(tmp_path / "household.release")
    learned = RelatedModel(learn(load_release(tmp_path / "household.release")).model)
    assert np.allclose(learned.marginal(("own", "age")), model.marginal(("own", "age")), atol=1e-6)
    stamp = json.loads(model.sample(10).children.schema.metadata[b"dpgm"])
    assert stamp["synthetic"] is True and stamp["guarantee"] == model.model.guarantee()
    pair = Domain.from_sizes({"a": 2})
    flat = fit({"a": np.zeros(50, int)}, Structure(pair, [("a",)]), Budget.pure(1), neighbours="add-remove").model
    flat.save(tmp_path / "flat.dpgm")
    with pytest.raises(ModelFileError, match="one table"):
        RelatedModel.load(tmp_path / "flat.dpgm")
    with pytest.raises(StructureError, match="one table"):
        RelatedModel(flat)


@pytest.mark.landing
def test_a_release_with_next_to_no_noise_gives_the_tables_of_the_records():
    """Learned, then sampled: cross tables and siblings of the records return."""
    cliques = [
        ("own", "size", "first.age", "age", "position"),
        ("previous.age", "age", "first.age", "own", "position"),
        ("age", "sex"),
        ("first.age", "first.sex", "sex"),
    ]
    run, every = fitted(related(3), THREE, 30_000, 4, Budget.zcdp(1e4), cliques)
    model = RelatedModel(run.model)
    sampled = [(own, children, 1.0) for own, children in whole(model.sample(30_000, form="labels"))]
    for names in (("own", "age"), ("age", "size")):
        assert np.abs(counted(sampled, names) - counted(every, names)).sum() / 2 < 0.01
        assert (
            np.abs(model.marginal(names) - counted(every, names)[:, : 4 if names[1] == "size" else None]).sum() < 0.02
        )
    assert np.abs(paired(sampled, "age", "age") - paired(every, "age", "age")).sum() / 2 < 0.01


def test_intervals_have_the_errors_of_a_ratio():
    """Where one table tells the whole answer, its variance follows from noise and sampling by the delta method."""
    one = related(1, order="line")
    run, _ = fitted(one, world(1), 4000, 2, Budget.zcdp(0.5), [("size", "first.age"), ("own",), ("first.sex",)])
    model = RelatedModel(run.model)
    found = model.intervals("age", level=0.9)
    release = run.release
    number, _ = release.structure.find(("size", "first.age"))
    noise = float(release.variances[number])
    share = np.asarray(model.marginal("age"))
    table = np.asarray(release.tables.group(number), dtype=float).reshape(2, 4)[1, :3]
    present, total = table.sum(), release.total
    mass = float(model.model.marginal("size")[1])
    # Of p_c = n_c / sum n: (e_c - p_c) over the sum; noise is the same in each of three cells.
    by_noise = noise * ((1 - share) ** 2 + 2 * share**2) / (total * mass) ** 2
    by_sampling = share * (1 - share) / (total * mass)
    assert np.allclose(found.standard_error**2, by_noise + by_sampling, rtol=0.05)
    assert found.standing == "measured" and found.low.min() >= 0
    width = 1.6449 * found.standard_error
    assert np.all(np.abs(np.maximum(found.high - table / present, table / present - found.low) - width) < 0.35 * width)


@pytest.fixture(scope="module")
def learned_model():
    """Of 3,000 roots."""
    return RelatedModel(fitted(related(3, order="line"), THREE, 3000, 3, Budget.approx(3, 1e-6))[0].model)


@pytest.mark.parametrize(
    "question",
    [
        {"attributes": ("own", "age")},
        {"attributes": "age", "given": {"own": 1}},
        {"attributes": "own", "given": {"age": 1}},
        {"siblings": ("age", "age")},
    ],
)
def test_features_give_the_answer(learned_model, question):
    """The functional of an interval has the value of the answer itself at the model."""
    found = learned_model.intervals(**question)
    assert np.allclose(found.estimate, learned_model.marginal(**question), atol=1e-9)
    assert np.all(found.low <= found.estimate) and np.all(found.estimate <= found.high)
    assert np.all(found.standard_error > 0)


@pytest.mark.landing
def test_intervals_of_children_and_siblings_cover():
    """Of nominal 90 % at least 86 %, over 200 simulations of 2,000 roots each; the truth is that of the population."""
    one = related(3, order="line")
    questions = [
        {"attributes": ("own", "age")},
        {"attributes": "age", "given": {"own": 1}},
        {"siblings": ("age", "age")},
    ]
    truths = [counted(THREE, ("own", "age")), counted(THREE, ("age",), lambda own, size, child: own == 1)]
    truths.append(paired(THREE, "age", "age"))
    hits = [[] for _ in questions]
    cliques = [
        ("own", "size", "first.age"),
        ("own", "size", "age"),
        ("size", "first.age", "age"),
        ("size", "previous.age", "age"),
        ("sex", "age"),
        ("first.age", "first.sex"),
    ]
    for seed in range(200):
        model = RelatedModel(fitted(one, THREE, 2000, seed, Budget.approx(3, 1e-6), cliques)[0].model)
        for held, question, truth in zip(hits, questions, truths, strict=True):
            found = model.intervals(**question, level=0.9)
            held.append((found.low <= truth) & (truth <= found.high))
    shares = [float(np.mean(held)) for held in hits]
    assert min(shares) >= 0.86, shares


# --- Constraints and given roots ------------------------------------------------------------------


def constrained():
    """A head is adult, and no other child older than the head; children are younger than 18 where the root is 0."""
    years = Attribute.from_dict("years", {"type": "integer", "bins": [0, 18, 40, 90]})
    since = Attribute.from_dict("since", {"type": "integer", "bins": [0, 18, 40, 90]})
    return Related(
        root=Domain([Attribute.of_size("own", 2), since]),
        children=Domain([years, Attribute.of_size("sex", 2)]),
        key=("household", "in_household"),
        max_children=4,
        order="line",
        constraints=[
            Listed(name="adult", columns=("first.years",), combinations=((years.labels[0],),)),
            Ordered(name="younger", columns=("years", "first.years")),
            Ordered(name="lived", columns=("since", "first.years")),
        ],
    )


def random_model(one, seed):
    rng = np.random.default_rng(seed)
    names = one.pair.names
    cliques = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.5] + [(name,) for name in names]
    structure = Structure(one.pair, cliques)
    return RelatedModel(Model(structure, Tables(structure, rng.normal(size=structure.cells))), one)


@pytest.mark.parametrize("seed", range(3))
def test_sampled_rows_of_both_tables_keep_constraints(seed):
    """Codes and values: the head is adult, others are not older, and nobody lives longer in a place than the head."""
    one = constrained()
    model = random_model(one, seed)
    drawn = model.sample(3000, randomness=SeededRandomness(seed))
    line = drawn.children["line"].to_numpy()
    years = np.array([math.nan if value is None else value for value in drawn.children["years"].to_pylist()])
    head = np.full(3001, np.nan)
    head[drawn.children["in_household"].to_numpy()[line == 1]] = years[line == 1]
    assert np.nanmin(head) >= 18
    others = head[drawn.children["in_household"].to_numpy()]
    assert np.all((years <= others) | np.isnan(years) | np.isnan(others)) and np.sum(years[line > 1] < 18) > 10
    since = np.array([math.nan if value is None else value for value in drawn.root["since"].to_pylist()])
    assert np.all((since <= head[1:]) | np.isnan(since) | np.isnan(head[1:]))


def test_children_of_given_roots():
    """Rows stay, keys are theirs, and each child is drawn given its root; what is missing is drawn."""
    given = pa.table({"id": ["a", "b", "c"] * 4000, "own": [0, 1, None] * 4000, "town": [5, 6, 7] * 4000})
    given = given.set_column(0, "id", pa.array([f"{key}{at}" for at, key in enumerate(given["id"].to_pylist())]))
    made = EXACT.complete(given, form="labels", randomness=SeededRandomness(1))
    assert made.root.equals(given)
    keys, ages = np.array(made.children["id"].to_pylist()), np.array(made.children["age"].to_pylist()).astype(int)
    owns = np.array([{"a": 0, "b": 1, "c": 2}[key[0]] for key in keys])
    assert set(keys) <= set(given["id"].to_pylist())
    for own in range(2):
        found = np.bincount(ages[owns == own], minlength=3) / np.sum(owns == own)
        expected = counted(THREE, ("age",), lambda here, size, child, own=own: here == own)
        assert np.abs(found - expected).sum() / 2 < 0.03
    assert json.loads(made.children.schema.metadata[b"dpgm"])["private"] is False
    sized = EXACT.complete(pa.table({"own": [0, 1, 1], "size": [0, 3, 2]}), randomness=SeededRandomness(1))
    assert np.bincount(sized.children["id"].to_numpy(), minlength=4).tolist() == [0, 0, 3, 2]
    for keys in ([1, 1], [1, None], ["a", ""]):
        with pytest.raises(DataError, match="must differ"):
            EXACT.complete(pa.table({"id": keys, "own": [0, 1]}))
    with pytest.raises(DataError, match="row 2"):
        EXACT.complete(pa.table({"own": [0, 5]}))


# --- Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"attributes": "agee"}, "no column 'agee'"),
        ({"attributes": "first.age"}, "no column 'first.age'"),
        ({"attributes": "position"}, "no column 'position'"),
        ({"attributes": ()}, "at least one column"),
        ({"attributes": ("age", "age")}, "twice"),
        ({"attributes": "age", "given": {"age": 1}}, "twice, or one that is given"),
        ({"siblings": ("age", "own")}, "child columns"),
        ({"attributes": "own", "siblings": ("age", "age")}, "no others"),
        ({"siblings": ("age", "age"), "given": {"sex": 1}}, "only root columns"),
    ],
)
def test_what_is_no_question_is_refused(question, message):
    with pytest.raises(StructureError, match=message):
        EXACT.marginal(**question)


@pytest.mark.landing
def test_intervals_of_pairs_that_are_sampled_need_replicates():
    """Of four children some pairs are in no table; the other questions have their formula."""
    run, _ = fitted(related(4, order="line"), world(4), 400, 6, Budget.approx(5, 1e-6))
    model = RelatedModel(run.model)
    assert np.all(model.intervals("age").standard_error > 0)
    with pytest.raises(OptionError, match="no replicates"):
        model.intervals(siblings=("age", "sex"))


def test_refusals_of_models_and_samples():
    one = related(2, order="line")
    with pytest.raises(StructureError, match="of a fit give its model"):
        RelatedModel(fitted(related(3), THREE, 50, 6, Budget.zcdp(1))[0])
    structure = Structure(ROOT, [("own",)])
    with pytest.raises(StructureError, match="other columns"):
        RelatedModel(Model(structure, Tables.zeros(structure)), one)
    with pytest.raises(OptionError, match="number of roots is unknown"):
        EXACT.sample()
    with pytest.raises(OptionError, match="'labels', 'values' or 'texts'"):
        EXACT.sample(3, form="codes")
    with pytest.raises(StructureError, match="no child has siblings"):
        exact(related(1), world(1)).marginal(siblings=("age", "age"))
    run, _ = fitted(one, world(2), 500, 1, Budget.approx(3, 1e-6), [("size", "first.age", "age"), ("first.sex",)])
    model = RelatedModel(run.model)
    with pytest.raises(StructureError, match="no release behind the model measured 'sex'"):
        model.marginal("sex")
    assert model.sample(5).children.column_names == ["id", "line", "age"] and model.sample(5).root.column_names == [
        "id"
    ]
    for call in (lambda: run.model.sample(5), lambda: run.model.complete(pa.table({"own": [0]}))):
        with pytest.raises(StructureError, match="RelatedModel"):
            call()
