"""Cells x draws x methods on the protocol of Bernstein et al. (2017), in one store that several reports read.

A cell names a truth, a graph, the number of labels k, the number of records N, epsilon and the noise:
`dirichlet/chain3/k5/N1e4/eps0.1/laplace`. Gaussian noise has the same epsilon and delta = 1/N, or, where the name says
rho, `matched/pairs8/k2/N5e3/rho0.01/zcdp`, that rho. Noise called "-split" is unequal, by a public split of the budget
(`UNEQUAL`). Attributes are 10 unless the graph has its own; k0 says that they have labels of their own. A trial is a
seed, base + draw: draws 0 to 4 are five populations, draws 5 to 9 the same five again with other records and other
noise, and so on. N is public, neighbours are add-remove.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from benchmarks.harness.main import Study
from benchmarks.harness.runs import Line, Task
from benchmarks.protocol.contenders import METHODS, DataSet
from benchmarks.protocol.populations import GRAPHS, Population, structure_of
from benchmarks.protocol.truths import TRUTHS
from dpgm_core import Budget, LiveCurator, NoisyTables, SeededRandomness, Structure, Terms, make, optimal_split
from dpgm_core.counting.kernel import count
from dpgm_core.sources import as_source

__all__ = ["BASE", "FAMILY_BASE", "ROOM", "Cell", "Grid", "cells", "data_set", "serves", "study", "work"]

STORE = "trials.jsonl"
BASE, POPULATIONS, ROOM = 70_000, 5, 1000  # seeds: base + draw, draw < ROOM
FAMILY_BASE = 110_000
NOISES = ("laplace", "gaussian", "zcdp", "laplace-split", "zcdp-split")  # in the order of the seeds: add at the end
# Of the first table, the second, the third, the fourth, ... in `optimal_split`: at equal sizes Laplace noise has
# standard deviations in the ratios 16 : 4 : 1, Gaussian noise 8 : 2.8 : 1.
UNEQUAL = (1, 64, 64**2)
# Truths of the families, which have a grid, a base of seeds and a report of their own (families.py).
FAMILY_TRUTHS = TRUTHS[TRUTHS.index("matched") :]
# Cells with the number of draws wanted from each.
Grid = dict["Cell", int]


@frozen(kw_only=True, order=True)
class Cell:
    """One point of the grid.

    >>> Cell.parse("dirichlet/er/k5/N1e5/eps0.5/laplace").records
    100000
    """

    truth: str
    graph: str
    size: int
    records: int
    epsilon: float  # rho where the noise is of zCDP
    noise: str

    @property
    def family(self) -> bool:
        """Whether it belongs to the families and not to the first study."""
        return self.truth in FAMILY_TRUTHS

    @property
    def budget(self) -> Budget:
        """For all tables together."""
        if self.noise.startswith("zcdp"):
            return Budget.zcdp(self.epsilon)
        return Budget.approx(self.epsilon, 1 / self.records) if self.noise == "gaussian" else Budget.pure(self.epsilon)

    @property
    def name(self) -> str:
        """As in the store and on the command line."""
        short = f"{self.records:.0e}".replace("e+0", "e")
        records = short if float(short) == self.records else self.records
        budget = f"{'rho' if self.noise.startswith('zcdp') else 'eps'}{self.epsilon:g}"
        return f"{self.truth}/{self.graph}/k{self.size}/N{records}/{budget}/{self.noise}"

    @classmethod
    def parse(cls, name: str) -> Cell:
        """The cell of a name. Raises ValueError."""
        try:
            truth, graph, size, records, epsilon, noise = name.split("/")
            cell = cls(
                truth=truth,
                graph=graph,
                size=int(size.removeprefix("k")),
                records=int(float(records.removeprefix("N"))),
                epsilon=float(epsilon.removeprefix("rho" if noise.startswith("zcdp") else "eps")),
                noise=noise,
            )
        except ValueError:
            raise ValueError(
                f"{name!r} is not a cell: truth/graph/kSIZE/NRECORDS/epsEPSILON/noise (zcdp: rhoRHO)"
            ) from None
        least, most = GRAPHS.get(graph, (1, 0))
        if truth not in TRUTHS or noise not in NOISES or not least <= cell.size <= most or cell.name != name:
            raise ValueError(f"{name!r} is not a cell: truths are {TRUTHS}, graphs {tuple(GRAPHS)}, noises {NOISES}")
        return cell


def cells(
    graphs: Sequence[str],
    size: int,
    points: Iterable[tuple[int, float]],
    *,
    truth: str = "dirichlet",
    noise: str = "laplace",
) -> list[Cell]:
    """Each graph at each (N, epsilon)."""
    return [
        Cell(truth=truth, graph=graph, size=size, records=records, epsilon=epsilon, noise=noise)
        for graph in graphs
        for records, epsilon in points
    ]


def work(task: Task) -> Mapping[str, Any]:
    """One method on one data set, numbers with no more digits than mean something."""
    data = data_set(task.cell, task.trial)
    results = {
        label: {key: float(f"{value:.{6 if key == 'kl' else 3}g}") for key, value in numbers.items()}
        for label, numbers in METHODS[task.method].function(data).items()
    }
    for label, numbers in results.items():
        if not all(map(math.isfinite, numbers.values())):
            raise ArithmeticError(f"{label} gave {numbers}")
    return {"seeds": _seeds(Cell.parse(task.cell), task.trial), "results": results}


def _seeds(cell: Cell, trial: int) -> list[int]:
    """Of the population, shared by all cells; and of records and of noise, of this cell and trial alone."""
    base, draw = trial - trial % ROOM, trial % ROOM
    point = [trial, cell.records, round(1e6 * cell.epsilon), cell.size, TRUTHS.index(cell.truth)]
    point += [list(GRAPHS).index(cell.graph), NOISES.index(cell.noise)]
    return [base + draw % POPULATIONS, *map(int, np.random.SeedSequence(point).generate_state(2))]


@lru_cache(maxsize=2)
def _population(truth: str, graph: str, size: int, seed: int) -> Population:
    return Population.draw(structure_of(graph, size), seed, truth)


@lru_cache(maxsize=1)  # the methods of one data set come one after another
def data_set(cell_name: str, trial: int) -> DataSet:
    """The data set of a cell and a trial."""
    cell = Cell.parse(cell_name)
    of_population, of_records, of_noise = _seeds(cell, trial)
    population = _population(cell.truth, cell.graph, cell.size, of_population)
    codes = population.records(cell.records, of_records)
    return DataSet(
        population=population,
        codes=codes,
        counts=count(as_source(codes), population.structure).tables,
        release=_released(cell, codes, population.structure, of_noise),
        epsilon=cell.epsilon,
        seed=of_noise,
    )


def _released(cell: Cell, codes: np.ndarray, structure: Structure, seed: int) -> NoisyTables:
    """N is public, neighbours are add-remove."""
    curator = LiveCurator(
        as_source(codes),
        structure,
        make("mechanism", "laplace" if cell.noise.startswith("laplace") else "gaussian"),
        terms=Terms(neighbours="add-remove", total="public"),
        budget=cell.budget,
        randomness=SeededRandomness(seed),
    )
    if not cell.noise.endswith("-split"):
        return curator.release()
    weights = {clique: UNEQUAL[number % 3] for number, clique in enumerate(structure.cliques)}
    return curator.release(budget=optimal_split(structure, cell.budget, weights))


def study(
    about: str | None,
    name: str,
    grids: Mapping[str, Grid],
    text: Callable[[Sequence[Line]], str],
    pictures: Callable[[Sequence[Line], Path], Iterable[Path]],
) -> Study:
    """A report over trials. grids: of "smoke", "usual", "full" and perhaps "families"; for the others see `Study`."""

    def drawn(asked: Namespace) -> dict[str, int]:
        return {cell.name: min(draws, asked.draws) for cell, draws in grids[asked.extent].items()}

    def trial(asked: Namespace, cell: str, draw: int) -> int:
        usual = FAMILY_BASE if asked.extent == "families" else BASE
        return draw + (usual if asked.base is None else int(asked.base))

    return Study(
        about=about,
        name=name,
        store=STORE,
        arguments=_arguments,
        cells=drawn,
        methods=list(METHODS),
        serves=serves,
        trial=trial,
        extents={"families": f"the families of truths; base {FAMILY_BASE}"} if "families" in grids else {},
        missing=lambda method: METHODS[method].missing(),
        work=lambda asked: work,
        text=text,
        pictures=pictures,
    )


def serves(cell_name: str, draw: int, method: str) -> bool:
    """Whether the method is meant for the cell, and for so many draws of it."""
    cell = Cell.parse(cell_name)
    if cell.family:
        return draw < METHODS[method].family_draws
    if draw >= METHODS[method].draws.get(cell.size, ROOM):
        return False
    return METHODS[method].serves(cell.size, cell.records, cell.epsilon, cell.noise)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--base", type=int, help=f"of the seeds, by default {BASE}; a fresh base is a fresh study")
    parser.add_argument("--draws", type=int, default=ROOM, help="at most so many from each cell")
