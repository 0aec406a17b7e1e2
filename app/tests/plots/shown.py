"""Models to look at: one from a seeded release with replicates, one whose names and labels are hostile, one written."""

import functools

import numpy as np

from app.tests.made import domain_of
from dpgm import plots
from dpgm.plots.picture import Picture
from dpgm_core import Attribute, Budget, Domain, SeededRandomness, Structure, Tables, release
from dpgm_core.models.model import Model

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</svg></title>&amp;<!--",
    "\u202eright to left\u202c\x1b[2J\n",
    "W" * 300,
    "😀👩🏽‍🚀" * 30,
    "$x^2$ 数据 שלום",
)


@functools.cache
def released(*, replicates: int = 6, seeded: bool = True) -> Model:
    """Age in bins, sex, ill, place and a column that nobody measured; age with sex, and ill with place."""
    age = Attribute.of_bins("age", [0, 18, 40, 65, 90], unknown="missing")
    sizes = (Attribute.of_size("place", 4), Attribute.of_size("unseen", 3))
    domain = Domain([age, *domain_of(sex="F M", ill="no yes"), *sizes])
    structure = Structure(domain, [("age", "sex"), ("sex", "ill"), ("place",)])
    rng = np.random.default_rng(3)
    records = np.stack([rng.integers(one.size, size=500) for one in domain], axis=1)
    noise = SeededRandomness(1) if seeded else None
    noisy = release(records, structure, Budget.pure(1), neighbours="add-remove", randomness=noise)
    values = rng.normal(size=structure.cells)
    model = Model(structure, Tables(structure, values), releases=[noisy])
    return model.with_replicates(values + 0.1 * rng.normal(size=(replicates, structure.cells))) if replicates else model


@functools.cache
def hostile() -> Model:
    """Every name and label could break a page."""
    domain = Domain([Attribute.of_labels(name, HOSTILE, unknown="?") for name in HOSTILE[:4]])
    structure = Structure.chain(domain)
    values = np.random.default_rng(0).normal(size=structure.cells)
    model = Model(structure, Tables(structure, values))
    return model.with_replicates(values + np.linspace(-0.1, 0.1, 3 * structure.cells).reshape(3, -1))


def written(structure: Structure, seed: int = 0) -> Model:
    return Model(structure, Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)))


DRAWN = {
    "marginal": lambda m: plots.marginal(m, m.domain.names[0]),
    "given": lambda m: plots.marginal(m, m.domain.names[0], {m.domain.names[1]: m.domain[m.domain.names[1]].labels[0]}),
    "pair": lambda m: plots.pair(m, *m.domain.names[:2]),
    "dependence": plots.dependence,
    "graph": plots.graph,
    "junction tree": lambda m: plots.graph(m, junction_tree=True),
}
MODELS = {"released": released, "hostile": hostile}
CASES = [(kind, model) for kind in DRAWN for model in MODELS]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(kind: str, model: str) -> Picture:
    return DRAWN[kind](MODELS[model]())
