"""Studies from files and objects: made-up truths, models, runs' specs; real records are refused, and never opened."""

import pytest
from attrs import evolve

from dpgm.study import Study, generated_truth, load_study, run
from dpgm_core import Budget, Domain, DpgmError, OptionError, StructureError, Terms

STUDY = """
neighbours = "add-remove"
records = [200, 400]
budget = [{ epsilon = [0.5, 1] }, { epsilon = [1, 2], delta = 1e-6 }]
learner = ["naive-mle", { name = "cgm-em", tau = 2, e_step = { name = "collective-dual", share = 0.2 } }]
repeat = 3
seed = 7
[truth]
attributes = ["a", "b", "c"]
labels = [2, 3, 2]
structure = "third-order"
strength = 0.5
seed = 2
"""


@pytest.fixture
def file(tmp_path):
    def write(text: str):
        (tmp_path / "s.toml").write_text(text)
        return tmp_path / "s.toml"

    return write


def test_a_study_is_read(file, tmp_path):
    """Lists are compared, budgets in lists are spread, and the truth is made up as it says."""
    study = load_study(file(STUDY))
    amounts = [Budget.pure("0.5"), Budget.pure(1), Budget.approx(1, "1e-6"), Budget.approx(2, "1e-6")]
    assert (list(study.budgets), study.records, study.repeat, study.seed) == (amounts, (200, 400), 3, 7)
    assert [method.label for method in study.methods] == [
        "naive-mle",
        "cgm-em(tau=2, e_step=collective-dual(share=0.2))",
    ]
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
    made = generated_truth(domain, "third-order", strength=0.5, seed=2)
    assert study.truth.kl(made) < 1e-12 and study.structure == made.structure
    assert (study.name, study.output) == ("s", tmp_path / "s.study")
    assert not study.remarks


def test_a_model_file_is_a_truth(file, tmp_path):
    """Beside the spec, or where the command is run; 10,000 records, as it was learned from none."""
    made = generated_truth(Domain.from_sizes({"a": 2, "b": 2}), seed=4)
    made.save(tmp_path / "t.dpgm")
    text = 'neighbours = "replace-one"\nbudget = { rho = 0.1 }\n'
    for study in (
        load_study(file(text + 'truth = "t.dpgm"')),
        load_study(file(text + '[truth]\nmodel = "t.dpgm"')),
        load_study(file(text), truth=tmp_path / "t.dpgm"),
    ):
        assert study.truth.kl(made) < 1e-12 and study.records == (10_000,)
        assert study.cases[0].to_dict()["mechanism"] == "gaussian"  # as suits the budget


def test_settings_and_options_stand_over_the_file(file):
    """Selectors beside named cliques, and a structure of another kind than the truth's."""
    study = load_study(
        file(STUDY),
        ["seed=8", "structure.cliques=[['a', 'c']]"],
        instead={"learner": ["eb-map"], "selector": ["named", "mst"], "budget": [{"epsilon": "1"}]},
    )
    assert [method.label for method in study.methods] == ["named", "mst"]
    assert (study.seed, study.structure.cliques, study.budgets) == (8, (("a", "c"),), (Budget.pure(1),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no truth"),
        ('data = "people.csv"', r"names data of real rows.*--truth"),
        (STUDY.replace("[truth]", 'data = "people.csv"\n[truth]'), "has a truth and also data.*leave it out"),
        (STUDY + '[ledger]\npath = "l"', "has a truth and also ledger.*charges nothing"),
        (STUDY.replace("labels = [2, 3, 2]", "labels = [2, 3]"), "3 attributes and 2 numbers of labels"),
        (STUDY.replace('attributes = ["a", "b", "c"]', "attributes = 0"), "attributes"),
        (STUDY.replace("strength", "strenght"), "did you mean 'strength'"),
        (STUDY.replace("repeat", "repeats"), "did you mean 'repeat'"),
        (STUDY.replace("repeat = 3", "repeat = 0"), "repeat"),
        (STUDY.replace("[200, 400]", "[200, 0]"), "records"),
        (STUDY.replace("[200, 400]", "[]"), "from 1 to"),
        (STUDY.replace("[200, 400]", "[200, 200]"), "200 records twice"),
        (STUDY.replace('"naive-mle",', '"naive-mel",'), "did you mean 'naive-mle'"),
        (STUDY.replace("tau = 2", "tua = 2"), "did you mean 'tau'"),
        (STUDY.replace("{ name", '{ name = "cgm-em", tau = 2 }, { name = "cgm-em", tau = 2.0 }, { name', 1), "twice"),
        (STUDY.replace("epsilon = [0.5, 1]", "epsilon = [0.5, 0]"), "epsilon"),
        (STUDY.replace('neighbours = "add-remove"', ""), "'neighbours'"),
        (STUDY.replace("[truth]", 'truth = "t.dpgm"\n[x]'), "no setting 'x'"),
        (STUDY.replace("[truth]", '[truth]\nmodel = "t.dpgm"'), "both model and attributes"),
        (STUDY.replace("[truth]", "domain = { a = 2 }\n[truth]"), "has a domain and also attributes"),
    ],
)
def test_what_cannot_be_asked_is_refused(file, text, said):
    with pytest.raises(DpgmError, match=said):
        load_study(file(text))


def test_objects_are_checked_too():
    truth = generated_truth(Domain.from_sizes({"a": 2, "b": 2}))
    other = generated_truth(Domain.from_sizes({"a": 2, "b": 3}))
    asked = {"budgets": Budget.pure(1), "neighbours": "add-remove"}
    with pytest.raises(OptionError, match="draws its records from a model, got str"):
        Study(truth="health.dpgm", **asked)
    with pytest.raises(StructureError, match="structure and the truth have different"):
        Study(truth=truth, structure=other.structure, **asked)
    with pytest.raises(OptionError, match="learner"):
        Study(truth=truth, learners=[], **asked)
    with pytest.raises(OptionError, match="records = 500 and total = 'public'"):
        Study(truth=truth, budgets=Budget.pure(1), terms=Terms(neighbours="add-remove", total=500))


@pytest.mark.parametrize("value", [[], [1], (), (1, 2), True, float("nan")])
@pytest.mark.parametrize("option", ["repeat", "seed"])
def test_repeats_and_seeds_are_single_numbers(one, option, value):
    with pytest.raises(OptionError, match=f"{option} must be a whole number"):
        evolve(one, **{option: value})


def test_what_has_no_name_is_refused(one):
    for more in ({"potentials": []}, {"structure": []}):
        with pytest.raises(OptionError, match="a truth has no"):
            generated_truth(one.truth.domain, **more)
    with pytest.raises(OptionError, match="progress must be a function"):
        run(one, progress=3)
