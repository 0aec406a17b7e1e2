"""`dpgm infer`: UAI files in, result files out, unconverged answers flagged, too wide models refused."""

import numpy as np
import pytest

from app.tests.interop.small import shared_file
from dpgm.interop.uai import write_uai
from dpgm.interop.uai_tasks import read_mar, read_pr
from dpgm_core import Domain, Structure, Tables


@pytest.fixture
def model(tmp_path):
    """p(a, b) proportional to [[1, 2], [3, 4]]."""
    path = tmp_path / "m.uai"
    path.write_text("MARKOV 2 2 2 1 2 0 1 4 1 2 3 4")
    return path


@pytest.fixture
def frustrated(tmp_path):
    """A 3-cycle on which undamped loopy-bp needs more than two sweeps."""
    domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    structure = Structure(domain, [("a", "b"), ("b", "c"), ("c", "a")])
    values = np.random.default_rng(1).normal(scale=2.0, size=structure.cells)
    write_uai(tmp_path / "cycle.uai", structure, Tables(structure, values))
    return tmp_path / "cycle.uai"


@pytest.mark.parametrize(
    ("task", "expected"), [("PR", "PR\n1\n"), ("MAR", "MAR\n2 2 0.3 0.7 2 0.4 0.6\n"), ("MPE", "MPE\n2 1 1\n")]
)
def test_each_task_is_answered_on_stdout(dpgm_command, model, task, expected):
    """Without -o the result file's text is the whole of stdout, nothing is said besides."""
    code, out, err = dpgm_command("infer", model, "--task", task)
    assert (code, err) == (0, "")
    names, numbers = out.split()[0], np.array(out.split()[1:], dtype=float)
    assert names == expected.split()[0]
    assert numbers == pytest.approx(np.array(expected.split()[1:], dtype=float), abs=1e-12)
    assert out.endswith("\n") and not out.endswith("\n\n")


def test_evidence_is_read_and_the_result_is_written(dpgm_command, facts, model, tmp_path):
    """With b = 1 observed Z = 2 + 4; a result file replaces a result file and nothing else."""
    evidence, result = tmp_path / "m.uai.evid", tmp_path / "m.uai.PR"
    evidence.write_text("1 1 1")
    code, out, _ = dpgm_command("infer", model, "--evidence", evidence, "--task", "PR", "-o", result)
    assert code == 0
    assert str(result) in out
    assert read_pr(result) == pytest.approx(np.log10(6), abs=1e-12)
    shown = facts("infer", model, "--task", "PR")
    assert (shown["converged"], shown["task"], shown["inference"]) == (True, "PR", "junction-tree")
    assert float(shown["result"].split()[1]) == pytest.approx(1)
    assert facts("infer", model, "--task", "PR", "-o", tmp_path / "r")["file"] == str(tmp_path / "r")
    before = model.read_bytes()
    code, out, err = dpgm_command("infer", model, "--task", "PR", "-o", model)
    assert (code, out) == (2, "") and "is a UAI model; only a UAI result is replaced there" in err
    assert model.read_bytes() == before
    for task in ("PR", "MAR", "MPE"):
        assert dpgm_command("infer", model, "--task", task, "-o", tmp_path / "x")[0] == 0


def test_an_unconverged_answer_is_given_and_flagged(dpgm_command, facts, frustrated):
    """Exit code 0 with the answer on stdout; stderr names the engine and what to try; --json says converged: false."""
    words = ["infer", frustrated, "--task", "MAR", "--inference", "loopy-bp", "--set", "inference.max_iterations=2"]
    code, out, err = dpgm_command(*words)
    assert code == 0 and out.startswith("MAR")
    assert "loopy-bp did not converge in 2 iterations" in err and "max_iterations" in err
    assert facts(*words)["converged"] is False
    code, _, err = dpgm_command(*words[:-2])
    assert (code, err) == (0, "")


def test_bounds_hold_the_partition_function(dpgm_command, facts, frustrated):
    """On stderr and in --json, converged or not; for PR only, and from engines that have them."""
    _, out, _ = dpgm_command("infer", frustrated, "--task", "PR")
    exact = float(out.split()[1])
    words = ["infer", frustrated, "--inference", "loopy-bp", "--bounds", "--set", "inference.max_iterations=2"]
    words += ["--set", "inference.bound_cells=4"]
    code, _, err = dpgm_command(*words, "--task", "PR")
    assert code == 0 and "dpgm: PR is certainly between " in err
    low, high = facts(*words, "--task", "PR")["bounds"]
    assert low <= exact <= high < low + 2
    code, _, err = dpgm_command(*words, "--task", "MAR")
    assert code == 2 and "--task PR" in err
    code, _, err = dpgm_command("infer", frustrated, "--task", "PR", "--bounds")
    assert code != 0 and "such as loopy-bp" in err


def test_required_convergence_fails(dpgm_command, frustrated, tmp_path):
    settings = ["--set", "inference.max_iterations=2", "--set", "inference.require_convergence=true"]
    result = tmp_path / "r"
    words = ("infer", frustrated, "--task", "MAR", "--inference", "loopy-bp", *settings, "-o", result)
    code, out, err = dpgm_command(*words)
    assert (code, out) == (1, "") and err.startswith("dpgm: ")
    assert not result.exists()


def test_too_wide_models_are_refused_with_sizes_and_a_way_out(dpgm_command, tmp_path):
    """The exact engine refuses a complete graph of 40 attributes before allocating; loopy-bp answers it."""
    domain = Domain.from_sizes({f"x{place}": 4 for place in range(40)})
    structure = Structure.complete(domain)
    path = tmp_path / "wide.uai"
    write_uai(path, structure, Tables(structure, np.random.default_rng(2).normal(scale=0.05, size=structure.cells)))
    code, out, err = dpgm_command("infer", path, "--task", "PR")
    assert (code, out) == (2, "") and "treewidth" in err and "loopy-bp" in err
    code, out, err = dpgm_command("infer", path, "--task", "PR", "--inference", "loopy-bp")
    assert (code, err) == (0, "")
    assert float(out.split()[1]) == pytest.approx(40 * np.log10(4), abs=1.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "SUM"], "SUM"),
        (["--task", "MPE", "--inference", "loopy-bp"], "junction-tree"),
        (["--task", "PR", "--inference", "loopy-pb"], "loopy-bp"),
        (["--task", "PR", "--set", "learner.l2=1"], "inference.KEY=VALUE"),
        (["--task", "PR", "--set", "inference.max_byte=1"], "max_bytes"),
        (["--task", "PR", "--evidence", "nowhere.evid"], "nowhere.evid"),
        ([], "--task"),
    ],
)
def test_wrong_requests_are_one_line(dpgm_command, model, words, said):
    code, out, err = dpgm_command("infer", model, *words)
    assert code in (1, 2) and out == ""
    assert err.startswith("dpgm: ") and err.count("\n") == 1 and said in err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["Grids_12", "Promedus_24", "CSP_12"])
def test_competition_instances_are_answered(dpgm_command, tmp_path, name):
    """PR within 1e-3 (log10) and MAR within 1e-5 of the published results, through files, zeros included."""
    path = shared_file(f"{name}.uai")
    for task in ("PR", "MAR"):
        code, _, err = dpgm_command("infer", path, "--evidence", f"{path}.evid", "--task", task, "-o", tmp_path / task)
        assert (code, err) == (0, "")
    assert read_pr(tmp_path / "PR") == pytest.approx(read_pr(f"{path}.PR"), abs=1e-3)
    for ours, theirs in zip(read_mar(tmp_path / "MAR"), read_mar(f"{path}.MAR"), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
