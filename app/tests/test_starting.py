"""`dpgm.init`."""

from pathlib import Path

import pytest

import dpgm
from dpgm.cli.init import init as command
from dpgm_core.errors import DpgmError, OptionError


def test_init_from_python_writes_what_the_command_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,age,job\n1,30,cook\n")
    words = (
        "--person",
        "id",
        "--rows-per-person",
        "5",
        "--drop",
        "job",
        "--private",
        "--epsilon",
        "3",
        "--delta",
        "1e-6",
    )
    command.main(["a.csv", "-o", "one", *words], standalone_mode=False)
    options = {"person": "id", "rows_per_person": 5, "drop": ["job"], "private": True, "epsilon": 3, "delta": "1e-6"}
    spec = dpgm.init("a.csv", "two", **options, overwrite=False)
    assert spec == Path("two/spec.toml")
    for name in ("spec.toml", "domain.toml"):
        assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()
    for wrong in ({"persons": "id"}, {"ask": True}, {"output": "x"}):
        with pytest.raises(OptionError, match="init has no option"):
            dpgm.init("a.csv", "three", **wrong)
    with pytest.raises(OptionError):
        dpgm.init("a.csv", "three", rows_per_person="many")
    with pytest.raises(DpgmError, match="--help"):  # a source, and no option
        dpgm.init("--help", "three")
    with pytest.raises(OptionError, match="give --delta"):
        dpgm.init("a.csv", "three", private=True)
    assert not (tmp_path / "three").exists()
