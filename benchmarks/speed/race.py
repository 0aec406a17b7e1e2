"""A race: everybody answers a model once, who disagrees with ours is named and left out, calls are timed in turns."""

from __future__ import annotations

import math
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from benchmarks.harness.alone import Crashed
from benchmarks.harness.runs import refuse, say
from benchmarks.speed.contestants import Contestant, contestants
from benchmarks.speed.models import Case, save
from dpgm_core._util.arrays import FloatArray

#: Probabilities that differ by more do not agree: 64 bits, and 32.
TOLERANCE, COARSE = 1e-9, 1e-4
SHORT = ("mbi", "pgmax")
#: Of a turn, and how many turns everybody has; calls that are longer than a turn are made once in it.
CALLS, SECONDS, ROUNDS = 200, 0.4, 6


@define
class Agreement:
    """Who is timed on a model: those whose marginals are the first answer's; the others are named with the reason."""

    reference: FloatArray | None = None
    log_z: float = math.nan
    left_out: dict[str, str] = field(factory=dict)

    def agrees(self, who: str, marginals: FloatArray, log_z: float) -> bool:
        """Whether this one is timed; the first one asked, ours, is what the others are held against."""
        if self.reference is None:
            self.reference, self.log_z = marginals, log_z
        off = float(np.abs(marginals - self.reference).max()) if marginals.shape == self.reference.shape else math.inf
        why = None
        if not np.isfinite(marginals).all():
            why = f"{int((~np.isfinite(marginals)).sum())} marginals are not finite"
        elif off > (COARSE if who.split()[0] in SHORT else TOLERANCE):
            why = f"marginals differ by {off:.1e}"
        elif math.isfinite(log_z) and not math.isclose(log_z, self.log_z, rel_tol=1e-9, abs_tol=1e-9):
            why = f"log Z is {log_z!r}, not {self.log_z!r}"
        if why is not None:
            self.left_out[who] = why
        return why is None


def races(names: Sequence[str], models: Iterable[Case], asked: Namespace) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Each model and what `race` found on it. names: of the contestants, ours first; who is not here is left out."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        all_of_them = [stack.enter_context(one) for one in contestants(names, asked.peers)]
        for model in models:
            path = Path(folder, f"{model.name}.npz")
            save(model, path)
            yield model, race(all_of_them, path, asked)


def race(all_of_them: Sequence[Contestant], path: Path, asked: Namespace) -> dict[str, Any]:
    """Milliseconds per call and of the first one, by "CONTESTANT VARIANT"; log Z; who is left out, and why.

    all_of_them: ours first. path: of the model, as `models.save` writes it.
    """
    agreement, first = Agreement(), {}
    timed: list[tuple[Contestant, str]] = []
    for one in all_of_them:
        for variant in _variants(one, path, asked.limit, agreement):
            who = f"{one.name} {variant}"
            try:
                marginals, log_z, seconds = one.checked(path, variant, asked.limit)
            except Crashed as why:
                agreement.left_out[who] = str(why)
                continue
            if agreement.agrees(who, marginals, log_z):
                timed.append((one, variant))
                first[who] = 1e3 * seconds
    ms = _turns(timed, path, asked, agreement)
    for who, why in agreement.left_out.items():
        say(f"  {who} is left out on {path.stem}: {why}")
    if agreement.left_out and all(one.name.startswith("dpgm") for one, _ in timed) and len(all_of_them) > 1:
        say(f"  nobody else agrees on {path.stem}")
    return {"ms": ms, "first ms": first, "log Z": agreement.log_z, "left out": agreement.left_out}


def _variants(one: Contestant, path: Path, limit: float, agreement: Agreement) -> Iterator[str]:
    try:
        yield from one.ask({"load": str(path)}, limit)["names"]
    except Crashed as why:
        if one.name.startswith("dpgm"):
            refuse(f"ours has no answer on {path.stem}: {why}")
        agreement.left_out[one.name] = str(why)


def _turns(timed: list[tuple[Contestant, str]], path: Path, asked: Namespace, agreement: Agreement) -> dict[str, float]:
    best: dict[str, float] = {}
    calls = {"calls": CALLS, "seconds": 0.1 if asked.smoke else SECONDS}
    # Warm again first: if one of its variants took too long, its process was ended.
    for turn in ({"calls": 1, "seconds": 0.0}, *[calls] * (1 if asked.smoke else ROUNDS)):
        for one, variant in list(timed):
            who = f"{one.name} {variant}"
            try:
                seconds = one.fastest(path, variant, asked.limit, **turn)
            except Crashed as why:
                agreement.left_out[who] = str(why)
                timed.remove((one, variant))
                best.pop(who, None)
                continue
            best[who] = min(best.get(who, math.inf), 1e3 * seconds)
    return best


def ours(found: dict[str, Any]) -> float:
    """The executor that is chosen by itself: the first."""
    return next(ms for who, ms in found["ms"].items() if who.startswith("dpgm"))


def fastest_peer(found: dict[str, Any]) -> tuple[str, float] | None:
    """Who, and milliseconds."""
    peers = {who: ms for who, ms in found["ms"].items() if not who.startswith("dpgm")}
    return min(peers.items(), key=lambda pair: pair[1]) if peers else None


def least(found: dict[str, Any], name: str) -> str:
    """Milliseconds of the fastest variant of a contestant."""
    mine = [ms for who, ms in found["ms"].items() if f"{who} ".startswith(f"{name} ")]
    return f"{min(mine):.3g}" if mine else "-"
