"""Spec files: every key checked, paths against the file's folder, and nothing foreign raised."""

import datetime
import json
import re
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpgm.spec import apply_setting, check_known, file_stem, load_spec, parse_setting, table_of, text_of
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError, OptionError, StructureError
from dpgm_core.privacy.budget import Budget
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.workload import Workload

SPEC = """
data = "d.csv"
domain = { a = 2, b = 3 }
neighbours = "add-remove"
budget = { epsilon = 1 }
structure = { cliques = [["a", "b"]] }
[ledger]
path = "l.ledger"
[output]
folder = "out"
"""

toml_values = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=3)
    | st.just(datetime.date(2020, 1, 1)),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["a", "path", "x"]), inside, max_size=2)
    ),
    max_leaves=5,
)

KEYS = [
    "name", "data", "domain", "neighbours", "unit", "person", "total", "mechanism", "learner", "inference", "budget",
    "structure", "ledger", "output", "simulation", "split", "budget.epsilon", "budget.delta", "structure.graph",
    "structure.tied", "structure.parents", "structure.parents.a", "structure.bif", "domain.bif", "domain.unknown",
    "structure.select", "structure.select.name", "workload", "workload.order", "workload.weights", "workload.targets",
    "workload.never", "workload.max_cells", "domain.a", "data.source", "ledger.budget", "ledger.create",
    "ledger.when_spent", "output.folder", "learner.tolerance", "nonsense",
]  # fmt: skip


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "x.toml").write_text(SPEC)
    return tmp_path / "x.toml"


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, (bool, float)) else str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KEYS), toml_values), max_size=3))
@example([("data", {"source": "csv", "path": 3})])
@example([("output.folder", "\0")])
@example([("structure.graph", "complete"), ("structure.order", 10**18)])
def test_any_values_are_a_spec_or_a_refusal(path, changes):
    """Every key set to every kind of value: only DpgmErrors, in one line."""
    for _, value in changes:
        assert "v" in tomllib.loads(f"v = {toml(value)}")  # the test writes TOML
    try:
        load_spec(path, [f"{key}={toml(value)}" for key, value in changes])
    except DpgmError as error:
        assert "\n" not in str(error)


CHOSEN = SPEC.replace('structure = { cliques = [["a", "b"]] }', 'structure = { select = "auto" }')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([key for key in KEYS if "." in key]), toml_values), max_size=3))
@example([("workload", {"weights": [{"clique": 3}]})])
@example([("workload", {"weights": [{"clique": [["a"]]}]})])
@example([("workload.never", [[3]])])
@example([("workload.targets", [[]])])
def test_any_values_are_a_selection_or_a_refusal(path, changes):
    path.write_text(CHOSEN)
    try:
        load_spec(path, [f"{key}={toml(value)}" for key, value in changes])
    except DpgmError as error:
        assert "\n" not in str(error)


def test_a_structure_is_named_or_chosen(path):
    """`select` with a name, a table, or settings inside it; the workload is read over the domain."""
    path.write_text(CHOSEN)
    run = load_spec(path)
    assert (run.structure, run.selector) == (None, "auto")
    assert run.workload == Workload.all(run.domain, 3)
    run = load_spec(path, ["structure.select=mst", "workload.order=1", "workload.never=[['b']]"])
    assert run.selector == "mst" and run.workload.candidates == (("a",),)
    run = load_spec(path, ["structure.select.name=aim", "structure.select.max_fit_seconds=0.1"])
    assert run.selector == {"name": "aim", "max_fit_seconds": 0.1}
    assert load_spec(path, ["workload.weights=[{clique = ['b'], weight = 2}]"]).workload.candidates == (("b",),)
    path.write_text(SPEC)
    assert load_spec(path, ["structure={select='auto'}"]).selector == "auto"
    named = load_spec(path)
    assert (named.selector, named.workload) == (None, None) and named.structure.cliques == (("a", "b"),)


@pytest.mark.parametrize("base", ["select", "selector"])
@pytest.mark.parametrize("word", ["select", "selector"])
def test_a_selector_is_read_under_its_earlier_name(path, base, word):
    """`select` in a file or a setting is `selector`, whichever of the two the other has; both at once are refused."""
    path.write_text(CHOSEN.replace("{ select =", f"{{ {base} ="))
    assert load_spec(path).selector == load_spec(path).select == "auto"
    assert load_spec(path, [f"structure.{word}=mst"]).selector == "mst"
    assert load_spec(path, [f"structure.{word}.merge=false"]).selector == {"name": "auto", "merge": False}
    assert load_spec(path, [f"structure={{{word}='aim'}}"]).selector == "aim"
    with pytest.raises(OptionError, match="has both selector and select, which mean the same"):
        load_spec(path, ["structure={select='aim', selector='mst'}"])


@pytest.mark.parametrize("base", ["check", "holdout"])
def test_a_holdout_is_read_under_its_earlier_name(path, base):
    """`[check]` in a file or a setting is `[holdout]`, whichever of the two the other has; both at once are refused."""
    path.write_text(f"{SPEC}\n[{base}]\nshare = 0.25\n")
    assert load_spec(path).holdout == Fraction(1, 4)
    for word in ("check", "holdout"):
        assert load_spec(path, [f"{word}.share=0.5"]).holdout == Fraction(1, 2)
    path.write_text(f"{SPEC}\n[check]\nshare = 0.25\n[holdout]\nshare = 0.25\n")
    with pytest.raises(OptionError, match=r"both \[holdout\] and \[check\]"):
        load_spec(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("structure.cliques=[['a']]", "has both selector and cliques; name the cliques or have them chosen"),
        ("structure.graph=chain", "both selector and graph"),
        ("structure.tied=[[['a'], ['b']]]", "both selector and tied"),
        ("structure={}", "needs cliques, a graph, parents, bif or singletons, or selector = 'auto'"),
        ("structure.select=3", "structure.selector must be a text"),
        ("structure.select={order = 2}", "structure.selector.name must be a text"),
        ("workload.ordr=2", "did you mean 'order'"),
        ("workload.targets=['c']", "no attribute 'c'"),
        ("workload.weights=[{clique=['a','b']}, {clique=['b','a']}]", "names a x b twice"),
        ("workload.max_cells=1", "leaves no table to measure"),
        ("split=optimal", "split = 'optimal' divides a budget over named cliques"),
        ("contributions={per='clique', grid=12}", "contributions do not go with a selector"),
        ("holdout.share=1", "below 1"),
    ],
)
def test_what_does_not_go_with_a_selection_is_refused_by_name(path, change, words):
    """When the spec is read: no record is touched, nothing is charged."""
    path.write_text(CHOSEN)
    with pytest.raises(DpgmError, match=re.escape(words)):
        load_spec(path, [change])


def test_a_workload_is_for_a_selection(path):
    with pytest.raises(OptionError, match=r"\[workload\] says what a structure is chosen for, but here"):
        load_spec(path, ["workload.order=2"])


@pytest.mark.parametrize("budget", ["{epsilon=1}", "{rho=1}", "{epsilon=1, delta=1e-6}"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", None])
def test_the_mechanism_of_a_selection_is_what_the_spec_says(path, budget, mechanism):
    """It is never replaced: Gaussian noise is refused of a pure budget by the plan, before anything is read."""
    path.write_text(CHOSEN)
    spec = load_spec(path, [f"budget={budget}", *([f"mechanism={mechanism}"] if mechanism else [])])
    run = spec.to_run()
    assert (spec.selector, spec.mechanism, run.mechanism) == ("auto", mechanism, mechanism)
    if mechanism == "gaussian" and budget == "{epsilon=1}":
        with pytest.raises(DpgmError, match="mechanism 'gaussian' cannot serve pure epsilon"):
            run.plan_selection()
    else:
        assert mechanism is None or any(repr(mechanism) in note for note in run.plan_selection().notes)


def test_paths_are_resolved_against_the_file(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "x.toml"
    path.parent.mkdir()
    path.write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    run = load_spec(Path("deep/x.toml"))
    assert (run.data, run.ledger.path, run.output) == tuple(Path("deep") / one for one in ("d.csv", "l.ledger", "out"))
    assert run.name == "x"
    assert load_spec(path, ["data=/abs/d.csv"]).data == Path("/abs/d.csv")
    for address, found in (
        ("duckdb:///e.db", f"duckdb:///{path.parent}/e.db"),
        ("sqlite:////abs/e.db", "sqlite:////abs/e.db"),
        ("postgresql:///e", "postgresql:///e"),
    ):
        table = load_spec(path, [f"data={{source = 'sql', database = '{address}', table = 't'}}"]).data
        assert table["database"] == found
    relative = load_spec(path, ["data={source = 'csv', path = 'e.csv'}"]).data
    assert relative == {"source": "csv", "path": str(path.parent / "e.csv")}


def test_settings_reach_into_components(path):
    """A name becomes a table; a component nobody named is the default one; the last setting wins."""
    run = load_spec(path, ["learner.tolerance=0.5", "inference=loopy-bp", "inference.damping=0.1", "budget={rho=1}"])
    assert run.learner == {"name": "eb-map", "tolerance": 0.5}
    assert run.inference == {"name": "loopy-bp", "damping": 0.1}
    assert run.budget == Budget.zcdp(1)
    assert run.domain == Domain.from_dict({"a": 2, "b": 3})


@pytest.mark.parametrize("seed", ["2.5", "nan", "true", "-1", "'7'", "[7]", "{ a = 1 }"])
def test_a_seed_is_whole(path, seed):
    with pytest.raises(DpgmError, match=r"simulation\.seed must be a whole number of at least 0"):
        load_spec(path, [f"simulation.seed={seed}"])
    assert load_spec(path, ["simulation.seed=7"]).seed == 7


def test_a_spec_file_is_not_read_whole_whatever_its_size(tmp_path):
    """64 MiB, and not a byte more."""
    path = tmp_path / "x.toml"
    with path.open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(OptionError, match="larger than 67,108,864 bytes"):
        load_spec(path)


# --- graphs and BIF files -----------------------------------------------------------------------------------------

ASIA = """network asia { }
variable asia { type discrete [ 2 ] { yes, no }; }
variable tub { type discrete [ 2 ] { yes, no }; }
variable xray { type discrete [ 3 ] { clear, dark, unknown }; }
probability ( xray | tub, asia ) { default 0.2, 0.3, 0.5; }
probability ( asia ) { table 0.01, 0.99; }
probability ( tub | asia ) { (yes) 0.05, 0.95; (no) 0.01, 0.99; }
"""
FAMILIES = (("asia",), ("tub", "asia"), ("xray", "tub", "asia"))
NAMES = (
    "domain={asia={labels=['yes','no'], unknown='yes'}, tub={labels=['no','yes'], unknown='no'}, "
    "xray={size=2, unknown=0}}"
)
IGNORED = "the probabilities in asia.bif are ignored: what is learned comes from the records alone"


@pytest.fixture
def asia(tmp_path):
    """A spec whose structure is a BIF file's, over a domain of its own with other labels."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "asia.bif").write_text(ASIA)
    (tmp_path / "nets" / "ASIA.BIF").write_text(ASIA)
    path = tmp_path / "x.toml"
    text = SPEC.replace('{ cliques = [["a", "b"]] }', '{ bif = "nets/asia.bif" }')
    path.write_text(text.replace("{ a = 2, b = 3 }", NAMES.removeprefix("domain=").replace("'", '"')))
    return path


def test_a_graph_is_named_by_parents(path):
    """Each attribute's family, child first; the order of parents is the spec's; a cycle is spelled out."""
    run = load_spec(path, ["domain={a=2, b=3, c=2}", "structure={parents={b=['c', 'a']}}"])
    assert run.structure is not None and run.structure.cliques == (("a",), ("b", "c", "a"), ("c",))
    assert Dag.of(run.structure).parents["b"] == ("c", "a") and run.remarks == ()
    with pytest.raises(StructureError, match="a -> b -> a"):
        load_spec(path, ["structure={parents={b=['a'], a=['b']}}"])


def test_a_graph_is_read_from_a_bif_file(asia):
    """Families over the spec's own domain; probabilities are ignored, and attributes it lacks are measured alone."""
    run = load_spec(asia)
    assert run.structure is not None and run.structure.cliques == FAMILIES
    assert run.structure.domain == run.domain and run.domain["tub"].labels == ("no", "yes")
    assert run.remarks == (IGNORED,)
    run = load_spec(asia, [NAMES.removesuffix("}") + ", age=4}"])
    assert run.structure is not None and run.structure.cliques == (*FAMILIES, ("age",))
    assert run.remarks[0] == IGNORED
    assert run.remarks[1].startswith("independent of all others, as asia.bif does not have them: age; ")


@pytest.mark.parametrize("name", ["nets/asia.bif", "nets/ASIA.BIF"])
def test_a_domain_from_a_bif_file_counts_no_answer_that_nobody_gave(asia, name):
    """Values that are none of its labels get a label of their own and do not count as the first."""
    run = load_spec(asia, [f"domain={name}"])
    assert {one.name: one.labels for one in run.domain} == {
        "asia": ("yes", "no", "unknown"), "tub": ("yes", "no", "unknown"), "xray": ("clear", "dark", "unknown"),
    }  # fmt: skip
    for one in run.domain:
        assert [one.labels[one.code(text)] for text in (b"Yes", b"", None)] == ["unknown"] * 3
    assert run.structure is not None and run.structure.cliques == FAMILIES
    told = run.remarks[1]
    assert "2 of 3 attributes have a label more than in" in told and ": asia, tub; " in told and "'unknown'" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("unknown", "codes"),
    [("'no'", {"asia": 1, "tub": 1, "xray": 3}), ("{asia='no', tub='yes'}", {"asia": 1, "tub": 0, "xray": 2})],
)
def test_the_owner_may_say_what_unknown_values_count_as(asia, unknown, codes):
    """A label of the file, for all or for each: then the domain has the file's labels, where they have it."""
    run = load_spec(asia, ["domain={bif='nets/asia.bif', unknown=" + unknown + "}"])
    assert {one.name: one.code(b"?") for one in run.domain} == codes
    assert [one.size for one in run.domain] == [2, 2, 4 if codes["xray"] == 3 else 3]
    longer = [one for one in run.remarks if "label more" in one]
    assert len(longer) == (codes["xray"] == 3) and all(": xray; " in one for one in longer)


def test_an_attribute_may_be_called_bif(path):
    """A size, a list of labels or a table is an attribute; only a text is a file."""
    for plain in ("3", "['x','y','z']", "{size=3}"):
        run = load_spec(path, ["domain={a=2, b=3, bif=" + plain + "}"])
        assert run.domain["bif"].size == 4 and run.remarks == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("structure.cliques=[['asia']]", r"both bif and cliques; .* a whole structure"),
        ("structure.graph='chain'", "both bif and graph"),
        ("structure.parents={}", "both bif and parents"),
        ("structure.tied=[]", "both bif and tied"),
        ("structure.order=1", "both bif and order"),
        ("structure.select='auto'", "both selector and bif"),
        ("structure.bif=3", "structure.bif must be a text"),
        ("structure.bif=''", "structure.bif must be a text"),
        ("structure.bif='none.bif'", r"cannot read .*none\.bif: No such file"),
        ("structure.bif='x.toml'", r"x\.toml: network, variable or probability is expected"),
        ("workload.order=2", "workload"),
        ("domain={asia=2, tub=2, xrays=2}", "asia.bif has the variable 'xray', which is not an attribute .*'xrays'"),
        ("domain='none.bif'", r"cannot read .*none\.bif"),
        ("domain={asia=300, tub=300, xray=300}", "family of 'xray' .* 27,270,901 cells"),
        ("domain={bif='nets/asia.bif', size=2}", r"\[domain\] has no setting 'size'"),
        ("domain={bif='nets/asia.bif', unknown=2}", "domain.unknown: a label in quotes"),
        ("domain={bif='nets/asia.bif', unknown=''}", "domain.unknown: a label in quotes"),
        ("domain={bif='nets/asia.bif', unknown={tub=2}}", "a label in quotes is needed for 'tub'"),
        ("domain={bif='nets/asia.bif', unknown={tab='no'}}", "'tab', which is not a variable of asia.bif.*'tub'"),
    ],
)
def test_what_does_not_go_with_a_bif_file_is_refused_by_name(asia, change, words):
    with pytest.raises(DpgmError, match=words) as refusal:
        load_spec(asia, [change])
    assert "\n" not in str(refusal.value)


def test_singletons_go_with_named_cliques_and_with_a_selector(path):
    """Named cliques get the other attributes alone; a selector measures all attributes."""
    path.write_text(CHOSEN)
    weights = "workload={weights=[{clique=['a']}]}"
    domain = load_spec(path).domain
    assert load_spec(path, [weights]).workload.attributes == ("a",)
    assert load_spec(path, [weights, "structure.singletons=true"]).workload.attributes == domain.names
    with pytest.raises(DpgmError, match="singletons must be true or false"):
        load_spec(path, ["structure.singletons=1"])
    path.write_text(CHOSEN.replace('{ select = "auto" }', "{ singletons = true }"))
    assert load_spec(path).structure.cliques == tuple((name,) for name in domain.names)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: check_known("spec x", {"nmae": 1}, ("name",)), "spec x has no setting 'nmae'; did you mean 'name'"),
        (lambda: table_of("spec x", "output", "out", ("folder",)), "spec x: output must be a table, got 'out'"),
        (lambda: table_of("spec x", "output", {"file": 1}, ("folder",)), r"spec x: \[output\] has no setting 'file'"),
        (lambda: text_of("spec x", "unit", " "), "spec x: unit must be a text in quotes"),
        (lambda: text_of("spec x", "unit", 1), "got 1"),
        (lambda: file_stem("spec x", "a/b"), "no slashes"),
        (lambda: file_stem("spec x", ".a"), "no dot at the start"),
        (lambda: file_stem("spec x", "a" * 81), "at most 80 letters"),
    ],
)
def test_what_is_wrong_is_named(call, said):
    with pytest.raises(OptionError, match=said):
        call()


def test_what_is_right_comes_back():
    assert table_of("spec x", "output", {"folder": "o"}, ("folder",)) == {"folder": "o"}
    assert (text_of("spec x", "unit", "one visit"), file_stem("spec x", "Visits 2")) == ("one visit", "Visits 2")


@pytest.mark.parametrize(
    ("text", "keys", "value"),
    [
        ("a=1", ["a"], 1),
        (" a . b = [1, 2]", ["a", "b"], [1, 2]),
        ("a=plain text", ["a"], "plain text"),
        ("a=1\nb=2", ["a"], "1\nb=2"),
        ("a=", ["a"], ""),
        ("a=x=y", ["a"], "x=y"),
        ("a='0x'", ["a"], "0x"),
        ("a=0x" + "f" * 5000, ["a"], "0x" + "f" * 5000),
    ],
)
def test_a_setting_is_toml_or_text(text, keys, value):
    """What is no TOML value is taken as it stands; one setting never sets two keys."""
    assert parse_setting(text) == (keys, value)


@pytest.mark.parametrize("text", ["", "a", "=1", "a..b=1", ".=1"])
def test_a_setting_needs_keys(text):
    with pytest.raises(OptionError, match="KEY=VALUE"):
        parse_setting(text)


def test_a_name_becomes_a_table_where_it_stands_for_one():
    """The name that stands, or the default; elsewhere a text is in the way, and tables are made."""
    named = {("learner",): "eb-map", ("structure", "select"): None}
    plain = {"structure": {"select": "aim"}, "data": "d.csv"}
    for setting in ("learner.l2=1", "structure.select.merge=false", "budget.epsilon=2"):
        apply_setting(plain, setting, named)
    assert plain["learner"] == {"name": "eb-map", "l2": 1}
    assert plain["structure"] == {"select": {"name": "aim", "merge": False}}
    assert plain["budget"] == {"epsilon": 2}
    with pytest.raises(OptionError, match="'data' is not a table"):
        apply_setting(plain, "data.x=1", named)
