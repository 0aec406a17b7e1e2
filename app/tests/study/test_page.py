"""docs/study.md: its commands and its Python work, and what it shows is what is printed, up to numbers."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from dpgm.cli import main
from dpgm.study import generated_truth
from dpgm_core import Domain

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/study.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def unnumbered(text: str) -> list[str]:
    """Lines without numbers and the widths that follow them."""
    return [" ".join(re.sub(r"-?[\d.,]*\d", "#", line).split()) for line in text.splitlines() if "---" not in line]


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(list(words))
        raise SystemExit(0)
    assert not left.value.code, words


@pytest.mark.landing
def test_the_page_runs(tmp_path, monkeypatch, capsys):
    """In its order, beside a copy of the example; the first line is the tutorial's, and made up here."""
    health = tmp_path / "docs/examples/health"
    shutil.copytree(ROOT / "docs/examples/health", health, ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(tmp_path)
    Path("learners.toml").write_text(blocks("toml")[0])
    fit, health_study, own = (shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines())
    assert fit == ["fit", "docs/examples/health/health.toml"]
    generated_truth(Domain.load(health / "domain.toml")).save(health / "out/health.dpgm")
    command(*health_study, "--records", "1000")
    assert (health / "out/health.study/study.svg").exists()
    capsys.readouterr()
    command(*own)
    assert unnumbered(capsys.readouterr().out) == unnumbered(blocks("text")[0])
    for code in blocks("python"):
        exec(compile(code, "study.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.count("±") == 4
