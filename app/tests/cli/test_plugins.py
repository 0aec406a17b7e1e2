"""`dpgm plugins`, with names and without; `dpgm check` and `dpgm new`."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_plugins(facts):
    names = {(one["kind"], one["name"]) for one in facts("plugins")["components"]}
    assert {("mechanism", "laplace"), ("learner", "naive-mle"), ("inference", "junction-tree")} <= names
    learners = {(one["kind"], one["name"]) for one in facts("plugins", "learner")["components"]}
    assert learners == {one for one in names if one[0] == "learner"}


def test_plugins_by_name(dpgm_command, refused, facts):
    options = facts("plugins", "naive-mle")["options"]
    assert {one["name"] for one in options} == {"project", "l2", "tolerance", "max_iterations"}
    out = dpgm_command("plugins", "naive-mle", "csv")[1]
    assert "strength of the L2 penalty" in out and "source csv, from dpgm-core" in out
    both = facts("plugins", "mrf-fw")
    assert len(both) == 2 and len({one["kind"] for one in both}) == 2
    assert facts("plugins", both[0]["kind"], "mrf-fw") == both[0]
    assert "did you mean 'naive-mle'" in refused("plugins", "naive-mel")
    assert "did you mean 'naive-mle'" in refused("plugins", "learner", "naive-mel")
    assert "did you mean 'learner'" in refused("plugins", "lerner", "naive-mle")


def test_dpgm_check_of_a_distribution_that_is_not_there(refused):
    assert "dpgm-nowhere" in refused("check", "dpgm-nowhere")


@pytest.mark.landing
def test_dpgm_check_json_and_table(facts, ran):
    pytest.importorskip("dpgm_laplace")
    (report,) = facts("check", "dpgm-laplace")
    assert report["ok"] and report["target"] == "mechanism 'laplace'"
    out, _ = ran("check", "dpgm-laplace")
    assert "samples-follow-logpdf" in out and "needs 'approx'" in out


def command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", "from dpgm.cli import main; main()", *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True)


@pytest.mark.landing
def test_the_command_says_what_to_do_next(tmp_path):
    """The folder, and the commands that install and check it; refusals are one line and exit code 2."""
    done = command("new", "mechanism", "mine", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == f'pip install -e "{tmp_path}/dpgm-mine[testing]" && dpgm check dpgm-mine'
    again = command("new", "mechanism", "mine", "--folder", tmp_path)
    assert again.returncode == 2 and len(again.stderr.splitlines()) == 1 and "exists already" in again.stderr
    assert command("new", "mechanism", "mine", "--folder", tmp_path / "nowhere").returncode == 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("folder", ["plain", "two words", "it's", 'a "b" $HOME `c`'])
def test_the_printed_command_means_the_folder(folder, tmp_path):
    """A shell reads the line as the folder with its extra, whatever the folder is called; relative ones stay so."""
    (tmp_path / folder).mkdir()
    done = command("new", "learner", "mine", "--folder", folder, cwd=tmp_path)
    printed = done.stdout.splitlines()[1].replace("pip install -e", "printf '%s\n'").replace("dpgm check", "echo")
    said = subprocess.run(["sh", "-c", printed], capture_output=True, text=True).stdout
    assert said.splitlines() == [f"./{folder}/dpgm-mine[testing]", "dpgm-mine"]
