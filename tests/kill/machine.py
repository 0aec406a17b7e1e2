"""Kills `dpgm fit` at random instants, several at a time on one ledger, and looks at what is left.

A run is the command's own `main` in a fork of a warm process, so that a thousand take minutes; the signal can land
anywhere in it. Some kills are aimed at the moments after a run begins to charge or to create the ledger, because these
are short. On some ledgers runs choose their structure in a session, whose file is written anew after each step; there
some kills are aimed at the writing. What is looked at, after each kill and at the end of each ledger:

* the main file alone, copied at that instant, holds every charge that was acknowledged before, or is refused;
* the ledger opens, holds every acknowledged charge and at most one more for each run that was killed while charging,
  and the sum never passes the budget;
* every file under its final name is whole, every release is paid for by an entry of its own with its cost, and every
  entry that is marked as released has its release; no run charges twice;
* the file of a session is whole and paid for at any moment, also while another run writes it, never loses a step, holds
  every step that a selector was shown, and can be learned from;
* a run that was not killed is done, or is refused because the ledger is spent;
* where a release is left without a model, and no run with --again has finished since, a run without it is refused,
  names one of them, and charges nothing.
"""

import contextlib
import io
import os
import random
import select
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from attrs import define, field

from dpgm.cli import main
from dpgm_core.curator.session import LiveSession
from dpgm_core.errors import BudgetError, DpgmError, ModelFileError
from dpgm_core.models.model_file import load_model
from dpgm_core.pipeline.run import learn
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.release_file import load_release
from tests.privacy.ledger.schema1 import write_old

SPEC = """
name = "visits"
data = "visits.csv"
domain = "domain.toml"
neighbours = "add-remove"
budget = {{ {each} }}
structure = {{ {structure} }}
learner = "naive-mle"
[ledger]
path = "visits.ledger"
budget = {{ {whole} }}
create = true
[output]
folder = "out"
"""
DOMAIN = """[attributes]
sex = { labels = ["F", "M"], unknown = "F" }
age = { bins = [0, 40, 99], unknown = "?" }
ward = { labels = ["a", "b", "c"], unknown = "a" }
"""
#: Of a life whose runs choose their structure; they cost rho, mu, or an (epsilon, delta) under an exact account.
SELECTORS = ("mst", "oneshot", "aim", "grow", "research")
COST = Fraction(1, 10)

# Seconds from the aim to the kill, at most: a charge and a creation take some milliseconds each. A whole run takes as
# long as those before it took.
AIMS = {"charge": 0.02, "create": 0.03, "write": 0.01}
REST = ("anywhere", "anywhere", "charge", "charge", "never")
IN_SESSIONS = ("anywhere", "charge", "write", "write", "write", "never")
TELLS = {"charge": "c", "create": "n", "write": "w"}


@define
class Run:
    """One `dpgm fit` under way. tells: the pipe on which it says that it begins to charge (c), to create the ledger (n)
    or to write a release (w). writes: after so many of them a kill may be aimed."""

    pid: int
    tells: int
    aim: str
    end: float | None
    writes: int
    began: float = field(factory=time.monotonic)
    told: str = ""


@define
class Life:
    """One ledger from its creation to its end. old: it began as one of schema 1, with charges in its log only.

    selector: of its runs, or none. steps: how many the file of each entry's session held when it was last looked at.
    """

    folder: Path
    slots: int
    old: bool
    selector: str | None
    steps: dict[int, int] = field(factory=dict)
    killed_charging: int = 0
    full: bool = False

    @property
    def ledger(self) -> Path:
        """Its main file."""
        return self.folder / "visits.ledger"

    @property
    def shown(self) -> dict[int, int]:
        """How many steps of each entry's session its selector has seen, as the runs wrote them down."""
        lines = (self.folder / "shown").read_text().splitlines()
        return {int(entry): int(steps) for entry, steps in map(str.split, lines)}

    @property
    def acknowledged(self) -> set[int]:
        """The entries that `charge` has returned, as the runs wrote them down."""
        return {int(line) for line in (self.folder / "acknowledged").read_text().split()}


@define(kw_only=True)
class Machine:
    """Lives of ledgers, one after another, until so many runs were killed.

    sessions: the share of ledgers whose runs choose their structure. spoil: makes the ledger, or how files are written,
    wrong for good; then the first fault is enough.
    """

    folder: Path
    kills: int
    processes: int
    seed: int
    sessions: float = 0.5
    spoil: Callable[[], None] | None = None
    span: float = 0.15  # seconds, of a whole run
    counts: Counter[str] = field(factory=Counter)
    faults: list[str] = field(factory=list)

    def work(self) -> None:
        """Kill, look and count; what is wrong is in `faults`."""
        chance = random.Random(self.seed)
        if self.spoil is not None:
            self.spoil()
        for selector in (None, SELECTORS[0]):
            warm = self._life(chance, slots=2, old=False, selector=selector)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                main(["fit", str(warm.folder / "visits.toml")])  # here, so that what it imports is there in every fork
            shutil.rmtree(warm.folder)
        while not self._enough:
            self._live(chance)

    @property
    def _enough(self) -> bool:
        return self.counts["kills"] >= self.kills or bool(self.spoil and self.faults)

    def _live(self, chance: random.Random) -> None:
        """One ledger, until it is spent."""
        selector = chance.choice(SELECTORS) if chance.random() < self.sessions else None
        old = not (self.spoil or selector) and chance.random() < 0.2
        life = self._life(chance, slots=chance.choice([2, 4, 8, 40]), old=old, selector=selector)
        running: list[Run] = []
        while running or not (life.full or self._enough):
            while len(running) < self.processes and not (life.full or self._enough):
                aim = (
                    "create"
                    if not life.ledger.exists() and chance.random() < 0.8
                    else chance.choice(IN_SESSIONS if life.selector else REST)
                )
                running.append(self._begin(life, aim, chance.uniform(0, self.span), chance.randrange(1, 5)))
            running = [run for run in running if not self._step(life, run, chance)]
        self._look(life, last=True)
        self.counts["ledgers"] += 1
        if not self.faults:
            shutil.rmtree(life.folder)

    def _life(self, chance: random.Random, *, slots: int, old: bool, selector: str | None) -> Life:
        folder = self.folder / f"{self.counts['ledgers']}-{chance.randrange(10**6)}"
        folder.mkdir(parents=True)
        budget, structure = 'epsilon = "{0}"', 'graph = "chain"'
        if selector:
            budget = chance.choice(('rho = "{0}"', 'epsilon = "{0}", delta = "{1}"', 'mu_squared = "{0}"'))
            options = ', tables = [["sex", "age"]], then = "mst"' if selector == "research" else ""
            structure = f'select = {{ name = "{selector}"{options} }}'
        each, whole = (budget.format(count * COST, count * COST / 10**8) for count in (1, slots))
        (folder / "visits.toml").write_text(SPEC.format(each=each, whole=whole, structure=structure))
        (folder / "domain.toml").write_text(DOMAIN)
        (folder / "visits.csv").write_text("sex,age,ward\n" + "F,30,a\nM,50,b\nM,60,c\n" * 20)
        (folder / "acknowledged").touch()
        (folder / "shown").touch()
        life = Life(folder, slots, old, selector)
        if old:
            write_old(life.ledger, 2, killed=True, budget=str(slots * COST), cost=str(COST))
            (folder / "acknowledged").write_text("1\n2\n")
        return life

    def _begin(self, life: Life, aim: str, delay: float, writes: int) -> Run:
        tells, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _fit(life, tell)
        os.close(tell)
        return Run(pid, tells, aim, time.monotonic() + delay if aim == "anywhere" else None, writes)

    def _step(self, life: Life, run: Run, chance: random.Random) -> bool:
        """Listen to a run for a moment, and kill it when its time has come; whether it is over."""
        wait = 0.001 if run.end is None else max(0.0, min(0.001, run.end - time.monotonic()))
        if select.select([run.tells], [], [], wait)[0]:
            said = os.read(run.tells, 100).decode()
            if not said:  # its end of the pipe is closed: it is over
                self._finish(life, run)
                return True
            run.told += said
            wanted = run.writes if run.aim == "write" else 1
            if run.end is None and run.told.count(TELLS.get(run.aim, "-")) >= wanted:
                run.end = time.monotonic() + chance.uniform(0, AIMS[run.aim])
        if run.end is None or time.monotonic() < run.end:
            return False
        os.kill(run.pid, signal.SIGKILL)
        self._finish(life, run)
        return True

    def _finish(self, life: Life, run: Run) -> None:
        """Take leave of a run, which is dead, dying or done."""
        code = os.waitstatus_to_exitcode(os.waitpid(run.pid, 0)[1])
        while said := os.read(run.tells, 100):
            run.told += said.decode()
        os.close(run.tells)
        if run.told.count("a") > 1:
            self._fault("a run charged twice")
        if code == -signal.SIGKILL:
            self.counts["kills"] += 1
            self.counts[f"aimed at {run.aim}"] += 1
            life.killed_charging += "c" in run.told and "a" not in run.told
            self._look(life)
            return
        self.counts["runs not killed"] += 1
        self.span = 0.9 * self.span + 0.1 * 1.2 * (time.monotonic() - run.began)
        errors = (life.folder / f"{run.pid}.err").read_text()
        if code == 2 and "nothing was charged" in errors:
            self.counts["refused, spent"] += 1
            life.full = True
        elif code:
            self._fault(f"a run that was not killed ended with {code}: {errors}")

    def _look(self, life: Life, *, last: bool = False) -> None:
        self._look_at_main_file(life)
        acknowledged, killed = life.acknowledged, life.killed_charging
        grown = self._look_at_sessions(life) if life.selector else {}  # before the ledger: files are paid for first
        if not life.ledger.exists():
            if acknowledged or grown:
                self._fault("the ledger is gone")
            return
        try:
            entries = Ledger.open(life.ledger).history()
        except (ModelFileError, BudgetError) as error:
            self._fault(f"the ledger cannot be opened after a kill: {error}")
            return
        found = {entry.id: entry for entry in entries}
        if not acknowledged <= set(found):
            self._fault(f"acknowledged charges are gone: {sorted(acknowledged - set(found))}")
        if not set(grown) <= set(found):
            self._fault(f"sessions are paid for by no entry: {sorted(set(grown) - set(found))}")
        if sum(entry.cost.epsilon + entry.cost.rho + entry.cost.mu_squared for entry in entries) > life.slots * COST:
            self._fault("the sum of the charges passes the budget")
        if last:
            if len(set(found) - acknowledged) > killed:
                self._fault(f"{len(found)} charges, {len(acknowledged)} acknowledged, {killed} killed while charging")
            self._look_at_files(life, found)
            self._look_at_again(life, len(found))
            self.counts["charges"] += len(found)
            self.counts["acknowledged"] += len(acknowledged)

    def _look_at_main_file(self, life: Life) -> None:
        """Copy only the main file, which other runs may be writing, and read the copy as a ledger."""
        acknowledged = life.acknowledged
        lone = self.folder / "lone" / "visits.ledger"
        lone.parent.mkdir(exist_ok=True)
        for leftover in lone.parent.iterdir():
            leftover.unlink()
        try:
            shutil.copyfile(life.ledger, lone)
        except FileNotFoundError:
            return
        if life.old and lone.read_bytes()[60:64] == b"\0\0\0\1":  # SQLite's user_version: not brought up to date yet
            return
        self.counts["main files alone"] += 1
        try:
            found = {entry.id for entry in Ledger.open(lone).history()}
        except (ModelFileError, BudgetError):
            self.counts["refused as damaged"] += 1
            return
        if not acknowledged <= found:
            self.counts["main files that lack charges"] += 1
            self._fault(f"the main file alone lacks {len(acknowledged - found)} of {len(acknowledged)} charges")

    def _look_at_sessions(self, life: Life) -> dict[int, int]:
        """Every session's file as it is now, which its run may be writing: how many steps it has, by entry."""
        shown = life.shown
        for path in sorted((life.folder / "out").glob("[!.]*.release.dpgm")):
            try:
                release = load_release(path)
            except ModelFileError as error:
                self._fault(f"half a file: {error}")
                continue
            entry, steps = release.provenance["entry"], len(release.steps)
            if steps < max(life.steps.get(entry, 1), shown.get(entry, 1)):
                self._fault(f"{path.name} has {steps} steps; it had {life.steps.get(entry)}, shown {shown.get(entry)}")
            life.steps[entry] = steps
        if not set(shown) <= set(life.steps):
            self._fault(f"sessions that went on are in no file: {sorted(set(shown) - set(life.steps))}")
        self.counts["looks at sessions"] += 1
        return life.steps

    def _look_at_files(self, life: Life, entries: dict[int, object]) -> None:
        """Every file under its final name."""
        paid: set[int] = set()
        for path in sorted((life.folder / "out").glob("[!.]*")):
            try:
                released = path.name.endswith(".release.dpgm")
                releases = [load_release(path)] if released else load_model(path).releases
            except ModelFileError as error:
                self._fault(f"half a file: {error}")
                continue
            for release in releases:
                entry = entries.get(release.provenance["entry"])
                if entry is None or entry.cost != release.cost:
                    self._fault(f"{path.name} is paid for by no entry")
                elif released and entry.id in paid:
                    self._fault(f"{path.name} is paid for by the entry of another release")
                elif released:
                    paid.add(entry.id)
                if life.selector and released:
                    self._learn_from(release)
            self.counts["releases" if released else "models"] += 1
        marked = {number for number, entry in entries.items() if entry.status == "released"}
        if not marked <= paid:
            self._fault(f"entries are marked as released without a release: {sorted(marked - paid)}")

    def _look_at_again(self, life: Life, charges: int) -> None:
        """One more run, which says nothing of --again."""
        out = life.folder / "out"
        stems = [path.name.removesuffix(".release.dpgm") for path in out.glob("[!.]*.release.dpgm")]
        stems = [stem for stem in stems if (out / f".{stem}.reserved").exists()]  # no run with --again has removed it
        left = [str(out / f"{stem}.release.dpgm") for stem in stems if not (out / f"{stem}.dpgm").exists()]
        if not left:
            return
        tells, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _fit(life, tell, again=False)
        os.close(tell)
        os.close(tells)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said = (life.folder / f"{pid}.err").read_text()
        if code != 2 or "--again" not in said or not any(path in said for path in left):
            self._fault(f"{len(left)} runs are unfinished, and one more ended with {code}: {said}")
        if len(Ledger.open(life.ledger).history()) != charges:
            self._fault("a run that was to ask first was charged")
        self.counts["asked for --again"] += 1

    def _learn_from(self, release: NoisyTables) -> None:
        try:
            learned = learn(release, "naive-mle").model
        except DpgmError as error:
            self._fault(f"a session of {len(release.steps)} steps cannot be learned from: {error}")
            return
        if learned.cost != release.cost:
            self._fault(f"a model of a session costs {learned.cost}, and the session {release.cost}")
        self.counts["sessions learned from"] += 1

    def _fault(self, what: str) -> None:
        self.faults.append(" ".join(what.split()))


def _fit(life: Life, tell: int, *, again: bool = True) -> None:
    """`dpgm fit` in this process, which tells what it is about to do, writes down what was charged, and ends."""
    code = 1
    try:
        _redirect(os.devnull, 1)
        _redirect(life.folder / f"{os.getpid()}.err", 2)
        notes = os.open(life.folder / "acknowledged", os.O_WRONLY | os.O_APPEND)
        charge, create = Ledger.charge, Ledger.create

        def noted(self: Ledger, *what: object, **how: object) -> int:
            os.write(tell, b"c")
            entry = charge(self, *what, **how)
            os.write(notes, f"{entry}\n".encode())  # one write: other processes append here too
            os.write(tell, b"a")
            return entry

        def told(*what: object, **how: object) -> Ledger:
            os.write(tell, b"n")
            return create(*what, **how)

        steps = os.open(life.folder / "shown", os.O_WRONLY | os.O_APPEND)
        write, keep = NoisyTables.write, LiveSession._keep

        def writing(self: NoisyTables, *what: object, **how: object) -> None:
            os.write(tell, b"w")
            write(self, *what, **how)

        def kept(self: LiveSession, step: object) -> None:
            keep(self, step)
            if self.has_tables:
                os.write(steps, f"{self.pooled().provenance['entry']} {len(self.steps)}\n".encode())

        Ledger.charge, Ledger.create = noted, told
        NoisyTables.write, LiveSession._keep = writing, kept
        main(["fit", str(life.folder / "visits.toml"), *(["--again"] if again else [])])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def _redirect(path: str | Path, descriptor: int) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(opened, descriptor)
    os.close(opened)
