"""The Adult census table, the trees measured on it, and exact low-way margins of models and records."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from attrs import frozen

from benchmarks.cases.coded import Coded, shares
from dpgm_core import Domain, FloatArray, IntArray, Model, Structure

# One margin: the attributes, and a probability for each of their values.
Margin = tuple[tuple[str, ...], FloatArray]

# Chosen from what the attributes mean, before any score or joint table was seen: a household (marital status,
# relationship, sex, age), a job (education, occupation, class of worker), income as the link between them and with
# capital, origin (race, country). The survey's weights (fnlwgt) are made from population figures by origin, hence
# their edge; hours go with sex.
TREES = {
    "adult": [
        ("age", "marital-status"),
        ("marital-status", "relationship"),
        ("relationship", "sex"),
        ("sex", "hours-per-week"),
        ("marital-status", "income>50K"),
        ("income>50K", "capital-gain"),
        ("income>50K", "capital-loss"),
        ("income>50K", "education-num"),
        ("education-num", "occupation"),
        ("occupation", "workclass"),
        ("education-num", "race"),
        ("race", "native-country"),
        ("race", "fnlwgt"),
    ],
    "adult_raw": [
        ("Age", "MaritalStatus"),
        ("MaritalStatus", "Sex"),
        ("Sex", "HoursPerWeek"),
        ("MaritalStatus", "Income"),
        ("Income", "Education"),
        ("Education", "Immigrant"),
        ("Immigrant", "Race"),
    ],
}

# The labels of adult_raw; those of adult are in its adult-domain.json.
RAW = {
    "Age": ["<20", "20-34", "35-49", "50-65", ">65"],
    "Education": ["Non-HS-Grad", "HS-grad", "College-Associate", "Academic-Degree"],
    "MaritalStatus": ["Never-married", "Is-Married", "Was-Married"],
    "Race": ["White", "Non-White"],
    "Sex": ["Male", "Female"],
    "HoursPerWeek": ["<20", "20-39", "40", ">40"],
    "Immigrant": ["no", "yes"],
    "Income": ["<=50K", ">50K"],
}


@frozen(kw_only=True, eq=False)
class Census:
    """A table of codes, split into training and held-out records, and the tree measured on it."""

    domain: Domain
    tree: Structure
    training: IntArray
    heldout: IntArray

    @classmethod
    def split(cls, domain: Domain, edges: Sequence[tuple[str, str]], codes: IntArray) -> Census:
        """4/5 to train on, always the same."""
        order = np.random.default_rng(0).permutation(len(codes))
        cut = len(codes) * 4 // 5
        tree = Structure(domain, edges)
        return cls(domain=domain, tree=tree, training=codes[order[:cut]], heldout=codes[order[cut:]])


@lru_cache(maxsize=2)
def load(folder: Path, name: str) -> Census:
    """The data set of that name. Raises OSError or ValueError; names columns, shows no record."""
    if name == "adult_raw":
        codes_of = {column: {label: code for code, label in enumerate(labels)} for column, labels in RAW.items()}
    else:
        sizes = json.loads((folder / name / "adult-domain.json").read_text(encoding="utf-8"))
        codes_of = {column: {str(code): code for code in range(size)} for column, size in sizes.items()}
    with (folder / name / "adult.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    missing = [column for column in codes_of if not rows or column not in rows[0]]
    if missing:
        raise ValueError(f"no records, or no column {missing[0]!r}")
    columns = [[known.get(row[column], -1) for row in rows] for column, known in codes_of.items()]
    codes = np.array(columns, dtype=np.int64).T
    sizes = {column: len(known) for column, known in codes_of.items()}
    outside = np.any(codes < 0, axis=0)
    if outside.any():
        raise ValueError(f"column {list(sizes)[int(np.argmax(outside))]!r} holds a value outside its domain")
    return Census.split(Domain.from_sizes(sizes), TREES[name], codes)


def model_margins(model: Model) -> Iterator[Margin]:
    """All two-way, then all three-way marginals of a model, exactly; few at a time, as some are large."""
    cliques = itertools.chain(*(itertools.combinations(model.domain.names, order) for order in (2, 3)))
    while some := list(itertools.islice(cliques, 10)):
        found = model.marginals_of(some)
        yield from ((clique, found[clique]) for clique in some)


def records_margins(domain: Domain, codes: IntArray) -> Iterator[Margin]:
    """The same of records: shares of them."""
    table = Coded(domain=domain, codes=codes)
    for order in (2, 3):
        for clique in itertools.combinations(domain.names, order):
            yield clique, shares(table, clique)


def scores(census: Census, margins: Iterator[Margin]) -> dict[str, float]:
    """Mean total variation distance, by order and to which records."""
    found: dict[str, list[float]] = {f"{where}{order}": [] for where in ("training", "heldout") for order in (2, 3)}
    training = records_margins(census.domain, census.training)
    heldout = records_margins(census.domain, census.heldout)
    for (clique, ours), (_, here), (_, there) in zip(margins, training, heldout, strict=True):
        found[f"training{len(clique)}"].append(0.5 * float(np.abs(ours - here).sum()))
        found[f"heldout{len(clique)}"].append(0.5 * float(np.abs(ours - there).sum()))
    return {name: float(np.mean(values)) for name, values in found.items()}
