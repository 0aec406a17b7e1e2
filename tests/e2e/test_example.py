"""The shipped example, as a user runs it: in a process of its own, on a copy of its folder."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpgm_core
from dpgm.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "health"


def files(folder: Path) -> set[str]:
    """Everything under a folder that is not SQLite's own."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture
def health(tmp_path):
    """A copy of the example without the outputs of earlier runs."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "health", ignore=shutil.ignore_patterns("out")))


def dpgm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line in a new process, where a warning of our own modules is an error."""
    ours = "import warnings; warnings.filterwarnings('error', module='dpgm_')"
    others = "warnings.filterwarnings('ignore', category=DeprecationWarning)"
    code = f"{ours}; {others}; from dpgm.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A copy of the example in which the README's command ran, and that run."""
    folder = tmp_path_factory.mktemp("ran") / "health"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("out"))
    return folder, dpgm("fit", folder / "health.toml")


@pytest.mark.landing
def test_it_runs_twice_and_says_what_was_spent_and_what_is_left(ran):
    """The README's command works again and again; each run is charged, and ends with model, spent and left."""
    health, first = ran
    runs = first, dpgm("fit", health / "health.toml")
    for done, left, model in zip(runs, "98", ("health.dpgm", "health-2.dpgm"), strict=True):
        assert done.returncode == 0, done.stderr
        for words in (f"out/{model}", "epsilon = 1", f"epsilon = {left}", "one person-year"):
            assert words in done.stdout
    made = {"health.dpgm", "health.release.dpgm", "health-2.dpgm", "health-2.release.dpgm", "health.ledger"}
    assert {name for name in files(health) if name.startswith("out/")} == {f"out/{name}" for name in made}
    there, shipped = ({name for name in files(one) if not name.startswith("out/")} for one in (health, EXAMPLE))
    assert there == shipped


@pytest.mark.landing
def test_a_nearly_empty_ledger_refuses_with_nothing_released(health):
    """With too little left the second run is refused, exit code 2, one line; no file appears or changes."""
    assert dpgm("fit", health / "health.toml", "--set", "ledger.budget.epsilon=1.5").returncode == 0
    out = health / "out"
    before = {name: (out / name).read_bytes() for name in files(out) if not name.endswith(".ledger")}
    history = dpgm("ledger", "show", out / "health.ledger").stdout
    done = dpgm("fit", health / "health.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1 and "epsilon = 0.5" in done.stderr
    assert before == {name: (out / name).read_bytes() for name in files(out) if not name.endswith(".ledger")}
    assert dpgm("ledger", "show", out / "health.ledger").stdout == history


@pytest.mark.landing
def test_the_spent_ledger_says_what_to_do_and_it_works(health):
    """The eleventh run's line names the ledger's file and says that this one may go; without it the twelfth runs."""
    spend_all = ("--set", "ledger.budget.epsilon=1")  # the first run stands for ten
    assert dpgm("fit", health / "health.toml", *spend_all).returncode == 0
    done = dpgm("fit", health / "health.toml", *spend_all)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    ledger = health / "out" / "health.ledger"
    assert "only epsilon = 0 is left" in done.stderr
    assert f"the spec says of {ledger}: these rows are public, so delete it and run again" in done.stderr
    assert "of real people is never deleted" in done.stderr
    ledger.unlink()
    assert dpgm("fit", health / "health.toml", *spend_all).returncode == 0


def test_free_care_means_more_visits(ran):
    """The experiment's own finding survives the noise at epsilon = 1.

    The noise on a cell of the 60-cell table has scale 5 among 20,190 rows, the gap in P(no visit) is 0.17:
    the false alarm probability is below 1e-9.
    """
    model = dpgm_core.load_model(ran[0] / "out" / "health.dpgm")
    free, dear = (model.marginal(["visits"], given={"coinsurance": share}) for share in ("0%", "95%"))
    assert free[0] < dear[0]


def test_it_prints_shares_with_intervals(ran):
    """Each share stands inside its interval, and the file keeps the 40 replicates behind them."""
    health, done = ran
    assert "(90% interval)" in done.stdout
    found = [tuple(map(float, part)) for part in re.findall(r"([\d.]+)% \(([\d.]+)-([\d.]+)\)", done.stdout)]
    assert len(found) == 29
    assert all(low <= share <= high and high - low < 5 for share, low, high in found)
    assert len(dpgm_core.load_model(health / "out" / "health.dpgm").replicates) == 40


def test_planning_reads_no_records(health):
    """`dpgm plan` works without the data file, and writes nothing."""
    (health / "health.csv").unlink()
    before = files(health)
    main(["plan", str(health / "health.toml")])
    assert files(health) == before


@pytest.mark.landing
def test_no_record_is_ever_quoted(health):
    """A planted value in a damaged file reaches neither output nor any file; the run goes on."""
    secret = "PLANTED-c7d1"
    with (health / "health.csv").open("a") as file:
        file.write(f'{secret},{secret}\n3,{secret},none,12,0,4.5,{secret}\n"{secret}\n')
    done = dpgm("-v", "--debug", "fit", health / "health.toml")
    assert done.returncode == 0, done.stderr
    assert secret not in done.stdout + done.stderr
    for name in files(health / "out"):
        assert secret.encode() not in (health / "out" / name).read_bytes()
