"""The truths that populations are drawn from: log-potentials over a structure that may differ from the measured one.

Those of the paper and of the first study have the measured structure. The families (protocol/families.py) also have
truths in which most of the measured tables are silent: main effects only, and a loud interaction on a few.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.protocol.references import non_private_mle
from dpgm.spec import load_spec
from dpgm.study import dirichlet_potentials, normal_potentials
from dpgm_core import FloatArray, Structure, Tables
from dpgm_core.counting.kernel import count
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.sources import as_source

__all__ = ["HEALTH", "TRUTHS", "draw_truth"]

HEALTH = Path(__file__).parents[2] / "docs" / "examples" / "health" / "health.toml"

#: Share of the measured tables that are loud; their interactions have this root mean square, nats.
_SHARES = {"half": 1 / 2, "sixth": 1 / 6, "fourteenth": 1 / 14}
_LOUD, _FAINT = 0.4, 0.05
_DIRICHLET = ("dirichlet", "sparse", "classes", "uneven", "drowned")
_WIDTHS = {"gaussian": 1.0, "weak": 0.3}

#: In the order of the seeds: add at the end.
TRUTHS = ("dirichlet", "gaussian", "weak", "sparse", "health")
TRUTHS += (
    "matched",
    *_SHARES,
    "one",
    "signs",
    "classes",
    "uneven",
    "faint",
    "independent",
    "flat",
    "drowned",
    "patients",
)


def draw_truth(name: str, measured: Structure, seed: int) -> Tables:
    """Log-potentials of a truth over a structure of its own.

    "dirichlet" (also called "classes", "uneven" and "drowned"): logarithms of Dirichlet(1) tables. "gaussian" and
    "weak": N(0, 1) and N(0, .3^2). "sparse": Dirichlet with half of the tables inactive. "health" and "patients": the
    maximum likelihood fit to the example's records.

    "matched": every second attribute with the next, nothing else. "half", "sixth", "fourteenth", "one": so many of the
    measured tables, at random, are loud, and attributes have main effects N(0, .5^2). "signs": all tables are loud.
    "faint": all are hardly there. "independent": main effects N(0, 1) alone. "flat": uniform. Loud is an interaction
    without main effects, of root mean square .4; for two labels each that is .4 with a random sign.
    """
    rng = np.random.default_rng(seed)
    if name in ("health", "patients"):
        return Tables(measured, _fitted(measured))
    if name in _WIDTHS:
        return normal_potentials(measured, rng, _WIDTHS[name])
    if name in _DIRICHLET:
        potentials = dirichlet_potentials(measured, rng)
        if name == "sparse":
            count = len(measured.sizes)
            silent = rng.permutation(count)[: count // 2]
            loud = np.repeat(~np.isin(np.arange(count), silent), measured.sizes)
            potentials = Tables(measured, np.where(loud, potentials.values, 0.0))
        return potentials
    pairs = [measured.cliques[number] for number in _loud(name, measured, rng)]
    structure = Structure(measured.domain, [*pairs, *((attribute,) for attribute in measured.domain.names)])
    effects = {"matched": 0.0, "flat": 0.0, "faint": 0.0, "independent": 1.0}.get(name, 0.5)
    strength = _FAINT if name == "faint" else _LOUD
    return Tables.from_arrays(
        structure,
        {
            clique: _interaction(measured.domain.shape(clique), strength, rng)
            if len(clique) > 1
            else rng.normal(scale=effects, size=measured.domain.shape(clique))
            for clique in structure.cliques
        },
    )


def _loud(name: str, measured: Structure, rng: np.random.Generator) -> list[int]:
    """The numbers of the measured cliques that interact."""
    everything = range(len(measured.cliques))
    if name == "matched":
        names = measured.domain.names
        return [measured.cliques.index(pair) for pair in zip(names[::2], names[1::2], strict=True)]
    if name in ("signs", "faint"):
        return list(everything)
    wanted = {"one": 1.0, "independent": 0.0, "flat": 0.0}.get(name)
    number = round(_SHARES[name] * len(everything)) if wanted is None else int(wanted)
    return sorted(int(one) for one in rng.permutation(len(everything))[:number])


def _interaction(shape: tuple[int, ...], strength: float, rng: np.random.Generator) -> FloatArray:
    """A random table of two attributes whose rows and columns sum to 0, with this root mean square."""
    table = rng.normal(size=shape)
    table -= table.mean(axis=0)
    table -= table.mean(axis=1, keepdims=True)
    scaled: FloatArray = table * (strength / np.sqrt(np.mean(table**2)))
    return scaled


@cache
def _fitted(structure: Structure) -> FloatArray:
    """The maximum-likelihood fit to the health example; the penalty keeps cells without records finite."""
    spec = load_spec(HEALTH)
    counts = count(as_source(spec.data), structure).tables
    return non_private_mle(JunctionTree().compile(structure), counts, l2=1e-6)
