"""Fixtures that tests share: wheels, environments without the checkout, a learner, hostile files, rounds of noise."""

import contextlib
import io
import json
import math
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import attrs
import numpy as np
import pytest
from attrs import frozen

import dpgm_core as dpgm
from dpgm_core.components.registry import default_registry
from dpgm_core.pipeline.run import Run
from dpgm_core.privacy.accounting import Accountant, compose
from dpgm_core.sources import as_source


def outside(*command: str | Path, cwd: Path, scripts: Path | None = None, **more: str) -> str:
    """Run a command far from the checkout; returns what it printed, which is the reason if it fails.

    scripts: the folder of an environment's programs, put first on the path. more: environment variables.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DPGM", "PYTEST"))}
    if scripts is not None:
        inherited["PATH"] = f"{scripts}{os.pathsep}{inherited['PATH']}"
        inherited["VIRTUAL_ENV"] = str(scripts.parent)
    done = subprocess.run(
        command, cwd=cwd, env=inherited | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Builds the wheel of a source folder, once per session and without network, as pip calls hatchling."""
    backend = pytest.importorskip("hatchling.build")
    built: dict[Path, Path] = {}

    def build(source: Path) -> Path:
        if source not in built:
            folder = tmp_path_factory.mktemp("wheel")
            with contextlib.chdir(source):
                built[source] = folder / backend.build_wheel(str(folder))
        return built[source]

    return build


@pytest.fixture(scope="session")
def environment_with() -> Callable[..., Path]:
    """Makes a virtual environment in a folder, installs wheels into it, and returns the folder of its programs.

    It sees the third parties' libraries of the interpreter that runs the tests, so nothing is downloaded, but no dpgm
    distribution: neither their code nor their metadata.
    """

    def make(folder: Path, wheels: list[Path]) -> Path:
        # Hypothesis takes constants out of whatever source is not called like this: seconds for numpy and scipy.
        libraries = folder / "libraries" / "site-packages"
        libraries.mkdir(parents=True)
        for site in (Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))):
            for entry in site.iterdir():
                ours = entry.name.lower().startswith(("dpgm", "_dpgm", "__editable__"))
                if not ours and entry.suffix != ".pth" and not (libraries / entry.name).exists():
                    (libraries / entry.name).symlink_to(entry)
        venv = folder / "venv"
        outside(sys.executable, "-m", "venv", venv, cwd=folder)
        scripts = venv / "bin"
        pip = ("pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
        outside(*pip, *wheels, cwd=folder, scripts=scripts)
        site = outside(
            "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder, scripts=scripts
        )
        (Path(site.strip()) / "libraries.pth").write_text(f"{libraries}\n")
        program = scripts / "pytest"  # the libraries' own one would start the interpreter that they belong to
        program.write_text(f"#!{scripts / 'python'}\nimport sys\nimport pytest\nsys.exit(pytest.main())\n")
        program.chmod(0o755)
        return scripts

    return make


# --- a learner of several releases --------------------------------------------------------------------------------


@frozen(kw_only=True)
class Adaptive:
    """Takes shares of its budget one after another, and shows what it likes of them.

    shares: of the budget, as texts; "rest" asks for all that remains. cliques: of each release, None for the
    structure's. shows: "none", or the numbers of the releases that it says it learned from.
    """

    handed: ClassVar[list[dpgm.NoisyTables]] = []  # to the last one that learned

    shares: tuple[str, ...] = ("9/10", "1/10")
    cliques: tuple[object, ...] = ()
    shows: tuple[int, ...] | str = "none"

    def check(self, structure: object, inference: object) -> None:
        """Anything will do."""

    def learn(self, curator: object, inference: object, *, randomness: object, progress: object) -> dpgm.Fit:
        """The uniform model: what it learns is beside the point."""
        whole, taken = curator.budget, []
        for number, share in enumerate(self.shares):
            budget = None if share == "rest" else whole * Fraction(share)
            cliques = self.cliques[number] if self.cliques else None
            taken.append(curator.release(budget=budget, cliques=cliques))
        self.handed[:] = taken
        shown = [] if self.shows == "none" else [taken[number] for number in self.shows]
        potentials = dpgm.Tables.zeros(curator.structure)
        return dpgm.Fit(model=dpgm.Model(curator.structure, potentials, releases=shown), releases=tuple(shown))


@pytest.fixture(scope="session")
def adaptive() -> type[Adaptive]:
    """The class `Adaptive`."""
    return Adaptive


# --- files, sound and hostile -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def members_of() -> Callable[[Path], dict[str, bytes]]:
    """Reads the members of an archive."""

    def read(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    return read


@pytest.fixture(scope="session")
def written() -> Callable[..., Path]:
    """Writes members to an archive, and returns its path."""

    def write(path: Path, members: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
        with zipfile.ZipFile(path, "w", how) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return path

    return write


@pytest.fixture(scope="session")
def changed() -> Callable[..., bytes]:
    """A JSON document with values replaced, {keys that lead there: value}."""

    def change(content: bytes, changes: Mapping[tuple[object, ...], object]) -> bytes:
        document = json.loads(content)
        for (*way, last), value in changes.items():
            table = document
            for key in way:
                table = table[key]
            table[last] = value
        return json.dumps(document).encode()

    return change


@pytest.fixture(scope="session")
def npz() -> Callable[..., bytes]:
    """The content of an .npz file."""

    def pack(**arrays: object) -> bytes:
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    return pack


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory, members_of: Callable[..., dict[str, bytes]]) -> dict[str, bytes]:
    """The members of a sound model file with its release, of epsilon = 1."""
    path = tmp_path_factory.mktemp("sound") / "m.dpgm"
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    codes = np.array([[0, 1], [1, 2]] * 20)
    dpgm.fit(codes, structure, dpgm.Budget.pure(1), neighbours="add-remove").model.save(path)
    members = members_of(path)
    assert sorted(members) == ["model.json", "potentials.npz", "release.json", "tables.npz"]
    return members


@pytest.fixture(scope="session")
def refused_file() -> Callable[[Path], None]:
    """Asserts that both readers say one line that names the file, or what its release needs."""

    def check(path: Path) -> None:
        for read in (dpgm.load_model, dpgm.load_release):
            with pytest.raises(dpgm.ModelFileError) as caught:
                read(path)
            assert path.name in str(caught.value)
            assert "\n" not in str(caught.value)
            assert caught.value.__cause__ is None

    return check


# --- processes, threads, curators ---------------------------------------------------------------------------------


def in_a_fork(work: Callable[[], object]) -> str:
    """What `work` says in a forked process: its result as a text, or its error's name and words."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def in_threads(work: Callable[[], object], count: int) -> None:
    """Run `work` in so many threads at once, and wait for all of them."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Unread:
    """A source that must never be read."""

    def batches(self, domain: object, columns: object) -> Iterator[object]:
        raise AssertionError("the records were touched")

    def keyed_batches(self, domain: object, columns: object, key: object) -> Iterator[object]:
        raise AssertionError("the records were touched")


def live_curator(
    data: object, structure: dpgm.Structure, mechanism: object = None, **settings: object
) -> dpgm.LiveCurator:
    """A curator over some records: Laplace noise of epsilon = 1 under add-remove, unless the settings say otherwise.

    settings: those of the curator, and of its terms.
    """
    stated = {name: settings.pop(name) for name in attrs.fields_dict(dpgm.Terms) if name in settings}
    terms = dpgm.Terms(**{"neighbours": "add-remove"} | stated)
    mechanism = dpgm.make("mechanism", "laplace") if mechanism is None else mechanism
    given = {"terms": terms, "budget": dpgm.Budget.pure(1)} | settings
    return dpgm.LiveCurator(as_source(data), structure, mechanism, **given)


# --- rounds of noise ----------------------------------------------------------------------------------------------


def unit(cells: int) -> dpgm.Sensitivity:
    """The sensitivity of a number of cells moved by 1."""
    return dpgm.Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)


def accountant(kind: str, scale: float, cells: int = 1, *, rounds: int = 1, rate: float | Fraction = 1.0) -> Accountant:
    """The accountant of unit shifts, under add-remove."""
    norm_of = float(cells) if "laplace" in kind else math.sqrt(cells)
    event = dpgm.PrivacyEvent(kind=kind, scale=scale, sensitivity=norm_of)
    return compose(event, unit(cells), rounds=rounds, sampling_rate=rate, neighbours="add-remove")


@frozen(kw_only=True)
class Drawn:
    """A noise as far as calibration needs it."""

    cost: dpgm.Budget
    event: dpgm.PrivacyEvent


class Gauss:
    """A Gaussian mechanism for zCDP budgets only."""

    def noise(self, sensitivity: dpgm.Sensitivity, budget: dpgm.Budget) -> Drawn:
        if budget.kind != "zcdp":
            raise dpgm.BudgetError("zCDP only")
        sigma = math.sqrt(sensitivity.l2_squared / (2 * float(budget.rho)))
        event = dpgm.PrivacyEvent(kind="discrete-gaussian", scale=sigma, sensitivity=sensitivity.l2)
        return Drawn(cost=budget, event=event)


class Lap:
    """A Laplace mechanism for pure budgets only."""

    def noise(self, sensitivity: dpgm.Sensitivity, budget: dpgm.Budget) -> Drawn:
        if budget.kind != "pure":
            raise dpgm.BudgetError("pure only")
        scale = float(sensitivity.l1 / budget.epsilon)
        event = dpgm.PrivacyEvent(kind="discrete-laplace", scale=scale, sensitivity=float(sensitivity.l1))
        return Drawn(cost=budget, event=event)


# --- random words -------------------------------------------------------------------------------------------------


class Words:
    """Random words that are given, and `rest` ever after, if there is one; `asked`: how many, each time."""

    private = False

    def __init__(self, *words: int, rest: int | None = None) -> None:
        self.left, self.rest, self.asked = list(words), rest, []

    def words(self, count: int) -> np.ndarray:
        self.asked.append(count)
        found, self.left = self.left[:count], self.left[count:]
        assert self.rest is not None or len(found) == count
        return np.array([*found, *[self.rest] * (count - len(found))], np.uint64)


# --- records ------------------------------------------------------------------------------------------------------


class Batches:
    """Codes in batches of `rows`; a log notes when they are read, and `error` is raised behind the first batch."""

    def __init__(
        self, codes: np.ndarray, rows: int = 10**9, log: list[str] | None = None, error: Exception | None = None
    ) -> None:
        self.codes, self.rows, self.log, self.error = codes, rows, [] if log is None else log, error

    def batches(self, domain: dpgm.Domain, columns: list[str]) -> Iterator[list[np.ndarray]]:
        self.log.append("read")
        for start in range(0, len(self.codes), self.rows):
            yield [self.codes[start : start + self.rows, domain.names.index(name)] for name in columns]
            if self.error is not None:
                raise self.error


def seeded(seed: int = 0) -> dict[str, object]:
    """The settings of a simulated release or fit under add-remove."""
    return {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(seed)}


def dry_run(*settings: object, **named: object) -> None:
    """The run's own check, with the arguments of `fit`."""
    Run(*settings, **named).check()


@contextlib.contextmanager
def offered(mechanisms: Mapping[str, type]) -> Iterator[None]:
    """Mechanisms of third parties under names, as plugins would offer them."""
    default_registry.cache_clear()
    for name, cls in mechanisms.items():
        component = dpgm.Component(kind="mechanism", name=name, target="here:Mechanism", summary="unusual noise")
        default_registry().add(component, cls, distribution="here")
    yield
    default_registry.cache_clear()


class Unchecked:
    """A learner that refuses no structure and no engine."""

    def check(self, structure: object, inference: object) -> None:
        """Anything will do."""
