"""Writing of the UAI competition's model files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import DataError, StructureError
from dpgm_core.files import NAMES_FILE, UAI_FILE, atomic_write, check_writable, plain
from dpgm_core.interop.uai_model import names_path
from dpgm_core.structure import Clique, Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.tables import Tables

__all__ = ["write_uai"]

# exp(700) and exp(-700) are ordinary doubles; a wider table is written as a product of several.
WIDEST = 700.0
#: How far a row of a network's tables may be from 1 in sum: published networks are rounded.
ROUNDING = 1e-6


def write_uai(
    path: str | Path,
    structure: Structure,
    potentials: Tables,
    *,
    kind: Literal["MARKOV", "BAYES"] = "MARKOV",
    stamp: Mapping[str, Any] | None = None,
) -> None:
    """Write a model file and its names sidecar; `read_uai` gives back the same structure and potentials exactly.

    Tables are exp(potentials), each number with the digits that identify its double. kind: of "MARKOV" a table with
    finite potentials beyond +-700 is written as a product of n equal factors exp(potentials / n) on the same variables,
    so nothing overflows and no possible record becomes impossible; tied groups are written out clique by clique, and
    constraints of the domain as factors of 0 and 1.
    "BAYES" is for networks, that is structures of families (`Dag.of`) whose potentials are log P(child | parents): one
    factor for each attribute, in the domain's order, parents first and the child last, as the format wants it. stamp:
    what the sidecar says of the model besides, plain values, such as `Model.stamp()`.

    Older models are replaced, other files are not. Raises DataError for NaN, +inf, finite potentials beyond +-700,000
    and for probabilities of a network that are no double; StructureError for "BAYES" of no network; ModelFileError when
    the files cannot be written.

    >>> import tempfile
    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.interop.uai_model import read_uai
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_uai(Path(folder) / "m.uai", structure, Tables(structure, np.array([0.1, -1e3])))
    ...     read_uai(Path(folder) / "m.uai").potentials["a"].tolist()
    [0.1, -1000.0]
    """
    if kind not in ("MARKOV", "BAYES"):
        raise DataError(f"write {path}: the kinds are MARKOV and BAYES, got {kind!r:.80}")
    if potentials.structure != structure:
        raise DataError(f"write {path}: the potentials are over {potentials.structure}, not over {structure}")
    potentials = potentials.astype(np.float64)
    values = potentials.values
    if not (values < np.inf).all():
        raise DataError(f"write {path}: the potentials hold NaN or +inf; they must be finite or -inf")
    try:
        factors = _network(potentials) if kind == "BAYES" else _factors(potentials)
    except (DataError, StructureError) as error:
        raise type(error)(f"write {path}: {error}") from None
    place = {name: str(i) for i, name in enumerate(structure.domain.names)}
    scopes = [" ".join([str(len(clique)), *(place[name] for name in clique)]) for clique, _ in factors]
    tables = [f"{table.size}\n" + " ".join(map(repr, table.reshape(-1).tolist())) for _, table in factors]
    sizes = " ".join(str(size) for size in structure.domain.sizes.values())
    head = [kind, str(len(structure.domain)), sizes, str(len(scopes))]
    content = "\n".join([*head, *scopes, "", *tables, ""]).encode()
    facts = {
        "domain": structure.domain.to_dict(),
        "groups": [[list(clique) for clique in group] for group in structure.groups],
        "log_potentials": [value if value > -math.inf else None for value in values.tolist()],
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if stamp is not None:
        facts["stamp"] = plain(stamp)
    # The names and the stamp come first: whatever ends this halfway, no model is without its own, nor with another's.
    check_writable(path, UAI_FILE)
    atomic_write(names_path(path), json.dumps(facts, allow_nan=False).encode(), NAMES_FILE)
    atomic_write(path, content, UAI_FILE)


def _factors(potentials: Tables) -> list[tuple[Clique, FloatArray]]:
    """Each clique with its table, one that is too wide several times over with a root of it."""
    factors = []
    for group, table in zip(potentials.structure.groups, potentials.arrays(), strict=True):
        widest = float(np.abs(table[table > -np.inf]).max(initial=0.0))
        if widest > 1000 * WIDEST:
            raise DataError(f"a potential of {widest:g} nats cannot be written as numbers; at most 700,000")
        times = max(1, math.ceil(widest / WIDEST))
        root = np.exp(table / times)
        factors += [(clique, root) for clique in group for _ in range(times)]
    domain = potentials.structure.domain
    factors += [(one.columns, np.where(one.mask, 0.0, 1.0)) for one in domain.rules]
    return factors


def _network(potentials: Tables) -> list[tuple[Clique, FloatArray]]:
    """Each attribute's parents and itself, with its conditional table, whose last axis is its own."""
    factors = []
    for child, *above in Dag.of(potentials.structure).families:
        logs = potentials[child, *above]
        with np.errstate(over="ignore"):
            table = np.exp(logs)
        worst = float(np.abs(table.sum(axis=0) - 1).max())
        if not worst <= ROUNDING:
            raise StructureError(
                f"the table of {child!r} is no conditional probability, a row of it is off from 1 by {worst:.3g} in "
                "sum; kind 'MARKOV' holds any potentials"
            )
        if (lost := logs[(table == 0) & (logs > -np.inf)]).size:
            raise DataError(
                f"a probability of {child!r}, exp({lost.max():g}), is smaller than any double, and 0 would rule it "
                "out; kind 'MARKOV' holds it"
            )
        factors.append(((*above, child), np.moveaxis(table, 0, -1)))
    Dag.of(potentials.structure).check_constraints({names[-1]: np.moveaxis(table, -1, 0) for names, table in factors})
    return factors
