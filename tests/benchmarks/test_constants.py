"""The benchmark of the constants of `grow`: a small run, what it patches, and its ratios by hand."""

import math

import pytest

pytest.importorskip("joblib")

from dpgm_select import grow

from benchmarks import constants
from benchmarks.harness.main import main
from benchmarks.harness.runs import read

#: Of `grow`, as it is.
STOP, LOOKS = grow._STOP, grow._LOOKS


def test_a_small_run_varies_the_constants_and_puts_them_back(tmp_path, capsys):
    """A setting that forbids pairs changes the release where they were measured; another seed is another run."""
    store = tmp_path / "store.jsonl"
    given = [str(tmp_path), "--smoke", "--store", str(store), "--only-methods", "present,_HOPELESS=0.01 _DOUBTFUL=0.01"]
    main(constants.STUDY, given)
    lines = {(line["cell"], line["trial"], line["method"]): line for line in read(store)}
    assert len(lines) == 8
    present, alone = (lines["copies6 2", 0, method] for method in ("present", "_HOPELESS=0.01 _DOUBTFUL=0.01"))
    assert present["tables"] > alone["tables"] == 6
    assert present["release"] != alone["release"] and present["error2"] < alone["error2"]
    assert lines["small9 0.5", 0, "present"]["release"] != lines["small9 0.5", 1, "present"]["release"]
    assert (grow._HOPELESS, grow._DOUBTFUL) == (2.0, 0.35)
    assert "| _HOPELESS=0.01 _DOUBTFUL=0.01 | small |" in " ".join(capsys.readouterr().out.split())


def test_every_setting_names_constants_that_there_are():
    """In the type that they have; a value that is the present one would say nothing."""
    for setting in {one for some in constants.SETTINGS.values() for one in some} - {constants.SINGLES}:
        for name, value in constants.constants(setting).items():
            assert type(value) is type(getattr(grow, name)) and value != getattr(grow, name)
    with pytest.raises(AttributeError):
        constants.constants("_NO_SUCH=1")


def test_ratios_are_geometric_means_over_seeds_and_then_over_cells():
    """By hand; a seed that only one of both has does not count, report seeds are apart, and the worst cell is named."""
    lines = [
        *(run("adult 0.1", "present", seed, 0.1) for seed in range(3)),
        *(run("adult 0.1", "_STOP=0.3", seed, error) for seed, error in enumerate((0.1, 0.4))),
        run("health 0.1", "present", 0, 0.2),
        run("health 0.1", "_STOP=0.3", 0, 0.1),
        run("health 0.1 report", "present", 1000, 0.2),
        run("health 0.1 report", "_STOP=0.3", 1000, 0.3),
    ]
    text = constants.tables(lines)
    development, report = text.split("## Report seeds")
    spread = math.log(4) / math.sqrt(2)
    error = spread * math.sqrt(1 / 2 + 1) / 2
    ratios = f"| 1.000 ({error:.3f}) | 2.000 ({spread / math.sqrt(2):.3f}) adult 0.1 " * 3
    row = f"| _STOP=0.3 | picks | 2 | 3 {ratios}|"
    assert row in " ".join(development.split())
    assert f"| _STOP=0.3 | picks | 1 | 1 {'| 1.500 (-) | 1.500 (-) health 0.1 ' * 3}|" in " ".join(report.split())


def run(cell, method, seed, error):
    errors = {f"error{order}": error for order in (1, 2, 3)}
    return {"cell": cell, "trial": seed, "method": method, "by": "dpgm 1+abc numpy 2"} | errors
