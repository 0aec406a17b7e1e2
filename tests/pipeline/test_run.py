"""The public face: each name of the contract works as it is written."""

import inspect
from fractions import Fraction

import attrs
import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, DataError, Domain, Structure, Tables, Terms
from dpgm_core.errors import UnknownComponent
from dpgm_core.pipeline.run import Run
from tests.fixtures import Unchecked, seeded

DOMAIN = Domain.from_sizes({"a": 3, "b": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b")])
CODES = np.array([[0, 0], [1, 1], [2, 1]] * 30)


def test_the_signature_of_fit():
    """Order, defaults, and what has none."""
    parameters = inspect.signature(dpgm.fit).parameters
    positional = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == ["data", "structure", "budget", "mechanism", "learner", "inference"]
    defaults = {name: one.default for name, one in parameters.items() if one.default is not one.empty}
    assert (defaults["mechanism"], defaults["learner"]) == (None, None)
    assert (defaults["inference"], defaults["split"]) == ("junction-tree", "even")
    assert defaults["randomness"] is defaults["ledger"] is None
    assert len(parameters) <= 15 and len(inspect.signature(dpgm.release).parameters) <= 12
    assert len(inspect.signature(dpgm.plan).parameters) <= 10
    assert len(inspect.signature(dpgm.LiveCurator).parameters) <= 11


def test_the_relation_is_stated_once():
    """By itself or within terms; there is no default, and twice is refused."""
    for said in (
        {},
        {"terms": dpgm.Terms(neighbours="add-remove"), "neighbours": "add-remove"},
        {"terms": "add-remove"},
    ):
        with pytest.raises(dpgm.BudgetError, match="neighbours"):
            dpgm.fit(CODES, STRUCTURE, Budget.pure(1), **said)


def test_names_tables_and_objects_are_the_same(tmp_path):
    """With one seed, each way of naming the components gives the same model."""
    names = {"mechanism": "laplace", "learner": "eb-map", "inference": "junction-tree"}
    tables, objects = [{"name": name} for name in names.values()], [dpgm.make(*one) for one in names.items()]
    made = [
        dpgm.fit(CODES, STRUCTURE, Budget.pure(1), *parts, **seeded(3))
        for parts in ((), names.values(), tables, objects)
    ]
    for fit in made:
        assert np.array_equal(fit.model.potentials.values, made[0].model.potentials.values)
        assert fit.trace
    made[0].model.save(tmp_path / "m.dpgm")
    assert np.array_equal(dpgm.load_model(tmp_path / "m.dpgm").marginal("a"), made[0].model.marginal("a"))
    again = dpgm.learn(made[0].release, "eb-map", "junction-tree", randomness=dpgm.SeededRandomness(3))
    assert np.array_equal(again.model.potentials.values, made[0].model.potentials.values)


def test_releases_go_without_a_learner():
    """release(...) then learn(...), also into a larger structure that holds the measured cliques."""
    release = dpgm.release(CODES, Structure(DOMAIN, [("a",), ("b",)]), Budget.zcdp(2), neighbours="add-remove")
    assert release.cost == Budget.zcdp(2)
    done = dpgm.learn(release, structure=STRUCTURE)
    assert done.model.structure == STRUCTURE
    with pytest.raises(dpgm.OptionError, match="load_release"):
        dpgm.learn("x.release.dpgm")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"structure": [("a", "b")]}, dpgm.StructureError),
        ({"budget": 1}, dpgm.BudgetError),
        ({"neighbours": "none"}, dpgm.BudgetError),
        ({"mechanism": "laplce"}, UnknownComponent),
        ({"learner": {"name": "naive-mle", "l3": 1}}, dpgm.OptionError),
        ({"learner": {"name": "naive-mle", "l2": float("nan")}}, dpgm.OptionError),
        ({"inference": 3}, dpgm.OptionError),
        ({"data": 3}, dpgm.DataError),
        ({"data": "no-such-file.csv"}, dpgm.DataError),
        ({"data": CODES.astype(float)}, dpgm.DataError),
        ({"terms": "add-remove"}, dpgm.BudgetError),
        ({"ledger": "no.ledger"}, dpgm.ModelFileError),
        ({"learner": {"name": "eb-map", "scales": [1.0]}}, dpgm.OptionError),
        *(
            (
                {"structure": Structure.complete(Domain.from_sizes({f"x{i}": 10 for i in range(20)})), "learner": name},
                kind,
            )
            for name, kind in (("eb-map", dpgm.TooLarge), ("naive-mle", dpgm.TooLarge), ("cgm-em", dpgm.TooLarge))
        ),
    ],
)
def test_wrong_entries_charge_nothing(tmp_path, change, error):
    """Every argument of fit, wrong: its own error, and an untouched ledger."""
    ledger = dpgm.Ledger.create(
        tmp_path / "x.ledger", name="x", budget=Budget.pure(1), neighbours="add-remove", unit="one person"
    )
    right = {"data": CODES, "structure": STRUCTURE, "budget": Budget.pure(1), "neighbours": "add-remove"}
    with pytest.raises(error):
        dpgm.fit(**{**right, "ledger": ledger, "save_release": tmp_path / "r.dpgm", **change})
    assert ledger.history() == ()
    assert not (tmp_path / "r.dpgm").exists()


@attrs.frozen(kw_only=True)
class Independent(Unchecked):
    """Every attribute on its own: it has no use for an engine."""

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        structure = Structure(release.structure.domain, [(name,) for name in release.structure.domain.names])
        return dpgm.Fit(model=dpgm.Model(structure, Tables.zeros(structure)))


def nested_releases() -> tuple[list[dpgm.NoisyTables], np.ndarray]:
    """Three releases of one data set, N public: margins with little noise, pairs with much, and one pair again; and
    the tables of their generalised least squares by brute force: over the counts of all records, whose sum is N."""
    domain = Domain.from_sizes({"a": 3, "b": 2, "c": 2})
    codes = np.random.default_rng(1).integers(0, [3, 2, 2], size=(6000, 3))
    codes[:1500, 0] = 0
    asked = [
        ([("a",), ("b",)], Budget.pure("1/5"), "laplace"),
        ([("a", "b"), ("c", "b")], Budget.zcdp("1/2000"), "gaussian"),
        ([("b", "a"), ("c",)], Budget.zcdp("1/5000"), "gaussian"),
    ]
    terms = Terms(neighbours="add-remove", total="public")
    releases = [
        dpgm.release(
            codes, Structure(domain, cliques), budget, name, terms=terms, randomness=dpgm.SeededRandomness(number)
        )
        for number, (cliques, budget, name) in enumerate(asked)
    ]
    records = np.array(list(np.ndindex(3, 2, 2)))

    def counted(structure: Structure, scale: np.ndarray) -> np.ndarray:
        rows = []
        for (clique,), shape, sd in zip(structure.groups, structure.shapes, scale, strict=True):
            at = np.ravel_multi_index(records[:, [domain.names.index(name) for name in clique]].T, shape)
            rows.append((at == np.arange(np.prod(shape))[:, None]) / sd)
        return np.concatenate(rows)

    deviations = [one.variances**0.5 for one in releases]
    rows = [counted(one.structure, sd) for one, sd in zip(releases, deviations, strict=True)]
    seen = [one.tables.values / one.tables.repeat(sd) for one, sd in zip(releases, deviations, strict=True)]
    exactly = 1e6  # the sum is known
    matrix = np.vstack([*rows, np.full((1, len(records)), exactly)])
    x = np.linalg.lstsq(matrix, np.concatenate([*seen, [exactly * 6000]]), rcond=None)[0]
    union = Structure(domain, [("a",), ("b",), ("a", "b"), ("c", "b"), ("c",)])
    return releases, counted(union, np.ones(5)) @ x / 6000


def test_several_releases_with_nested_cliques_are_one_fit():
    """Each measured clique has a table of its own, and a fit to all is their generalised least squares: exactly for
    maximum likelihood without a penalty, within a standard error for the default, which also shrinks."""
    releases, nearest = nested_releases()
    delta = "1e-6"
    exact = dpgm.learn(releases, {"name": "naive-mle", "l2": 0, "project": False}, conversion_delta=delta)
    assert exact.model.structure.cliques == (("a",), ("b",), ("a", "b"), ("c", "b"), ("c",))
    np.testing.assert_allclose(exact.model.marginals().values, nearest, atol=2e-5)
    wrong = releases[1].tables["a", "b"].sum(axis=1) / 6000  # who believes the pairs alone
    default = dpgm.learn(releases, conversion_delta=delta).model.marginal("a")
    sd = releases[0].variances[0] ** 0.5 / 6000
    assert np.abs(default - nearest[:3]).max() < sd < np.abs(wrong - nearest[:3]).max() / 3


@pytest.mark.parametrize("learner", ["cgm-em", "eb-map", "naive-mle"])
def test_every_learner_of_one_release_takes_several(learner):
    """Same cliques, equal Gaussian noise: the fit to two is that to one release of their mean and half the variance."""
    codes = np.random.default_rng(2).integers(0, [3, 2], size=(500, 2))
    parts = [dpgm.release(codes, STRUCTURE, Budget.zcdp("1/50"), "gaussian", **seeded(seed)) for seed in (1, 2)]
    seed = dpgm.SeededRandomness(4)
    both = dpgm.learn(parts, learner, randomness=seed)
    assert both.releases == both.model.releases == tuple(parts) and both.model.cost == Budget.zcdp("1/25")
    whole = both.release
    assert whole.variances == pytest.approx(parts[0].variances / 2)
    noise = dpgm.make("mechanism", "gaussian").noise(dpgm.Sensitivity.of(STRUCTURE, "add-remove"), Budget.zcdp("1/25"))
    one = attrs.evolve(parts[0].calibrations[0], noise=noise)
    alone = attrs.evolve(
        parts[0],
        tables=whole.tables,
        total=whole.total,
        total_variance=whole.total_variance,
        measurement=attrs.evolve(parts[0].measurement, calibrations=(one,)),
    )
    same = dpgm.learn(alone, learner, randomness=dpgm.SeededRandomness(4))
    np.testing.assert_allclose(both.model.marginals().values, same.model.marginals().values, atol=0.02)


def test_the_learner_decides_what_is_too_large():
    """All pairs of twenty attributes fit no junction tree; who needs none may learn from their tables."""
    pairs = Structure.complete(Domain.from_sizes({f"x{i}": 10 for i in range(20)}))
    codes = np.zeros((50, 20), np.uint8)
    fit = dpgm.fit(codes, pairs, Budget.pure(1), learner=Independent(), neighbours="add-remove")
    assert fit.release.structure == pairs


@attrs.frozen(kw_only=True)
class Twice(Independent):
    """Half of the budget, and then the other half."""

    def learn(self, curator, inference, *, randomness, progress):
        curator.release(budget=curator.budget * Fraction(1, 2))
        return super().learn(curator, inference, randomness=randomness, progress=progress)


def test_a_ledger_pays_for_all_that_a_learner_may_ask_or_for_nothing(tmp_path):
    """Where it has enough for the first of two releases alone, the first is not made."""
    pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    ledger = dpgm.Ledger.create(tmp_path / "a.ledger", name="a", budget=Budget.pure("0.7"), neighbours="add-remove")
    codes = np.zeros((50, 2), np.uint8)
    with pytest.raises(dpgm.Overspent):
        dpgm.fit(codes, pair, Budget.pure(1), learner=Twice(), neighbours="add-remove", ledger=ledger)
    assert ledger.spent().is_zero
    dpgm.fit(codes, pair, Budget.pure("0.7"), learner=Twice(), neighbours="add-remove", ledger=ledger)
    assert ledger.spent() == Budget.pure("0.7")


def test_records_may_be_named_as_in_a_spec_file(tmp_path):
    """By every verb that reads them: the same release as from the frame; a wrong table is refused before the charge."""
    domain = Domain.from_dict({"attributes": {"sex": {"labels": ["F", "M"]}, "age": {"bins": [0, 40, 99]}}})
    structure, terms = Structure(domain, [("sex", "age")]), Terms(neighbours="add-remove")
    frame = pa.table({"sex": ["F", "M", "M"] * 30, "age": ["30", "50", ""] * 30})
    (tmp_path / "x.csv").write_bytes("sex;age\r\n".encode("utf-16") + "F;30\r\nM;50\r\nM;\r\n".encode("utf-16-le") * 30)
    table = {"source": "csv", "path": tmp_path / "x.csv", "delimiter": ";", "encoding": "utf-16"}
    made = [
        dpgm.release(data, structure, Budget.pure(1), terms=terms, randomness=dpgm.SeededRandomness(3)).tables.values
        for data in (frame, table)
    ]
    assert np.array_equal(*made)
    done = dpgm.fit(table, structure, Budget.pure(9), terms=terms, randomness=dpgm.SeededRandomness(3))
    assert dpgm.total_variation(done.model, table, allow_non_private=True)["sex", "age"] < 0.2
    Run(table, structure, Budget.pure(1), terms=terms).check()
    Run(table, {"name": "mst"}, Budget.pure(1), workload=domain, terms=terms).check()
    ledger = dpgm.Ledger.create(tmp_path / "l", name="x", budget=Budget.pure(1), neighbours="add-remove")
    for wrong in ({"path": "x.csv"}, table | {"delimiter": ","}, table | {"path": "none.csv"}):
        for verb in (dpgm.fit, dpgm.release):
            with pytest.raises(DataError):
                verb(wrong, structure, Budget.pure(1), terms=terms, ledger=ledger)
        with pytest.raises(DataError):
            Run(wrong, structure, Budget.pure(1), terms=terms).check()
    assert ledger.remaining() == Budget.pure(1)
