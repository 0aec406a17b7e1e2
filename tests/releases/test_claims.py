"""Claims of files that their noise refutes, and calibrations in files: nothing is believed that cannot be computed."""

import json
from pathlib import Path

import attrs
import pytest
from cattrs import BaseValidationError
from dpgm_laplace.mechanism import LaplaceNoise

from dpgm_core import Budget, BudgetError, ModelFileError, Sensitivity, load_release, make
from dpgm_core.privacy.mechanism import calibrate, check_claims
from dpgm_core.privacy.tabulated import calibrate_tabulated
from dpgm_core.releases.calibrations import calibration_of, calibration_to

SCHEMA1 = Path(__file__).parents[1] / "data" / "schema1"
ONE_ROUND = {"number": 1, "of": 1, "sampling_rate": "1", "clip_norm": None, "grid": None}
TERMS, ROUND, CALIBRATION, NOISE = ("terms",), ("round",), ("calibrations", 0), ("calibrations", 0, "noise")
LIES = {
    "made-up rounds": ("laplace", {("cost",): {"epsilon": "1/1000"}, ROUND: ONE_ROUND}),
    "made-up subsample": (
        "laplace", {("cost",): {"epsilon": "1"}, ROUND: ONE_ROUND | {"sampling_rate": "1/2"}}
    ),
    "unsafe": ("textbook", {("unsafe",): None, ("private",): True}),
    "unsafe, no reason": ("textbook", {("unsafe",): ""}),
    "unsafe gaussian": ("textbook gaussian", {("unsafe",): None}),
    "said to be exact": ("textbook", {(*NOISE, "exact"): True, ("unsafe",): None}),
    "all said to be exact": (
        "textbook", {(*NOISE, "exact"): True, (*CALIBRATION, "options", "exact"): True, ("unsafe",): None}
    ),
    "neighbours": ("laplace", {(*TERMS, "neighbours"): "replace-one"}),
    "neighbours of gaussian": ("gaussian", {(*TERMS, "neighbours"): "replace-one"}),
    "neighbours per clique": ("per clique", {(*TERMS, "neighbours"): "replace-one"}),
    "neighbours of rounds": ("rounds zcdp 1", {(*TERMS, "neighbours"): "replace-one"}),
    "neighbours of clipped rounds": ("rounds zcdp 1 clipped", {(*TERMS, "neighbours"): "replace-one"}),
    "rows": ("laplace", {(*TERMS, "rows_per_person"): 50, (*TERMS, "person"): "who"}),
    "more rows": ("persons", {(*TERMS, "rows_per_person"): 3}),
    "rows of rounds": ("rounds pure 1", {(*TERMS, "rows_per_person"): 50, (*TERMS, "person"): "who"}),
    "no weights": ("weighted", {(*TERMS, "contributions"): None}),
    "other weights": ("weighted", {(*TERMS, "contributions", "grid"): 24}),
    "rounds of weights": ("weighted", {ROUND: ONE_ROUND}),
    "l1 and cost": (
        "laplace", {(*NOISE, "l1"): 1, (*NOISE, "cost"): {"epsilon": "4"}, ("cost",): {"epsilon": "4"}}
    ),
    "all sensitivities": (
        "laplace",
        {
            (*NOISE, "l1"): 1, (*NOISE, "cost"): {"epsilon": "4"}, ("cost",): {"epsilon": "4"},
            (*CALIBRATION, "sensitivity"): {"l0": 1, "l1": 1, "l2_squared": 1, "linf": 1},
        },
    ),
    "noise sensitivity": ("gaussian", {(*NOISE, "sensitivity"): {"l0": 3, "l1": 2, "l2_squared": 2, "linf": 1}}),
    "order of noises": ("per clique", {("calibration_of",): [1, 0]}),
    "one noise for two": ("per clique", {("calibration_of",): [0, 0]}),
    "fewer rounds": ("rounds zcdp 1", {("cost",): {"rho": "1/2"}}),
    "cheaper rounds": ("rounds pure 0.25", {("cost",): {"epsilon": "1.9"}}),
    "lower rate": ("rounds pure 0.25", {("cost",): {"epsilon": "1"}}),
    "cheaper rounds, replace-one": ("rounds pure 0.25 replace-one", {("cost",): {"epsilon": "1.99"}}),
    # without the table of one cell they would cost 1.38: 5 ln((3 + x) / (3 + 1/x)) where 5 ln((3 + x^2) / 4) = 2
    "one cell forgotten": ("rounds pure 0.25 replace-one", {("cost",): {"epsilon": "1.4"}}),
    "neighbours of a subsample": ("rounds pure 0.25", {(*TERMS, "neighbours"): "replace-one"}),
    "more rounds": ("rounds zcdp 1", {(*ROUND, "of"): 6}),
    "no rounds": ("rounds approx 1", {ROUND: None}),
    "other kind": ("rounds zcdp 1", {("cost",): {"epsilon": "1"}}),
    "smaller delta together": ("together", {("cost",): {"epsilon": "1", "delta": "1/1010000"}}),
    "smaller epsilon together": ("together", {("cost",): {"epsilon": "999/1000", "delta": "1/1000000"}}),
    "smaller delta of textbook noise together": (
        "textbook together", {("cost",): {"epsilon": "1", "delta": "1/1010000"}}
    ),
    "together as a sum": ("together", {("cost",): {"rho": "1/100"}}),
    "a sum as together": ("optimal gaussian", {("cost",): {"epsilon": "1", "delta": "1/1000000"}}),
    "neighbours together": ("together", {(*TERMS, "neighbours"): "replace-one"}),
    "clip norm": ("rounds zcdp 1 clipped", {(*ROUND, "clip_norm"): "1/4"}),
    "grid": ("rounds zcdp 1 clipped", {(*ROUND, "grid"): 32}),
    "counts": ("rounds zcdp 1 clipped", {(*ROUND, "clip_norm"): None, (*ROUND, "grid"): None}),
}  # fmt: skip


def said_no(path):
    """One line that names the file and knows what is wrong."""
    with pytest.raises(ModelFileError) as caught:
        load_release(path)
    assert path.name in str(caught.value) and "\n" not in str(caught.value)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("key", LIES)
def test_a_stronger_guarantee_than_the_noise_gives_is_refused(released, edited, key):
    """Edits that would have a reader believe in more privacy: one line each, that names the file."""
    name, changes = LIES[key]
    said_no(edited(released[name][0], changes))


@pytest.mark.parametrize("cost", ["1/1" + 300 * "0", "1/1000000000000"])
def test_a_noise_that_checks_nothing_itself_cannot_claim_less(released, edited, monkeypatch, cost):
    """A plugin's noise that takes any cost: core computes it from the event again, when the file is read."""
    monkeypatch.setattr(LaplaceNoise, "__attrs_post_init__", lambda noise: None)

    def claiming(epsilon):
        changes = {(*NOISE, "cost"): {"epsilon": epsilon}, ("cost",): {"epsilon": epsilon}}
        return edited(released["laplace"][0], changes)

    said_no(claiming(cost))
    assert load_release(claiming("8")).cost.epsilon == 8


OLD_ROUND = {"round": 1, "rounds": 1, "sampling_rate": "1"}
OLD_ROUNDS = ("provenance", "rounds")
OLD_LIES = {
    "cost": ("plain", {("cost",): {"epsilon": "1/2"}}),
    "made-up rounds": ("plain", {("cost",): {"epsilon": "1/1000"}, OLD_ROUNDS: OLD_ROUND}),
    "made-up subsample": (
        "plain", {("cost",): {"epsilon": "1/8"}, OLD_ROUNDS: OLD_ROUND | {"sampling_rate": "1/2"}}
    ),
    "unsafe": ("unsafe", {("unsafe",): None, ("private",): True}),
    "said to be exact": ("unsafe", {(*NOISE, "exact"): True, ("unsafe",): None}),
    "neighbours": ("plain", {("neighbours",): "replace-one"}),
    "neighbours of gaussian": ("gaussian", {("neighbours",): "replace-one"}),
    "neighbours per clique": ("per-clique", {("neighbours",): "replace-one"}),
    "neighbours of rounds": ("rounds-zcdp", {("neighbours",): "replace-one"}),
    "rows": ("plain", {("rows_per_person",): 50}),
    "rows with a person": ("plain", {("rows_per_person",): 50, ("provenance", "person_key"): "who"}),
    "more rows": ("persons", {("rows_per_person",): 4}),
    "no weights": ("contributions", {("contributions",): None}),
    "other weights": ("contributions", {("contributions", "grid"): 120}),
    "public total of weights": ("contributions", {("total_policy",): "public"}),
    "l1 and cost": (
        "plain", {(*NOISE, "l1"): 1, (*NOISE, "cost"): {"epsilon": "1/2"}, ("cost",): {"epsilon": "1/2"}}
    ),
    "order of noises": ("per-clique", {("calibration_of",): [1, 0]}),
    "fewer rounds": ("rounds-zcdp", {("cost",): {"rho": "1/2"}}),
    "cheaper rounds": ("rounds-pure", {("cost",): {"epsilon": "1.9"}}),
    "more rounds": ("rounds-zcdp", {(*OLD_ROUNDS, "rounds"): 6}),
    "clip norm": ("rounds-clipped-pure", {(*OLD_ROUNDS, "clip_norm"): "1/4"}),
    "grid": ("rounds-clipped-pure", {(*OLD_ROUNDS, "grid"): 32}),
}  # fmt: skip


@pytest.mark.parametrize("key", OLD_LIES)
def test_a_stronger_guarantee_in_a_file_of_schema_1_is_refused(members_of, edited, key):
    """The old places of the facts are no way around the checks."""
    name, changes = OLD_LIES[key]
    said_no(edited(members_of(SCHEMA1 / f"{name}.schema1"), changes))


NO_ROUNDS = [{}, {"x": 1}, [], 0, "x"]
WRONG_ROUNDS = [
    {"x": 1}, {"grid": 1024}, {"number": 0}, {"number": 2}, {"number": True}, {"of": "1"}, {"of": 10**8},
    {"sampling_rate": 1}, {"sampling_rate": "0"}, {"sampling_rate": "2"}, {"sampling_rate": "nan"},
    {"sampling_rate": None}, {"clip_norm": "1"}, {"clip_norm": 1, "grid": 8}, {"clip_norm": "-1", "grid": 8},
    {"clip_norm": "1", "grid": 0}, {"clip_norm": "1", "grid": "8"},
]  # fmt: skip


@pytest.mark.parametrize("round", [*NO_ROUNDS, {"number": 1, "of": 1}, *(ONE_ROUND | one for one in WRONG_ROUNDS)])
def test_rounds_that_make_no_sense_are_refused(released, edited, round):
    """Keys, types and ranges, on reading and not when the guarantee is asked for."""
    said_no(edited(released["laplace"][0], {ROUND: round}))


def in_schema_1(facts):
    """Facts of a round under the names that schema 1 had for them."""
    names = {"number": "round", "of": "rounds"}
    return {names.get(name, name): value for name, value in facts.items()}


@pytest.mark.parametrize("name", ["plain", "declared-total"])
@pytest.mark.parametrize(
    "round", [*NO_ROUNDS, {"round": 1, "rounds": 1}, *(OLD_ROUND | in_schema_1(one) for one in WRONG_ROUNDS)]
)
def test_rounds_of_schema_1_that_make_no_sense_are_refused(members_of, edited, name, round):
    """The same where schema 1 had them, also where a declared total is divided by their sampling rate."""
    said_no(edited(members_of(SCHEMA1 / f"{name}.schema1"), {OLD_ROUNDS: round}))


def test_a_cost_that_only_its_author_can_prove_is_marked(released, edited):
    """(epsilon, delta) of rounds below the Renyi bound may be right; the guarantee says whose word it is."""
    for epsilon, stated in (("1/2", True), ("2", False)):
        cost = {"epsilon": epsilon, "delta": "1e-6"}
        again = load_release(edited(released["rounds approx 0.25"][0], {("cost",): cost}))
        assert again.cost_stated is stated is ("as the author of the file states it" in again.guarantee())


RHO = Budget.zcdp("1/3")
UNIT = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)


def test_a_mechanism_object_cannot_be_restored():
    """Whose it is nobody knows; the error says what to do."""
    mechanism = make("mechanism", "gaussian")
    one = calibrate(mechanism, mechanism.noise(UNIT, RHO), UNIT, RHO)
    plain = calibration_to(attrs.evolve(one, component=None))
    with pytest.raises(ModelFileError, match="register the mechanism"):
        calibration_of(plain)
    with pytest.raises(ModelFileError, match="named by a text"):
        calibration_of(plain | {"component": 3})


def power(budget=RHO):
    """A tabulated noise, of a mechanism that is not registered."""
    noise = calibrate_tabulated(lambda z, scale: -((z / scale) ** 1.5), UNIT, budget)
    return calibrate(make("mechanism", "gaussian"), noise, UNIT, budget)


@pytest.mark.parametrize("budget", [Budget.pure(1), RHO, Budget.approx(1, "1e-6")], ids=str)
@pytest.mark.parametrize("component", [None, "a-plugin-that-nobody-has"])
def test_tabulated_noise_comes_back_without_its_plugin(component, budget):
    """All of it is in the file; so it is of a mechanism object, too."""
    one = attrs.evolve(power(budget), component=component)
    assert calibration_of(json.loads(json.dumps(calibration_to(one), allow_nan=False))) == one


def test_an_edited_table_is_refused():
    """A distribution of less noise does not go with the cost, nor does a lower cost with the distribution."""
    plain = json.loads(json.dumps(calibration_to(power())))
    noise = plain["noise"]
    narrow = noise | {"distribution": noise["distribution"] | {"weights": noise["distribution"]["weights"][::2]}}
    for edited in (narrow, noise | {"cost": {"rho": "1/4"}}, noise | {"sensitivity": attrs.asdict(UNIT) | {"l1": 0}}):
        with pytest.raises((BudgetError, BaseValidationError)):  # `read_archive` makes one line of it
            check_claims(calibration_of(plain | {"noise": edited}).noise, UNIT)
