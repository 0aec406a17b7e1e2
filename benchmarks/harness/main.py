"""The one `main` of all benchmarks: the command line, and for a study also what is resumed and what is reported.

    STUDY = Study(about=__doc__, name="adult", cells=cells, methods=METHODS, work=work, text=tables)

    if __name__ == "__main__":
        main(STUDY)

A *study* has cells x draws x methods, whose finished runs `dpgm.study.run_tasks` keeps in a store. A *measurement*
prints as it goes and keeps nothing. Whatever is asked for and not known by name is refused in one line, exit code 2.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import field, frozen

from benchmarks.harness.runs import Line, Task, Work, read, refuse, run, say
from dpgm_core import DpgmError

RESULTS = Path(__file__).parents[1] / "results"
PLOTS = Path(__file__).parents[2] / "docs" / "plots"


def _nothing(parser: ArgumentParser) -> None:
    """No arguments of its own."""


@frozen(kw_only=True)
class Command:
    """What studies and measurements share.

    about: help for the command line. data: what the folder of data holds, for benchmarks that take one. arguments: adds
    its own to the parser.
    """

    about: str | None
    data: str = ""
    arguments: Callable[[ArgumentParser], None] = _nothing

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the folder of data, by default $DPGM_SHARED/data or shared/data beside the checkout, and its own."""
        if self.data:
            shared = Path(os.environ.get("DPGM_SHARED") or Path(__file__).parents[3] / "shared")
            parser.add_argument("folder", type=_absolute, nargs="?", default=shared / "data", help=f"holds {self.data}")
        self.arguments(parser)


def _absolute(text: str) -> Path:
    return Path(text).absolute()


@frozen(kw_only=True)
class Study(Command):
    """Cells x draws x methods: what to run and how, and what to say of the finished runs.

    name: of its table and pictures. store: its file in `results`, by default named like itself. extents: grids of its
    own, name -> help. In the functions below `asked` is what was asked for, with `asked.extent` one of "smoke",
    "usual", "full" and the names of `extents`.

    cells: how many draws each cell has, in order. methods: all that there are. serves: whether a method runs on a draw
    (0, 1, ...) of a cell. trial: the name of that draw in the store, mostly its seed. missing: why a method cannot run
    here. check: reads what a cell needs, before anything is run; what it raises is one line. work: a picklable
    function, task and `asked` -> plain values. text: tables in markdown. pictures: written into the folder; their paths
    without suffix.
    """

    name: str
    cells: Callable[[Namespace], Mapping[str, int]]
    methods: Sequence[str]
    work: Work
    text: Callable[[Sequence[Line]], str]
    store: str = ""
    extents: Mapping[str, str] = field(factory=dict)
    check: Callable[[Namespace, str], object] = lambda asked, cell: None
    serves: Callable[[str, int, str], bool] = lambda cell, draw, method: True
    trial: Callable[[Namespace, str, int], int] = lambda asked, cell, draw: draw
    missing: Callable[[str], str | None] = lambda method: None
    pictures: Callable[[Sequence[Line], Path], Iterable[Path]] = lambda lines, folder: ()

    @property
    def committed(self) -> Path:
        """The store that is part of the project."""
        return RESULTS / (self.store or f"{self.name}.jsonl")

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What all studies share, then its own."""
        extent = parser.add_mutually_exclusive_group()
        extent.add_argument("--smoke", action="store_true", help="the smallest cells, in minutes, to see that it runs")
        extent.add_argument("--full", action="store_true", help="the whole grid, in hours")
        for name, what in self.extents.items():
            extent.add_argument(f"--{name}", action="store_true", help=what)
        extent.add_argument("--report", action="store_true", help="no runs: tables and plots from the store")
        parser.add_argument("--jobs", type=int, default=1, help="processes")
        parser.add_argument("--cells", default="*", help="names or patterns (*, ?), separated by commas")
        parser.add_argument("--only-methods", default="*", help="likewise")
        store = self.committed
        parser.add_argument("--store", type=Path, default=store, help=f"file of results (default {store.name})")
        super().add_arguments(parser)

    def run(self, asked: Namespace) -> None:
        """Do what is missing in the store, then report everything in it. Exit code 1 if a run failed."""
        asked.extent = next((name for name in ("smoke", "full", *self.extents) if vars(asked)[name]), "usual")
        if asked.smoke and asked.store == self.committed:  # which a smoke run never touches
            asked.store = RESULTS / "smoke" / asked.store.name
        failed = 0 if asked.report else run(self.tasks(asked), self.work, asked.store, asked, jobs=asked.jobs)
        lines = read(asked.store)
        if not lines:
            refuse(f"there are no finished runs in {asked.store}; run without --report first")
        self.report(lines, asked.store)
        if failed:
            raise SystemExit(1)

    def tasks(self, asked: Namespace) -> list[Task]:
        """Every cell's first draw before any cell's second, so that an early end leaves something everywhere."""
        known = self.cells(asked)
        cells = choose("cell", asked.cells, list(known))
        methods = choose("method", asked.only_methods, self.methods)
        for cell in cells:
            try:
                self.check(asked, cell)
            except (DpgmError, OSError, ValueError, KeyError) as error:
                hint = f"; name a folder that holds {self.data}" * bool(self.data)
                refuse(f"{self.name} cannot read what {cell!r} needs: {str(error).splitlines()[0]}{hint}")
        left_out = {method: why for method in methods if (why := self.missing(method))}
        for method, why in left_out.items():
            say(f"{method} is left out: {why}")
        return [
            Task(cell, self.trial(asked, cell, draw), method)
            for draw in range(max((known[cell] for cell in cells), default=0))
            for cell in cells
            for method in methods
            if draw < known[cell] and method not in left_out and self.serves(cell, draw, method)
        ]

    def report(self, lines: Sequence[Line], store: Path) -> None:
        """Tables on the screen and beside the store; pictures in the documentation, from another store beside it."""
        text, table = self.text(lines), store.with_name(f"{self.name}.md")
        print(text)
        table.write_text(text, encoding="utf-8")
        pictures = self.pictures(lines, PLOTS if store == self.committed else store.parent)
        say(", ".join([f"written: {table}", *(f"{stem}.png and .svg" for stem in pictures)]))


@frozen(kw_only=True)
class Measurement(Command):
    """Parts that print what they find, each told by its docstring; nothing is kept.

    parts: by name, in order; each gets what was asked for.
    """

    parts: Mapping[str, Callable[[Namespace], None]]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What all measurements share, then its own."""
        parser.add_argument("--smoke", action="store_true", help="the smallest sizes, to see that it runs")
        parser.add_argument("--only", default="*", help=f"of {', '.join(self.parts)}; separated by commas")
        super().add_arguments(parser)

    def run(self, asked: Namespace) -> None:
        """All parts, or those asked for."""
        for name in choose("part", asked.only, list(self.parts)):
            print(f"\n{name}: {self.parts[name].__doc__}\n", flush=True)
            self.parts[name](asked)


def main(command: Study | Measurement, given: Sequence[str] | None = None) -> None:
    """The command line. given: its arguments, by default the process's."""
    parser = ArgumentParser(description=command.about, formatter_class=RawDescriptionHelpFormatter)
    command.add_arguments(parser)
    command.run(parser.parse_args(given))


def choose(what: str, wanted: str, known: Sequence[str]) -> list[str]:
    """The known names that match a comma-separated list of names and patterns; a part without a match is refused."""
    parts = [part.strip() for part in wanted.split(",")]
    for part in parts:
        if not any(fnmatchcase(name, part) for name in known):
            refuse(f"no {what} is called {part!r}; there are: {', '.join(known[:40])}{' ...' * (len(known) > 40)}")
    return [name for name in known if any(fnmatchcase(name, part) for part in parts)]
