"""Analysis plans: formulas of [research] become tables of a session, by the domain alone, and are refused by name."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from dpgm.analysis import analyse
from dpgm.research import cliques_of, plan_analyses, research_selector
from dpgm.spec import PlannedAnalysis, read_analyses, read_spec
from dpgm_core import Budget, Domain, Terms, Workload, load_model, load_release
from dpgm_core.errors import DpgmError, OptionError, StructureError
from dpgm_core.learning.research import ANALYSIS_TABLES
from dpgm_core.models.analysis import MEASURED, MOSTLY_MEASURED

DOMAIN = """
[attributes.income]
labels = ["low", "high"]
unknown = "low"
[attributes.age]
type = "integer"
min = 20
max = 79
bins = 3
unknown = "20-39"
[attributes.sex]
labels = ["F", "M"]
unknown = "F"
[attributes.town]
size = 9
"""
SPEC = """
name = "study"
data = "study.csv"
domain = "domain.toml"
neighbours = "add-remove"
budget = { epsilon = 3, delta = 1e-6 }
records = 600
[research]
regressions = ["income ~ C(age) + sex"]
[simulation]
seed = 4
"""
SELECTOR = '[structure]\nselector = "mst"\n'
FORMULA = "income ~ C(age) + sex"


@pytest.fixture
def study(tmp_path):
    draw = np.random.default_rng(1)
    age, sex, town = draw.integers(20, 80, 600), draw.choice(["F", "M"], 600), draw.integers(0, 9, 600)
    income = np.where(draw.random(600) < 0.2 + 0.006 * (age - 20) + 0.2 * (sex == "M"), "high", "low")
    rows = "\n".join(",".join(map(str, row)) for row in zip(income, age, sex, town, strict=True))
    (tmp_path / "study.csv").write_text(f"income,age,sex,town\n{rows}\n")
    (tmp_path / "domain.toml").write_text(DOMAIN)
    (tmp_path / "study.toml").write_text(SPEC)
    return tmp_path / "study.toml"


def with_selector(study):
    study.write_text(SPEC + SELECTOR)
    return study


def test_a_plan_names_the_tables_and_reads_no_record(study, ran, facts):
    """Claim: without the file of the records; text and JSON agree; a width needs a number of records."""
    pytest.importorskip("formulaic")
    (study.parent / "study.csv").unlink()
    out, err = ran("plan", study)
    assert "C(age)[T.40-59]" in out and ANALYSIS_TABLES in out and "tables of the analyses are measured first" in err
    plain = facts("plan", study)
    assert [one["name"] for one in plain["analyses"]] == ["Intercept", "C(age)[T.40-59]", "C(age)[T.60-79]", "sex[T.M]"]
    assert all(
        one["analysis"] == FORMULA and 0.9 < one["measured"] <= 1 < one["width"] < 2 for one in plain["analyses"]
    )
    assert list(plain["shares"]) == [ANALYSIS_TABLES] and plain["selector"] == "research"
    study.write_text(SPEC.replace("records = 600\n", ""))
    assert "--records N" in ran("plan", study)[1] and facts("plan", study)["analyses"][0]["width"] is None
    again = facts("plan", study, "--records", "600")
    assert again["analyses"] == plain["analyses"]


def test_a_fit_measures_them_and_answers(study, ran):
    """With a selector or without, release and model state tables and formula, and coefficients are measured."""
    pytest.importorskip("formulaic")
    ran("fit", study)
    release, model = load_release(study.parent / "study.release.dpgm"), load_model(study.parent / "study.dpgm")
    tables = {frozenset(one) for one in release.structure.cliques}
    assert {frozenset(("income", "age")), frozenset(("income", "sex"))} <= tables and len(release.steps) == 1
    assert all(one <= {"income", "age", "sex"} for one in tables)
    assert model.provenance["selector"]["options"]["analyses"] == [FORMULA]
    answer = analyse(model, FORMULA)
    assert set(answer.estimates.standing) <= {MEASURED, MOSTLY_MEASURED}
    for path in study.parent.glob("*.dpgm"):
        path.unlink()
    ran("fit", with_selector(study))
    release = load_release(study.parent / "study.release.dpgm")
    assert {frozenset(one) for one in release.steps[0].structure.cliques} == tables
    assert frozenset(("town",)) in {frozenset(one) for one in release.structure.cliques}
    share = release.steps[0].cost.rho / release.session.budget.rho
    assert float(share) == pytest.approx(0.6, rel=0.02)


def test_python_says_the_same_as_a_spec(study):
    pytest.importorskip("formulaic")
    spec = read_spec(with_selector(study))
    made = spec.to_run().target
    again = research_selector(spec.domain, [FORMULA], then="mst")
    assert (made.tables, made.weights, made.share, made.analyses) == (again.tables, again.weights, 0.6, (FORMULA,))
    assert research_selector(spec.workload, [{"formula": FORMULA, "family": "logistic"}]).analyses == (
        f"{FORMULA}, logistic",
    )


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ('research.regressions=["income ~ agee"]', "no column 'agee'; did you mean 'age'"),
        ('research.regressions=["center(age) ~ sex"]', "depends on the rows"),
        ('research.regressions="income ~ age"', "must be a list of formulas"),
        ("research.regressions=[]", "must be a list of formulas"),
        ("research.regressions=[1]", "each must be a table"),
        ('research.regressions=[{family="linear"}]', "each needs a formula"),
        ('research.regressions=[{formula="income ~ sex", groups=1}]', "groups must be true or false"),
        ('research.regressions=[{formula="income ~ sex", familly="linear"}]', "did you mean 'family'"),
        ("research.share=0.5", "leaves a part of the budget for nothing"),
        ("research.share=true", "research.share must be a part of the budget"),
        ("research.share=1.1", "research.share must be a part of the budget"),
        ("research.shares=1", "did you mean 'share'"),
        ('structure.cliques=[["income", "sex"]]', "names cliques; say selector = 'auto' in their place"),
        ("split=optimal", "split = 'optimal' divides a budget over named cliques"),
        ('contributions={per="group"}', "contributions do not go with a selector"),
        ('workload.targets=["sex"]', "no setting 'targets'"),
        ('domain.from="domain.toml"', "domain"),
    ],
)
def test_a_spec_is_refused_when_it_is_read(study, setting, says):
    """Claim: on one line, and before any charge."""
    with pytest.raises(DpgmError, match=says) as caught:
        read_spec(study, [setting])
    assert "\n" not in str(caught.value)


def test_more_is_refused_before_the_charge(study, refused, dpgm_command):
    """Claim: what takes the design or the selector to see is refused by a plan as by a fit, and nothing is written."""
    pytest.importorskip("formulaic")
    for setting, says in (
        ('research.regressions=["income ~ age + C(age)"]', "leave terms out"),
        ('research.regressions=[{formula="town ~ sex", family="linear"}]', "the linear family"),
        ("workload.never=[['income', 'age'], ['income', 'sex']]", "no table that the workload allows"),
        ("learner=bayes-net", "directed graph"),
    ):
        assert says in refused("plan", study, "--set", setting)
        code, _, err = dpgm_command("fit", study, "--set", setting)
        assert code == 2 and says in err
    assert not list(study.parent.glob("*.dpgm"))
    with_selector(study)
    assert "leaves nothing for the selector" in refused("plan", study, "--set", "research.share=1")
    assert "a directed graph" in refused("plan", study, "--set", "structure.selector=privbayes")


def test_a_formula_whose_bins_are_pooled_is_planned_and_answered(study, ran, monkeypatch):
    """Its table of all columns is too large, so pairs and less are measured, and what is read has the same limit."""
    pytest.importorskip("formulaic")
    domain = DOMAIN.replace("bins = 3", "bins = 60").replace('unknown = "20-39"', 'unknown = "20"')
    (study.parent / "domain.toml").write_text(domain)
    formula = "income ~ age + sex"
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 200)
    settings = ("--set", f"research.regressions=[{formula!r}]", "--set", "workload.max_cells=150")
    out, err = ran("plan", study, *settings)
    assert f"{formula}: its columns have too many combinations for one table, so the answer pools bins of age;" in err
    assert "income x age" in err and "income x age x sex" not in err and "-" not in out.splitlines()[-2].split()[-1]
    ran("fit", study, *settings)
    answer = analyse(load_model(study.parent / "study.dpgm"), formula)
    assert set(answer.pooled) == {"age"} and set(answer.estimates.standing) <= {MEASURED, MOSTLY_MEASURED}


def test_pooling_hardly_changes_a_plan(monkeypatch):
    """Claim: tables and weights are nearly those of all bins, and widths are larger by at most half."""
    pytest.importorskip("formulaic")
    number = {"type": "number", "bins": list(range(21)), "cap": True}
    workload = Workload.all(Domain.from_dict({"attributes": dict.fromkeys("yab", number)}), order=2)
    whole = plan_analyses(workload, ["y ~ a + b"])
    monkeypatch.setattr("dpgm.pooling.MAX_CELLS", 2000)
    pooled = plan_analyses(workload, ["y ~ a + b"])
    shares = [dict(zip(one.tables, one.weights, strict=True)) for one in (whole, pooled)]
    assert not whole.notes and len(pooled.notes) == 1
    assert all(abs(shares[0][pair] - shares[1][pair]) < 0.05 for pair in itertools.combinations("yab", 2))
    terms = Terms(neighbours="add-remove")
    wide, wider = (one.widths(Budget.zcdp(1), terms, 1000)[0] for one in (whole, pooled))
    assert np.all((wider / wide > 0.95) & (wider / wide < 1.5))


def test_sections_that_are_emptied_count_as_left_out(study):
    """Claim: as refusals say to leave them out, which --set cannot."""
    empty = read_spec(with_selector(study), ["structure={}", "workload={}"])
    assert empty.selector["share"] == 1 and len(empty.workload.attributes) == 3
    with pytest.raises(OptionError, match=r"leave \[structure\] and \[workload\] out"):
        read_spec(study, ["research.share=1", "workload.order=2"])


def test_columns_that_are_still_to_be_found_are_refused(study):
    """Claim: private bins and labels in a formula, not elsewhere."""
    private = DOMAIN.replace("bins = 3\nunknown", "bins = { private = 3 }\nunknown").replace('unknown = "20-39"\n', "")
    (study.parent / "domain.toml").write_text(private)
    with pytest.raises(
        StructureError,
        match=r"'age' are still to be found privately.*or those that an earlier run printed or wrote as a domain",
    ):
        read_spec(study)
    assert read_spec(study, ['research.regressions=["income ~ sex"]']).analyses[0].formula == "income ~ sex"


def test_analyses_are_read_with_what_dpgm_analyse_takes():
    """Claim: formulas and tables; the text of each says what differs from the default."""
    listed = read_analyses("x", ["a ~ b", {"formula": "a ~ b", "event": "yes", "groups": True}])
    assert listed[0] == PlannedAnalysis(formula="a ~ b") and str(listed[1]) == "a ~ b, event 'yes', by groups"
    with pytest.raises(OptionError, match="family must be a text"):
        read_analyses("x", [{"formula": "a ~ b", "family": 3}])


def test_groups_correlations_and_tables_are_planned_too():
    """Claim: whatever dpgm.analyse answers; sets for tables are threes, and the outcome with a longer term."""
    domain = Domain.from_dict({name: {"size": 2} for name in "abcde"})
    workload = Workload.all(domain)
    plan = plan_analyses(workload, [{"formula": "a ~ b", "groups": True}, "~ c + d"])
    assert {("a", "b"), ("c", "d")} <= set(plan.tables) and [len(one) for one in plan.unsupported] == [
        len(one.names) for one in plan.analyses
    ]
    assert cliques_of(domain, [PlannedAnalysis(formula="a ~ b:c:d + e")])[-1] == ("a", "b", "c", "d")
    assert cliques_of(domain, [PlannedAnalysis(formula="a ~ b")]) == [("a", "b")]
    with pytest.raises(DpgmError, match="a ~ b: attribute 'a' has no label"):
        plan_analyses(workload, [{"formula": "a ~ b", "event": "x"}])


def test_a_spec_without_analyses_loads_no_numpy(study):
    study.write_text(SPEC.replace('[research]\nregressions = ["income ~ C(age) + sex"]\n', SELECTOR))
    code = (
        f"import sys; from dpgm.spec import read_spec; read_spec({str(study)!r}); print('dpgm.formulas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert Budget.approx(3, "1e-6") == read_spec(study).budget
