"""What tests of the command line share: a spec with its records, a model file, and how a command is run."""

import io
import json
import os
import pkgutil
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of
from dpgm.cli import main

SPEC = """
name = "visits"
data = "visits.csv"
domain = "domain.toml"
neighbours = "add-remove"
budget = { epsilon = 1 }
structure = { graph = "chain" }
[ledger]
path = "out/visits.ledger"
budget = { epsilon = 2.5 }
create = true
[output]
folder = "out"
"""
DOMAIN = '[attributes.sex]\nlabels = ["F", "M"]\nunknown = "F"\n[attributes.age]\nbins = [0, 40, 99]\nunknown = "?"\n'


@pytest.fixture
def spec(tmp_path) -> Path:
    """A spec, its domain and its records, in a folder that is not the current one."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "visits.toml").write_text(SPEC)
    (folder / "domain.toml").write_text(DOMAIN)
    (folder / "visits.csv").write_text("sex,age\n" + "F,30\nM,50\nM,60\n" * 40)
    return folder / "visits.toml"


@pytest.fixture
def dpgm_command(capfd):
    """Runs `dpgm ...` here; returns exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
            sys.exit(0)
        out, err = capfd.readouterr()
        return int(left.value.code or 0), out, err

    return run


@pytest.fixture
def ran(dpgm_command):
    """Runs a command that must succeed; returns stdout and stderr."""

    def run(*words: object) -> tuple[str, str]:
        code, out, err = dpgm_command(*words)
        assert code == 0, err
        return out, err

    return run


@pytest.fixture
def facts(ran):
    """Runs a command that must succeed with --json; returns what it prints, read."""
    return lambda *words: json.loads(ran(*words, "--json")[0])


@pytest.fixture
def refused(dpgm_command):
    """Runs a command that must be refused: exit 2, nothing on stdout, one line `dpgm: ...`; returns the line."""

    def run(*words: object) -> str:
        code, out, err = dpgm_command(*words)
        assert (code, out) == (2, ""), err
        assert err.startswith("dpgm: ")
        assert err.count("\n") == 1
        return err

    return run


@pytest.fixture
def killed(tmp_path):
    """Runs `dpgm ...` in a fork that is killed at a call of the named function; the folder of the output of `spec`."""
    if sys.platform == "win32":
        pytest.skip("needs SIGKILL and locks of files")

    def run(where: str, *words: object) -> Path:
        child = os.fork()
        if child == 0:
            owner, name = re.split(r"[.:](?=\w+$)", where)
            sys.stdout = sys.stderr = io.StringIO()
            setattr(pkgutil.resolve_name(owner), name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
            main([*map(str, words)])
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        return tmp_path / "run" / "out"

    return run


@pytest.fixture
def model(tmp_path) -> Path:
    structure = dpgm.Structure.chain(domain_of(sex="F M", age="young old"))
    codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 100)
    path = tmp_path / "m.dpgm"
    dpgm.fit(codes, structure, dpgm.Budget.pure(5), neighbours="add-remove").model.save(path)
    return path


@pytest.fixture
def partial(tmp_path) -> Path:
    """A model of sex-age and age-job with replicates, whose release measured nothing of town."""
    domain = domain_of(sex="F M", town="A B,C", age="young old", job="y n")
    structure = dpgm.Structure(domain, [("sex", "age"), ("age", "job")])
    codes = np.array([[0, 0, 0, 0], [1, 0, 1, 1], [1, 0, 1, 0], [0, 0, 1, 1]] * 100)
    fitted = dpgm.fit(codes, structure, dpgm.Budget.pure(5), neighbours="add-remove").model
    theta = fitted.potentials.values + 0.1 * np.random.default_rng(0).normal(size=(5, structure.cells))
    fitted.with_replicates(theta.astype(np.float32)).save(tmp_path / "partial.dpgm")
    return tmp_path / "partial.dpgm"
