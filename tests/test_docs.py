"""The documentation says what is true: its blocks run, its lists are complete, its pages exist."""

import ast
import csv
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from dpgm_mrf.edges import edges
from scipy import stats

import dpgm
import dpgm_core
from dpgm.interop import read_network
from dpgm.scaffold import files_of
from dpgm_core._util.lazy import FACES
from dpgm_core.structure.workload import Workload
from tests.pages import DOCS, ROOT, assert_prints, blocks, expected_code, module_at, run_page

# Warnings of our own modules and of a page's code are errors; deprecations elsewhere may not break a page.
OURS = """import warnings
warnings.filterwarnings("error", module="dpgm_|__main__")
warnings.filterwarnings("default", category=DeprecationWarning)
"""
# One command after the other, and what is refused; talk goes where results go.
REFUSED = """import sys
from dpgm.cli import main
sys.stderr = sys.stdout
for arguments, wanted in {lines}:
    if wanted < 0:
        print("\\n#", *arguments)
        continue
    try:
        main(arguments)
        code = 0
    except SystemExit as done:
        code = done.code or 0
    assert code == wanted, (arguments, code)
"""
JOBS = ["office", "retail", "teaching", "building", "nursing", "driving", "farming", "cooking", "cleaning", "retired"]


def run(command: list[str], cwd: Path, path: Path | None = None) -> str:
    """Run this interpreter; its output is the reason if it fails."""
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", [pytest.param("cgm-em", marks=pytest.mark.landing), "noise"])
def test_a_page_runs(tmp_path, page):
    """Its blocks, as they stand."""
    run_page(DOCS / f"{page}.md", tmp_path)


@pytest.mark.landing
def test_the_page_on_error_bars_runs(tmp_path):
    """And those of the page on error bars; five data sets are written."""
    run_page(DOCS / "how-sure.md", tmp_path)
    assert len(list(tmp_path.glob("synthetic-?.csv"))) == 5


@pytest.mark.landing
def test_the_page_on_analyses_runs(tmp_path):
    """And those of the page on analyses; its coefficient of coinsurance is that of the records, within six errors."""
    run_page(DOCS / "research.md", tmp_path)
    model = dpgm_core.load_model(tmp_path / "docs/examples/health/out/health.dpgm")
    found = dpgm.analyse(model, "visits ~ coinsurance", event="0")
    at = found.names.index("coinsurance[T.95%]")
    # By statsmodels on health.csv.
    assert abs(found.estimates.estimate[at] - 0.7290) < 6 * found.estimates.standard_error[at]


def test_the_page_on_speed_runs(tmp_path, capsys):
    """And that of the page on speed: what an engine says it will do, whichever executor is installed."""
    run_page(DOCS / "performance.md", tmp_path)
    assert_prints(DOCS / "performance.md", capsys.readouterr().out.replace("executor numpy", "executor numba"))


@pytest.mark.landing
def test_the_page_on_choosing_runs(tmp_path):
    """A fit and a selection are charged to one ledger; the model is as private as its release."""
    run_page(DOCS / "choosing.md", tmp_path)
    out = tmp_path / "docs/examples/health/out"
    ledger = dpgm_core.Ledger.open(out / "health-select.ledger")
    assert [entry.cost for entry in ledger.history()] == [dpgm_core.Budget.pure(1)] * 2
    model = dpgm_core.load_model(out / "health-select.dpgm")
    assert model.cost == dpgm_core.Budget.pure(1) and not model.unmeasured
    assert max(map(len, model.structure.cliques)) > 1
    for made in (model, dpgm_core.load_release(out / "health-select-2.release.dpgm")):
        assert "The structure was chosen privately, within the stated budget." in made.guarantee()


@pytest.mark.landing
def test_the_pages_on_tables_run(tmp_path):
    """And those of the five pages on tables of one's own, in their order; they print what they say, up to noise.

    The planted facts of `make.py` are found: bounds are ten standard errors of noise, or more, from what is in the
    records; that of costs holds for any edges. A label of ten persons is told with probability 5e-7 (a threshold of 79
    and noise of scale 5), two such with less than 1e-10. So false alarms are below 1e-9. No sampled record breaks a
    constraint.
    """
    pages = [DOCS / f"{name}.md" for name in ("my-csv", "numeric", "missing", "constraints", "filling-in")]
    for example in ("extract", "health"):
        shutil.copytree(DOCS / "examples" / example, tmp_path / "docs/examples" / example)
    lines: list[tuple[list[str], int]] = []
    for page in pages:
        lines.append(([page.stem], -1))
        for language, title, content in blocks(page):
            if title.endswith((".toml", ".csv")):
                (tmp_path / title).write_text(content, encoding="utf-8")
            if language == "sh":
                for line in content.splitlines():
                    assert line.startswith("dpgm ")
                    lines.append((shlex.split(line, comments=True)[1:], expected_code(line)))
    printed = run(["-c", REFUSED.format(lines=lines)], cwd=tmp_path).split("\n# ")
    for page, output in zip(pages, printed[1:], strict=True):
        assert output.startswith(page.stem)
        assert_prints(page, output)
    python = [text for page in pages for kind, _, text in blocks(page) if kind == "python"]
    run(["-c", OURS + "\n".join(python)], cwd=tmp_path)

    model = dpgm_core.load_model(tmp_path / "stays/stays.dpgm")
    found = set(model.domain["job"].labels)
    assert "retired" in found and len(found - {*JOBS, "other", "missing"}) < 2
    assert "missing" not in model.domain["sex"].labels and model.cost == dpgm_core.Budget.approx(2, "1e-6")
    with (tmp_path / "synthetic.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    header = (DOCS / "examples/extract/stays.csv").read_text().splitlines()[0]
    assert len(rows) == 1000 and list(rows[0]) == header.split(";")
    assert all(re.fullmatch(r"\d\d\.\d\d\.2024", row["admitted"]) for row in rows if row["admitted"])

    numbers = dpgm_core.load_model(tmp_path / "numbers.dpgm")
    assert abs(numbers.mean("age") - 54.5) < 2 and abs(numbers.correlation("age", "systolic") - 0.5) < 0.15
    assert 500 < numbers.mean("cost") < 4000 and numbers.domain["cost"].private is None

    rules = dpgm_core.load_model(tmp_path / "rules.dpgm")
    assert rules.marginal(["sex", "pregnant"])[0, 1] == 0 and not rules.unmeasured
    with (DOCS / "examples/extract/counties.csv").open(newline="") as file:
        regions = {row["county"]: row["region"] for row in csv.DictReader(file)}
    for name in ("rules.csv", "dunes.csv", "full.csv"):
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            assert (row["sex"], row["pregnant"]) != ("1", "yes")
            assert not row["county"] or row["region"] == regions[row["county"]]
            days = [row[name][6:] + row[name][3:5] + row[name][:2] for name in ("admitted", "discharged")]
            assert days[0] <= days[1]
    assert [row["remark"] for row in rows] == ["came by bus", "", ""] and all(row["insurance"] for row in rows)
    assert json.loads((tmp_path / "full.csv.dpgm.json").read_text())["private"] is False


@pytest.mark.parametrize(
    ("table", "labels", "unknown", "null"),
    [
        ({}, ("no", "yes", "missing"), "missing", "missing"),
        ({"null_values": []}, ("no", "yes", "missing"), "missing", "missing"),
        ({"missing": "no answer"}, ("no", "yes", "no answer"), "no answer", "no answer"),
        ({"unknown": "yes"}, ("no", "yes"), "yes", "yes"),
        ({"unknown": "yes", "missing": "missing"}, ("no", "yes", "missing"), "yes", "missing"),
    ],
)
def test_the_table_of_the_page_on_missing_values_is_so(table, labels, unknown, null):
    """Where null and unknown values go, setting by setting; the rules and their examples."""
    smoker = dpgm_core.Domain.from_dict({"smoker": {"labels": ["no", "yes"], **table}})["smoker"]
    assert smoker.labels == labels
    assert (labels[smoker.unknown], labels[smoker.null]) == (unknown, null)
    rules = {"labels": ["yes", "1"], "case": False, "blanks": "strip", "numbers": True, **table}
    loose = dpgm_core.Domain.from_dict({"a": rules})["a"] if "unknown" not in table else None
    assert loose is None or [loose.code(text) for text in ("Yes", " yes ", "1.0", "01")] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("table", "bins", "label"),
    [
        ({"type": "integer", "min": 0, "max": 9}, 10, "9"),
        ({"type": "integer", "min": 0, "max": 300}, 32, "291-300"),
        ({"type": "integer", "bins": [80, 110, 120]}, 2, "110-120"),
        ({"type": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "quarter"}, 4, "2024 Q4"),
        ({"type": "datetime", "min": "2024-03-05", "max": "2024-03-05T16:30", "bins": "hour"}, 17, "2024-03-05T16"),
        ({"type": "time", "bins": "hour"}, 24, None),
        ({"type": "number", "min": 1, "max": 1000, "bins": 3, "scale": "log"}, 3, "[100, 1000]"),
    ],
)
def test_the_table_of_the_page_on_numbers_is_so(table, bins, label):
    """How many bins each row gives, and what the last one is called."""
    column = dpgm_core.Domain.from_dict({"a": table})["a"]
    assert column.size == bins + 1 and label in (None, column.labels[-2])


def test_the_stays_are_those_of_their_script(tmp_path):
    """`make.py` writes the committed file again, byte for byte."""
    folder = DOCS / "examples/extract"
    for name in ("make.py", "counties.csv"):
        shutil.copy(folder / name, tmp_path)
    run(["make.py"], cwd=tmp_path)
    assert (tmp_path / "stays.csv").read_bytes() == (folder / "stays.csv").read_bytes()


def test_the_page_on_networks_runs(tmp_path):
    """And those of the page on Bayesian networks: two fits are charged, and the model goes into a file as its graph.

    The noise, of scale 5, would have to move a cell by over a hundred records: false alarm below 1e-9.
    """
    run_page(DOCS / "bayes-networks.md", tmp_path)
    clinic = tmp_path / "docs/examples/clinic"
    ledger = dpgm_core.Ledger.open(clinic / "out/clinic.ledger")
    assert [entry.cost for entry in ledger.history()] == [dpgm_core.Budget.pure(1)] * 2
    truth, _ = read_network(clinic / "clinic.bif")
    learned, tables = read_network(clinic / "out/learned.bif")
    model = dpgm_core.load_model(clinic / "out/clinic.dpgm")
    assert learned == truth == dpgm_core.Dag.of(model.structure)
    assert len(model.release.structure.cliques) == len(truth.maximal) == 5
    assert tables["cough"][1, 0, 0] < 0.2 and tables["cough"][1, 1, 0] > 0.4


def test_the_clinic_s_records_are_those_of_its_network():
    """Chi-squared of the committed records against the network, family by family; false alarm 1e-6 in all."""
    dag, tables = read_network(DOCS / "examples/clinic/clinic.bif")
    truth = dpgm_core.Model.from_cpds(dag, tables)
    header, *lines = (DOCS / "examples/clinic/clinic.csv").read_text().splitlines()
    assert header.split(",") == list(dag.domain.names) and len(lines) == 5000
    records = [zip(dag.domain, line.split(","), strict=True) for line in lines]
    codes = np.array([[one.labels.index(label) for one, label in record] for record in records])
    for family in dag.families:
        seen = np.zeros(dag.domain.shape(family))
        np.add.at(seen, tuple(codes[:, dag.domain.names.index(name)] for name in family), 1)
        expected = 5000 * truth.marginal(family)
        assert expected.min() > 3
        distance = ((seen - expected) ** 2 / expected).sum()
        assert distance < stats.chi2.ppf(1 - 1e-6 / 7, expected.size - 1)


def test_the_page_on_structure_runs(tmp_path):
    """And those of the page on structure: the guarantee is of all three steps, and the edges are the true ones.

    An edge is missed if five others outrank it at both ends, by over 800 records where one is e^.017, or if noise moves
    it by eight standard errors; of 54 pairs one is made up beyond three. Nine of those: false alarm below 1e-9 in all.
    """
    run_page(DOCS / "structure.md", tmp_path)
    symptoms = tmp_path / "docs/examples/symptoms"
    ledger = dpgm_core.Ledger.open(symptoms / "out/symptoms.ledger")
    assert [entry.cost for entry in ledger.history()] == [dpgm_core.Budget.zcdp("0.02")] * 2
    model = dpgm_core.load_model(symptoms / "out/symptoms.dpgm")
    assert "rho = 0.02 (zCDP)" in model.guarantee() and "a session of 3 adaptive steps" in model.guarantee()
    parts = dpgm_core.Budget.sum([step.cost for step in model.release.steps]).rho
    assert model.release.contrasts and model.cost.rho * 0.999999 < parts <= model.cost.rho
    true = {(one, other) for one, other, _ in tomllib.loads((symptoms / "truth.toml").read_text())["edges"]}
    found = set(edges(model))
    assert found >= true and len(found - true) < 9 and len(model.structure.cliques) > len(true)


def test_the_symptoms_are_those_of_their_truth():
    """Chi-squared of the committed records against the couplings, edge by edge; false alarm 1e-6 in all."""
    truth = tomllib.loads((DOCS / "examples/symptoms/truth.toml").read_text())
    domain = dpgm_core.Domain.load(DOCS / "examples/symptoms/domain.toml")
    header, *lines = (DOCS / "examples/symptoms/symptoms.csv").read_text().splitlines()
    assert header.split(",") == list(domain.names) and len(lines) == 4000
    codes = np.array([[("no", "yes").index(label) for label in line.split(",")] for line in lines])
    states = 1 - 2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1)  # all of them: no engine is asked
    place = {name: number for number, name in enumerate(domain.names)}
    weight = truth["field"] * states.sum(axis=1)
    for one, other, coupling in truth["edges"]:
        weight = weight + coupling * states[:, place[one]] * states[:, place[other]]
    chance = np.exp(weight) / np.exp(weight).sum()
    for one, other, _ in truth["edges"]:
        both = [place[one], place[other]]
        seen = np.bincount(codes[:, both] @ (2, 1), minlength=4)
        expected = 4000 * np.bincount((1 - states[:, both]) // 2 @ (2, 1), chance, minlength=4)
        assert ((seen - expected) ** 2 / expected).sum() < stats.chi2.ppf(1 - 1e-6 / 12, 3)


def test_the_workload_of_the_page_on_choosing_is_one():
    """The table is read as it stands."""
    text = next(content for _, title, content in blocks(DOCS / "choosing.md") if title == "a workload, in part")
    domain = dpgm_core.Domain.load(DOCS / "examples/health/domain.toml")
    table = tomllib.loads(text)["workload"]
    assert ("visits", "coinsurance") in Workload.from_dict(domain, table).candidates


def test_the_readme_s_commands_make_their_own_environment():
    """Debian's Python refuses pip outside one; what they install, as every page says it, are the committed versions."""
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^<!-- command: (\w+) -->\n```sh\n([^`]*)\n```$", text, re.MULTILINE)
    assert [name for name, _ in commands] == ["example", "tests"]
    for _, command in commands:
        assert command.startswith("python3 -m venv .venv && . .venv/bin/activate && pip install ")
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("plugins/*/*.md")]:
        for line in page.read_text(encoding="utf-8").splitlines():
            if re.search(r"pip install (-r|--no-)", line):
                assert "-c constraints.txt" in line, f"{page}: {line}"


def test_the_page_on_notebooks_runs(monkeypatch):
    """Its cell shows each label of `visits` beside its probability, and what that rests on; nothing is written."""
    monkeypatch.chdir(ROOT)
    ((_, _, block),) = [one for one in blocks(DOCS / "notebooks.md") if one[0] == "python"]
    *lines, last = ast.parse(block).body
    space: dict[str, object] = {}
    exec(compile(ast.Module(lines, []), "notebooks.md", "exec"), space)
    shown = eval(compile(ast.Expression(last.value), "notebooks.md", "eval"), space)._repr_html_()
    assert all(f"<td>{label}</td>" in shown for label in ("0", "3-4", "9+")) and shown.count("measured") == 6
    assert "learner" in space["done"]._repr_html_() and "20,000" not in repr(space["plan"])


def test_the_page_on_mixing_runs(tmp_path):
    """And those of the page on mixing; another learner on the same release gives another model, at the same cost."""
    run_page(DOCS / "mixing.md", tmp_path)
    first = dpgm_core.load_model(tmp_path / "docs/examples/health/out/health.dpgm")
    other = dpgm_core.load_model(tmp_path / "naive.dpgm")
    assert other.cost == first.cost == dpgm_core.Budget.pure(1)
    assert dpgm_core.kl_divergence(first, other) > 1e-6


@pytest.mark.landing
def test_the_properties_of_the_conformance_page_hold():
    """The file of properties passes as it stands."""
    text = next(content for _, title, content in blocks(DOCS / "conformance.md") if title == "tests/test_properties.py")
    names: dict[str, object] = {}
    exec(compile(text, "test_properties.py", "exec"), names)
    properties = [value for name, value in names.items() if name.startswith("test_")]
    assert len(properties) == 3
    for one in properties:
        one()


@pytest.mark.landing
def test_the_plugin_page_makes_a_working_plugin(tmp_path):
    """The files of write-a-plugin, put where pip would put them, are found, shown and learn a model."""
    page = blocks(DOCS / "write-a-plugin.md")
    files = {title: content for _, title, content in page if title and "lines that matter" not in title}
    for title, content in files.items():
        target = tmp_path / title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"]["dpgm"].items())
    (info / "entry_points.txt").write_text(f"[dpgm]\n{points}")
    command = ["-c", "from dpgm.cli import main; main()"]
    assert project["name"] in run([*command, "plugins"], cwd=tmp_path, path=tmp_path)
    assert "smoothing" in run([*command, "plugins", "independent"], cwd=tmp_path, path=tmp_path)
    python = [content for language, title, content in page if language == "python" and not title]
    run(["-c", OURS + "\n".join(python)], cwd=tmp_path, path=tmp_path)


def test_the_lines_that_matter_are_those_of_the_scaffold():
    """What the plugin page shows of a new mechanism is in it, in another order."""
    made = {line.strip() for line in files_of("mechanism", "coin")["dpgm_coin/mechanism.py"].splitlines()}
    title = "mechanism.py, the lines that matter"
    shown = next(content for _, name, content in blocks(DOCS / "write-a-plugin.md") if name == title)
    lines = [line for line in shown.splitlines() if not line.startswith("#")]
    assert len(lines) == 5 and made.issuperset(lines)


def test_generated_pages_are_up_to_date():
    """cli.md says what --help says, components.md every option, conformance.md every check: docs/hooks/pages.py."""
    module = module_at(DOCS / "hooks/pages.py")
    assert not [page.name for page, text in module.pages() if page.read_text(encoding="utf-8") != text]
    names = {tuple(context.help_option_names) for _, context in module.commands(module.cli, "dpgm")}
    assert names == {("-h", "--help")}  # click keeps the help option of the first context that asks a command for it


def test_the_attribute_tables_of_the_command_line_page_are_read():
    """Each of its settings is one, and the labels are those that its comments speak of."""
    blocks = re.findall(r"```toml\n(.*?)```", (DOCS / "cli.md").read_text(encoding="utf-8"), re.DOTALL)
    shown = next(block for block in blocks if "[attributes.smoker]" in block)
    domain = dpgm_core.Domain.from_dict(tomllib.loads(shown))
    assert domain["smoker"].labels == ("no", "yes", "missing") and domain["smoker"].code("Yes") == 1
    assert domain["age"].labels[1:3] == ("5-9", "10-14") and domain["age"].code("103") == 18
    assert domain["admitted"].labels[0] == "2018-01" and domain["admitted"].code("31.01.2018") == 0
    assert domain["income"].code("1.250,50") == domain["income"].code("1250,5") and domain.undetermined == (
        "job",
        "town",
    )


def test_the_spec_page_names_every_key(tmp_path):
    """The spec file on the command page is read as it stands, and it names every key there is."""
    from dpgm import spec as run

    shutil.copy(DOCS / "examples" / "health" / "domain.toml", tmp_path)
    text = next(content for _, title, content in blocks(DOCS / "cli.md") if title == "health.toml")
    (tmp_path / "health.toml").write_text(text)
    assert run.load_spec(tmp_path / "health.toml").terms.unit == "one person-year"
    keys = set(re.findall(r"^(?:# ?)?\[?(\w+)(?:\]| =)", text, re.MULTILINE))
    assert keys >= set(run._KEYS)


def test_every_public_name_is_in_the_reference():
    """Each name of the faces and of the application stands on exactly one reference page, and no other does."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    named = [name for page in pages for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)]
    public = {
        f"{face}.{name}"
        for face in (*FACES, *(f"dpgm.{package}" for package in dpgm.PACKAGES))
        for name in importlib.import_module(face).__all__
        if face != "dpgm_core.plugin" and name != "__version__"
    }
    assert sorted(named) == sorted(
        {*public, "dpgm.analyse", "dpgm.analysis.Analysis", "dpgm.init", "dpgm.shown", "dpgm.RelatedModel"}
    )


#: Pages for those who change core itself, and of what was.
INTERNAL = ("architecture.md", "changelog.md", "contributing.md", "decisions")


def test_pages_tell_nobody_to_use_what_is_not_public():
    """Blocks import from faces alone, and functions that a page names stand in one of them or in a public class."""
    public = {(face, name) for face in FACES for name in importlib.import_module(face).__all__}
    offered = {name for _, name in public} | {
        member for face, name in public for member in dir(getattr(importlib.import_module(face), name))
    }
    core = "".join(path.read_text() for path in sorted((ROOT / "dpgm_core").rglob("*.py")))
    defined = set(re.findall(r"^def ([a-z]+(?:_[a-z]+)+)\(", core, re.MULTILINE))
    assert {"truncated_delta", "measure_dependence"} <= defined
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text()
        if path.relative_to(DOCS).parts[0] in INTERNAL:
            continue
        for module, names in re.findall(r"^ *from (dpgm_core[\w.]*) import ([\w, ]+)$", text, re.MULTILINE):
            for name in names.split(", "):
                assert (module, name) in public or (module, name) == ("dpgm_core", "plots"), (path.name, module, name)
        named = set(re.findall(r"`(?:\w+\.)*([a-z]+(?:_[a-z]+)+)(?:\([^`]*\))?`", text))
        assert named & defined <= offered, (path.name, named & defined - offered)


def test_the_faces_are_named_where_they_are_promised():
    """What a plugin may import is said once, and completely."""
    text = (DOCS / "compatibility.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert set(FACES) <= set(re.findall(r"`(dpgm_core[.\w]*)`", text))


def test_navigation_is_complete():
    """Each page is in the navigation and each entry of the navigation is a page."""
    yaml = pytest.importorskip("yaml")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())

    def pages(entry):
        if isinstance(entry, str):
            return [entry]
        return [page for below in (entry.values() if isinstance(entry, dict) else entry) for page in pages(below)]

    found = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(pages(config["nav"])) == sorted(name for name in found if not name.startswith("examples/plugins/"))


def test_relative_links_lead_somewhere():
    """Links between files in the repository's own Markdown point at files that exist."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("plugins/*/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_decisions_are_numbered_and_listed():
    """Decision records are 0001, 0002, ... without a gap, and the index lists each."""
    records = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    index = (DOCS / "decisions" / "index.md").read_text()
    for number, record in enumerate(records, start=1):
        assert record.name.startswith(f"{number:04d}-")
        assert record.read_text().startswith(f"# {number:04d}: ")
        assert f"]({record.name})" in index


def test_the_example_derives_from_the_public_data_set():
    """The CSV is the one that `derive.py` makes: its header is the script's list, and all 20,190 rows are there."""
    lines = (DOCS / "examples" / "health" / "health.csv").read_text().splitlines()
    script = (DOCS / "examples" / "health" / "derive.py").read_text()
    columns = re.findall(r'"(\w+)"', script.split("COLUMNS = [")[1].split("]")[0])
    assert lines[0].split(",") == columns
    assert len(lines) == 1 + 20190


def test_paths_in_back_ticks_exist():
    """A Python file that a page names exists, except for files of a plugin that the reader makes."""
    roots = [ROOT, ROOT / "dpgm_core", ROOT / "app" / "dpgm", ROOT / "plugins"]
    made = ("dpgm-coin/", "dpgm_NAME/")
    missing = [
        f"{page.name}: {path}"
        for page in [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]
        if page.name.lower() != "changelog.md"
        for path in re.findall(r"`([\w.-]+(?:/[\w.-]+)*/[\w-]+\.py)`", page.read_text(encoding="utf-8"))
        if not path.startswith(made) and not any((root / path).exists() for root in roots)
    ]
    assert not missing, missing
