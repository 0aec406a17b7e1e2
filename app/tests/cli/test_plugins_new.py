"""`dpgm new` says what to do next."""

import subprocess
import sys

import pytest


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`dpgm ...` in a process of its own."""
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
