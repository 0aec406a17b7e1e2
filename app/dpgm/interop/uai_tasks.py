"""The UAI competition's formats: models, evidence, and the tasks PR (log10 of the partition function), MAR and MPE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpgm.interop.uai import UaiModel, names_path, parse_uai, read_bounded, read_uai, write_uai
from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.blas import one_thread
from dpgm_core.errors import DataError, InferenceError
from dpgm_core.inference.contract import Beliefs, Bounder, Engine, Inference, LogPartitionBounds, Maximizer
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "Task",
    "UaiModel",
    "apply_evidence",
    "bounds_uai",
    "format_mar",
    "format_mpe",
    "format_pr",
    "infer_uai",
    "names_path",
    "parse_uai",
    "read_evidence",
    "read_mar",
    "read_pr",
    "read_uai",
    "variable_marginals",
    "write_uai",
]

Task = Literal["PR", "MAR", "MPE"]


@one_thread
def infer_uai(
    model: str | Path, evidence: str | Path | None, task: Task, inference: Inference
) -> tuple[str, Beliefs | None]:
    """Answer one competition task: the text of the result file, and the beliefs behind it (None for MPE).

    The names sidecar is not needed and not read. An answer of an unconverged engine is returned like any other: look
    at `beliefs.converged`. Raises DataError for the files, InferenceError for evidence of probability 0 or an engine
    that cannot maximise, TooLarge for models beyond the engine.
    """
    if task not in ("PR", "MAR", "MPE"):
        raise DataError(f"the tasks are PR, MAR and MPE, got {task!r}")
    engine, potentials = _compile_task(model, evidence, inference)
    if task == "MPE":
        if "maximize" not in engine.capabilities or not isinstance(engine, Maximizer):
            raise InferenceError("MPE needs an engine that maximises, such as junction-tree; this one does not")
        record, _ = engine.maximize(potentials)
        return format_mpe([record[name] for name in potentials.structure.domain.names]), None
    beliefs = engine.infer(potentials)
    if task == "PR":
        return format_pr(beliefs.log_partition), beliefs
    return format_mar(variable_marginals(beliefs.marginals)), beliefs


@one_thread
def bounds_uai(model: str | Path, evidence: str | Path | None, inference: Inference) -> LogPartitionBounds:
    """What log Z certainly lies between, nats, by an engine with capability "bounds", such as loopy-bp's.

    Raises what `infer_uai` does, and InferenceError for an engine that has none.

    >>> import tempfile
    >>> from dpgm_core.inference.loopy.bp import LoopyBP
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "m.uai"
    ...     _ = path.write_text("MARKOV 2 2 2 1 2 0 1 4 1 2 3 94")
    ...     found = bounds_uai(path, None, LoopyBP())
    >>> found.low <= math.log(100) <= found.high
    True
    """
    engine, potentials = _compile_task(model, evidence, inference)
    if "bounds" not in engine.capabilities or not isinstance(engine, Bounder):
        raise InferenceError("bounds need an engine that has them, such as loopy-bp; this one has none")
    return engine.bounds(potentials)


def _compile_task(model: str | Path, evidence: str | Path | None, inference: Inference) -> tuple[Engine, Tables]:
    potentials = read_uai(model, names=False).potentials
    if evidence is not None:
        potentials = apply_evidence(potentials, read_evidence(evidence))
    return inference.compile(potentials.structure), potentials


def read_evidence(path: str | Path) -> dict[int, int]:
    """Read an evidence file: variable -> observed state, both counted from 0.

    Understands `n var state ...` and the older form with the number of samples on a line of its own before it; an
    empty file is no evidence. Raises DataError for several samples, contradictions and anything malformed.
    """
    text = read_bounded(path).decode("ascii", "replace")
    lines = [line.split() for line in text.splitlines() if line.split()]
    words = [word for line in lines for word in line]
    if not words:
        return {}
    if not all(word.isascii() and word.isdigit() and len(word) < 18 for word in words):
        raise DataError(f"{path}: evidence must be whole numbers, 'n variable state ...'")
    numbers = [int(word) for word in words]
    # "1" alone on the first line is a number of samples; on a line with more it is a number of observations.
    if len(lines) > 1 and len(lines[0]) == 1 and len(numbers) != 1 + 2 * numbers[0]:
        if numbers[0] != 1:
            raise DataError(f"{path} holds {numbers[0]} evidence samples; write one sample per file")
        numbers = numbers[1:]
    if len(numbers) != 1 + 2 * numbers[0]:
        raise DataError(f"{path}: {numbers[0]} observations need {2 * numbers[0]} numbers, got {len(numbers) - 1}")
    evidence: dict[int, int] = {}
    for variable, state in zip(numbers[1::2], numbers[2::2], strict=True):
        if evidence.setdefault(variable, state) != state:
            raise DataError(f"{path} observes variable {variable} in two states")
    return evidence


def apply_evidence(potentials: Tables, evidence: Mapping[int, int] | Mapping[str, int]) -> Tables:
    """Potentials of the same distribution restricted to records that agree with the evidence: all else is -inf.

    potentials: nats. evidence: attribute (name or place in the domain) -> code. An observed attribute in no clique
    gets a clique of its own, so the result may be over a larger structure. The log-partition becomes the log of the
    summed weight of the agreeing records. Raises DataError for unknown attributes, codes out of range and tied groups.
    """
    structure = potentials.structure
    domain = structure.domain
    codes = {}
    for key, code in evidence.items():
        if isinstance(key, str) and key in domain:
            name = key
        elif isinstance(key, int) and 0 <= key < len(domain):
            name = domain.names[key]
        else:
            raise DataError(f"evidence about {key!r}: the model has no such variable, only {len(domain)} others")
        if not isinstance(code, (int, np.integer)) or isinstance(code, bool) or not 0 <= code < domain[name].size:
            raise DataError(f"evidence {name} = {code!r}: its states are 0 to {domain[name].size - 1}")
        codes[name] = int(code)
    if max(structure.multiplicities) > 1:
        raise DataError("evidence on tied cliques would untie them; use a structure without tied groups")
    loose = [name for name in codes if structure.covering((name,)) is None]
    if loose:
        larger = Structure(domain, [*structure.cliques, *((name,) for name in loose)])
        extra = np.zeros(larger.cells - structure.cells)
        structure, potentials = larger, Tables(larger, np.concatenate([potentials.values, extra]))
    values = potentials.values.astype(np.float64)
    for number, clique in enumerate(structure.cliques):
        table = values[structure.slices[number]].reshape(structure.shapes[number])
        for axis, name in enumerate(clique):
            if name in codes:
                other: Any = (slice(None),) * axis + (np.arange(table.shape[axis]) != codes[name],)
                table[other] = -np.inf
    return Tables(structure, values)


def variable_marginals(marginals: Tables) -> list[FloatArray]:
    """One distribution per attribute, from the smallest clique that holds it; uniform for an attribute in none."""
    structure = marginals.structure
    if max(structure.multiplicities) > 1:
        raise InferenceError("tied groups hide the marginals of single attributes; use structure.untied()")
    result = []
    for attribute in structure.domain:
        clique = structure.covering((attribute.name,))
        if clique is None:
            result.append(np.full(attribute.size, 1.0 / attribute.size))
            continue
        others = tuple(axis for axis, name in enumerate(clique) if name != attribute.name)
        margin = marginals[clique].sum(axis=others)
        result.append(margin / margin.sum())
    return result


def format_pr(log_partition: float) -> str:
    """log10 of the partition function; log_partition in nats.

    >>> format_pr(math.log(100.0))
    'PR\\n2\\n'
    """
    return f"PR\n{log_partition / math.log(10):.17g}\n"


def format_mar(marginals: Sequence[FloatArray]) -> str:
    """One distribution per variable, with the digits that identify a double.

    >>> format_mar([np.array([0.5, 0.5])])
    'MAR\\n1 2 0.5 0.5\\n'
    """
    words = [str(len(marginals))]
    for margin in marginals:
        words.append(str(margin.size))
        words.extend(f"{p:.17g}" for p in margin.tolist())
    return "MAR\n" + " ".join(words) + "\n"


def format_mpe(codes: Sequence[int]) -> str:
    """One state per variable.

    >>> format_mpe([1, 0])
    'MPE\\n2 1 0\\n'
    """
    return "MPE\n" + " ".join(str(int(code)) for code in (len(codes), *codes)) + "\n"


def read_pr(path: str | Path) -> float:
    """log10 of the partition function from a PR file. Raises DataError."""
    words = _words(path, "PR")
    if len(words) != 1:
        raise DataError(f"{path}: a PR file holds one number, got {len(words)}")
    return words[0]


def read_mar(path: str | Path) -> list[FloatArray]:
    """One distribution per variable from a MAR file. Raises DataError."""
    words = _words(path, "MAR")
    if not words:
        raise DataError(f"{path}: a MAR file begins with the number of variables")
    result, place = [], 1
    while place < len(words):
        size = words[place]
        if size != int(size) or not 0 < size < len(words) - place:
            raise DataError(f"{path}: {size:g} states are announced, {len(words) - place - 1} numbers are left")
        result.append(np.array(words[place + 1 : place + 1 + int(size)]))
        place += 1 + int(size)
    if len(result) != words[0]:
        raise DataError(f"{path}: {words[0]:g} variables are announced, {len(result)} found")
    return result


def _words(path: str | Path, task: Task) -> list[float]:
    try:
        head, *words = read_bounded(path).decode("ascii").split() or [""]
    except ValueError as error:
        raise DataError(f"cannot read {path}: {error}") from None
    if head != task:
        raise DataError(f"{path} must begin with {task}, got {head[:40]!r}")
    try:
        return [float(word) for word in words]
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
