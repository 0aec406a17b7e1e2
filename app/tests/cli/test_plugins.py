"""`dpgm plugins`, with names and without; `dpgm check` and `dpgm new`."""

import json
import subprocess
import sys
from importlib import metadata

import pytest


def test_plugins(dpgm_command):
    out = dpgm_command("plugins", "--json")[1]
    names = {(one["kind"], one["name"]) for one in json.loads(out)["components"]}
    assert {("mechanism", "laplace"), ("learner", "naive-mle"), ("inference", "junction-tree")} <= names
    out = dpgm_command("plugins", "learner", "--json")[1]
    learners = {(one["kind"], one["name"]) for one in json.loads(out)["components"]}
    assert learners == {one for one in names if one[0] == "learner"}


def test_plugins_by_name(dpgm_command, refused, facts):
    out = dpgm_command("plugins", "naive-mle", "--json")[1]
    assert {one["name"] for one in json.loads(out)["options"]} == {"project", "l2", "tolerance", "max_iterations"}
    out = dpgm_command("plugins", "naive-mle", "csv")[1]
    assert "strength of the L2 penalty" in out and "source csv, from dpgm-core" in out
    both = facts("plugins", "mrf-fw")
    assert len(both) == 2 and len({one["kind"] for one in both}) == 2
    assert facts("plugins", both[0]["kind"], "mrf-fw") == both[0]
    assert "did you mean 'naive-mle'" in refused("plugins", "naive-mel")
    assert "did you mean 'naive-mle'" in refused("plugins", "learner", "naive-mel")
    assert "did you mean 'learner'" in refused("plugins", "lerner", "naive-mle")


def installed(distribution):
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def test_dpgm_check_prints_a_table_and_fails_for_nothing(capsys):
    """`dpgm check` on a distribution that is not there is a wrong request; --json is one document."""
    from dpgm.cli import main

    with pytest.raises(SystemExit) as done:
        main(["check", "dpgm-nowhere"])
    assert done.value.code == 2 and "dpgm-nowhere" in capsys.readouterr().err


@pytest.mark.landing
def test_dpgm_check_json_and_table(capsys):
    from dpgm.cli import main

    if not installed("dpgm-laplace"):
        pytest.skip("dpgm-laplace is not installed")
    main(["check", "dpgm-laplace", "--json"])
    (report,) = json.loads(capsys.readouterr().out)
    assert report["ok"] and report["target"] == "mechanism 'laplace'"
    main(["check", "dpgm-laplace"])
    out = capsys.readouterr().out
    assert "samples-follow-logpdf" in out and "needs 'approx'" in out


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    code = "from dpgm.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)


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
    code = "from dpgm.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "new", "learner", "mine", "--folder", folder],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    printed = done.stdout.splitlines()[1].replace("pip install -e", "printf '%s\n'").replace("dpgm check", "echo")
    said = subprocess.run(["sh", "-c", printed], capture_output=True, text=True).stdout
    assert said.splitlines() == [f"./{folder}/dpgm-mine[testing]", "dpgm-mine"]
