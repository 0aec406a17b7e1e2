"""Does it work on every Python and with the oldest and the newest of what it requires?

    python3 .ci/versions.py                  the example on each other Python, some tests with oldest and newest
    python3 .ci/versions.py --wheels DIST    the same, what CI runs: the other Pythons have our wheels, not the checkout
    python3 .ci/versions.py --whole          the whole suite each time; half an hour and more

Looks for Python 3.11 to 3.13 on the path and among pyenv's; says which it has not found. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
# dp-accounting holds attrs back, and the tools are of no use to a user: only in the environment of the pins.
TOOLS = ("dp-accounting", "editables", "hatchling", "import-linter", "matplotlib", "pyyaml")
SOME = (
    "dpgm_core plugins/*/dpgm_* app/tests/cli tests/inference tests/sources "
    "plugins/dpgm-testing/tests/kit/test_kit_first_party.py"
)


def pythons() -> Iterator[tuple[str, str | None]]:
    """Each version with its program, or None: what is named so on the path and runs, else the newest of pyenv's."""
    roots = [Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"]
    for version in VERSIONS:
        found = [path for root in roots for path in root.glob(f"{version}.*/bin/python")]
        newest = sorted(found, key=lambda path: int(path.parts[-3].split(".")[2]), reverse=True)
        programs = [shutil.which(f"python{version}"), *map(str, newest)]
        yield version, next((program for program in programs if program and is_able(program, version)), None)


def is_able(program: str, version: str) -> bool:
    """Whether it starts, is of that version and makes environments."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def lower_bounds() -> list[str]:
    """Every requirement of core, its extras, the plugins and the tests, pinned to the oldest version it allows.

    Of the plugins those that the README's commands install; `engines.py` has the others.
    """
    texts = []
    for folder in (".", "app", "plugins/dpgm-testing", *plugins()):
        project = declared(folder)["project"]
        texts += [*project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())]
    texts += development()
    needed = [text for text in texts if not text.startswith(("dpgm-", *TOOLS))]
    # What builds is required apart: its floor holds where pip builds us, and the tests need none.
    return sorted({text.replace(">=", "==") for text in [*needed, *declared(".")["build-system"]["requires"]]})


def declared(folder: str) -> dict[str, Any]:
    """The pyproject.toml of a folder of the checkout."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


def plugins() -> list[str]:
    """The folders of the plugins in requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line.removeprefix("-e ") for line in lines if line.startswith("-e plugins/")]


def development() -> list[str]:
    """What the tests need beyond the packages, each with its lower bound."""
    lines = (line.split("#")[0].strip() for line in (ROOT / "requirements-test.txt").read_text().splitlines())
    return [line for line in lines if line and not line.startswith(("-", *TOOLS))]


def attempt(title: str, program: str, requirements: list[str], constraints: list[str] | None, commands: str) -> bool:
    """One fresh copy of the checkout and one environment: install, run, then show what was printed, in one piece.

    constraints: None for the newest of all.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy.mkdir()
        git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(git, cwd=ROOT, capture_output=True, check=True).stdout
        tar = ["tar", "--null", "--ignore-failed-read", "-T", "-", "-cf", "-"]
        packed = subprocess.run(tar, cwd=ROOT, input=names, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-xf", "-", "-C", str(copy)], input=packed, check=True)
        (copy / "wanted.txt").write_text("\n".join(requirements) + "\n")
        (copy / "limits.txt").write_text("\n".join(constraints or []) + "\n")
        script = f"{program} -m venv .venv && . .venv/bin/activate && pip install -q -r wanted.txt && {commands}"
        # So that they hold for hatchling too, in the environments in which pip builds; a newer pip asks the second.
        held = {name: str(copy / "limits.txt") for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=copy, env=os.environ | held,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
    verdict = "passed" if done.returncode == 0 else "FAILED"
    said = done.stdout if not done.stdout or done.stdout.endswith("\n") else f"{done.stdout}\n"
    # One write, line end included: two threads that print would mix theirs up.
    sys.stdout.write(f"{said}== {title}: {verdict} in {time.monotonic() - began:.0f} s\n")
    sys.stdout.flush()
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="the whole suite of tests in each environment")
    parser.add_argument("--wheels", metavar="DIST", type=Path, help="made by `python wheels/build.py DIST`")
    given = parser.parse_args()
    whole = given.whole
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    tests = "pytest -q -n auto" + (" -m ''" if whole else f" {SOME}")
    example = "dpgm fit docs/examples/health/health.toml"
    able = {}
    for version, program in pythons():
        print(f"== Python {version}: {program or 'none on this machine, skipped'}", flush=True)
        if program:
            able[version] = program
    if not able:
        return 1
    users = (
        [f"--find-links {given.wheels.resolve()}", "dpgm[fast]"]
        if given.wheels
        else ["-r requirements.txt", "-e .[fast]"]
    )
    # Without numba, as most users are: it is for extras only, and would keep the newest numpy back.
    developers = [
        "-r requirements.txt",
        "-e plugins/dpgm-testing",
        *(one for one in development() if one[:5] != "numba"),
    ]
    compiled = "pip install -q numba -c limits.txt && pytest -q -n auto tests/inference"
    # Each of our distributions was built with the oldest hatchling that it allows: a wheel says by which.
    (builder,) = [text.replace("==", " ") for text in lower_bounds() if text.startswith("hatchling")]
    built = f"test -z \"$(grep -L '{builder}' .venv/lib/python*/site-packages/dpgm*.dist-info/WHEEL)\""
    programs = list(able.values())
    attempts: list[tuple[str, str, list[str], list[str] | None, str]] = [
        (
            "oldest of everything",
            programs[0],
            developers,
            lower_bounds(),
            f"{built} && {example} && {tests} && {compiled}",
        ),
        ("newest of everything", programs[-1], developers, None, f"{example} && {tests}"),
    ]
    attempts += [
        (
            f"tested versions, Python {version}",
            program,
            ["-r requirements-dev.txt"] if whole else users,
            pins,
            f"{example} && {tests}" if whole else example,
        )
        for version, program in able.items()
        if whole or version != f"{sys.version_info.major}.{sys.version_info.minor}"  # whose commands have run
    ]
    # Two at a time: pip takes one core and waits much, so that tests run while another environment is made.
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(lambda one: attempt(*one), attempts))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
