"""Every benchmark that takes --smoke is run by something, and one that fails is noticed."""

import re
from pathlib import Path

import pytest

pytest.importorskip("joblib")

from benchmarks import paper, smokes
from benchmarks.harness.main import Study, main

ROOT = Path(__file__).parents[2]


def test_every_smoke_run_is_made_by_ci_or_by_a_test():
    """`.ci/run` runs all that no test does; every module that speaks of --smoke is known; each test makes its run."""
    speak = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "--smoke" in path.read_text(encoding="utf-8")}
    speak |= {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}
    assert set(smokes.names()) == speak - {"smokes", "paper"} | {f"paper {name}" for name in paper.names()}
    assert re.search(r"^step .* tool \"python -m benchmarks\.smokes\"$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert smokes.IN_TESTS.keys() < smokes.names().keys()
    for name, file in smokes.IN_TESTS.items():
        text = (ROOT / "tests" / "benchmarks" / file).read_text(encoding="utf-8")
        assert re.search(rf"main\((?:{name}\.)?(?:STUDY|MEASUREMENT), (?:\[.*\"--smoke\"|asked|given)", text), name
        assert '"--smoke"' in text


def test_a_smoke_run_that_fails_is_shown(tmp_path, monkeypatch, capsys):
    """Its output, and how many failed; what a test runs is left out unless it is named."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "good.py").write_text(
        "STUDY = 1\nimport sys\nassert sys.argv[1:] == ['--smoke', '--store', 'good.jsonl']\n"
    )
    (folder / "bad.py").write_text("MEASUREMENT = 1\nraise SystemExit('it crashed')\n")
    (folder / "shared.py").write_text("K = 1\n")
    monkeypatch.setattr(smokes, "FOLDER", folder)
    assert smokes.main([]) == 1
    said = capsys.readouterr().err
    assert "good: ran" in said and "bad: failed" in said and "it crashed" in said and "shared" not in said
    monkeypatch.setattr(smokes, "IN_TESTS", {"bad": "test_bad.py"})
    assert smokes.main([]) == 0 and smokes.main(["bad"]) == 1


def _halved(task, asked):
    return {"value": 1 / task.trial}


def test_a_study_with_a_failed_run_says_so_by_its_exit_code(tmp_path, capsys):
    """The other runs are kept and reported; the exit code is 1."""
    study = Study(
        about=None,
        name="toy",
        cells=lambda asked: {"cell": 2},
        methods=["halved"],
        work=_halved,
        text=lambda lines: f"{len(lines)} lines",
    )
    with pytest.raises(SystemExit) as left:
        main(study, ["--smoke", "--store", str(tmp_path / "toy.jsonl")])
    assert left.value.code == 1 and "1 lines" in capsys.readouterr().out
