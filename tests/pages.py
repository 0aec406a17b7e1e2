"""Pages of the documentation as tests read and run them: fenced blocks, commands, and what is said to be printed."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from dpgm.cli import main

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(language, title, content) of each fenced block."""
    return [match.groups(default="") for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands(line: str) -> list[list[str]]:
    """The `dpgm` commands of a line of shell, each without its first word.

    >>> commands("pip install x && dpgm fit a.toml  # the whole way")
    [['fit', 'a.toml']]
    """
    said = [shlex.split(one, comments=True) for one in line.split(" && ")]
    return [words[1:] for words in said if words[:1] == ["dpgm"]]


def unnumbered(line: str) -> str:
    """A line whose numbers are left out, as noise changes them."""
    return re.sub(r"[\d.,]*\d%?", "#", line)


def run_page(page: Path, folder: Path) -> None:
    """`run_here`, in a folder beside a copy of the examples without outputs of earlier runs."""
    for example in ("health", "clinic", "symptoms", "households"):
        place = folder / "docs/examples" / example
        shutil.copytree(DOCS / "examples" / example, place, ignore=shutil.ignore_patterns("out"))
    with contextlib.chdir(folder):
        run_here(page)


def run_here(page: Path) -> None:
    """Every `dpgm` command and every Python block of a page, in the order of the page, in this process and folder.

    One process for all: to start it once for each command takes longer than the commands; tests/e2e starts `dpgm` as a
    shell does. TOML blocks with a file's name are that file. A command ends with 0, with 2 if its line ends in
    `# refused`, or with 1 if it ends in `# exit code 1`. `pip` lines are the reader's machine, not ours.
    """
    names: dict[str, Any] = {"__name__": "docs.page"}  # a module whose warnings are errors: see pyproject.toml
    for language, title, content in blocks(page):
        if title.endswith(".toml"):
            Path(title).write_text(content, encoding="utf-8")
        elif language == "python":
            exec(compile(content, page.name, "exec"), names)
        elif language == "sh":
            for line in content.splitlines():
                for words in commands(line):
                    assert ended(words) == expected_code(line), words


def expected_code(line: str) -> int:
    """The exit code that the comment at the end of a command's line states."""
    return next((code for end, code in (("# refused", 2), ("# exit code 1", 1)) if line.endswith(end)), 0)


def ended(words: list[str]) -> int:
    """The exit code of a command."""
    try:
        main(words)
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def assert_prints(page: Path, output: str) -> None:
    """What a page says is printed was: the heads of its lines, blanks apart, and numbers apart where it says so."""
    exact, masked = ({" ".join(form(line).split()) for line in output.splitlines()} for form in (str, unnumbered))
    for _, title, content in blocks(page):
        for line in content.splitlines() if title.startswith("prints") else ():
            known, form = (exact, str) if title == "prints" else (masked, unnumbered)
            head = " ".join(form(line).removesuffix("...").split())
            assert any(one.startswith(head) for one in known), f"{page.name}: {line}"


def module_at(path: Path) -> ModuleType:
    """The module of a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
