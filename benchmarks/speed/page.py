"""The tables of everything that was measured, and on what."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from benchmarks.harness.alone import ROOT, Crashed
from benchmarks.harness.output import markdown, marked
from benchmarks.speed.contestants import contestants

HEAD = "# Inference\n\nWritten by `python -m benchmarks.inference`; see docs/performance.md.\n"
LIBRARIES = ("dpgm-core", "numpy", "scipy", "numba", "mbi", "jax", "pyagrum", "pgmpy", "pgmax")


@frozen
class Aim:
    """what: in words, with its unit. most: at most this was aimed at. beside: who or what it is held against."""

    what: str
    measured: float
    most: float
    beside: str = ""

    @property
    def met(self) -> bool:
        """At the three digits that are shown."""
        return float(f"{self.measured:.3g}") <= self.most


def aims_table(aims: Iterable[Aim]) -> str:
    """A row for each."""
    rows = [
        (aim.what, f"{aim.measured:.3g}", f"{aim.most:g}", "met" if aim.met else "missed", aim.beside) for aim in aims
    ]
    return markdown(["figure", "measured", "at most", "", "beside"], rows)


@frozen
class Part:
    """about: one line, and after it perhaps more. measure: what was asked for -> figures, plain values. table: figures
    -> markdown. aims: figures -> what was aimed at."""

    about: str | None
    measure: Callable[[Namespace], Any]
    table: Callable[[Any], str]
    aims: Callable[[Any], Sequence[Aim]] = lambda figures: ()


def stamped(figures: Any, peers: Path | None) -> dict[str, Any]:
    """Figures with when and where they were measured, and the load of the machine when they were ready."""
    return {
        "figures": figures,
        "day": time.strftime("%Y-%m-%d"),
        "revision": _revision(),
        "load": round(os.getloadavg()[0], 1),
        "machine": _machine(),
        "versions": _versions(peers),
    }


def text(parts: Mapping[str, Part], kept: Mapping[str, Any]) -> str:
    """In markdown: what was aimed at, every part, the machine. Tables are marked for pages that show one."""
    measured = {name: part for name, part in parts.items() if name in kept}
    found = [HEAD]
    aims = [aim for name, part in measured.items() for aim in part.aims(kept[name]["figures"])]
    if aims:
        found.append(_section("targets", "", aims_table(aims)))
    for name, part in measured.items():
        found.append(_section(name, (part.about or "").strip() + "\n\n", part.table(kept[name]["figures"])))
    found.append(_section("machine", "", _where(kept)))
    return "\n".join(found)


def _section(name: str, about: str, table: str) -> str:
    return f"## {name.capitalize()}\n\n{about}{marked(name, table)}"


def _where(kept: Mapping[str, Any]) -> str:
    alike: dict[str, list[str]] = {}
    for name, one in kept.items():
        libraries = [f"{who} with {', '.join(map(' '.join, some.items()))}" for who, some in one["versions"].items()]
        on = f"{one['machine']}; {'; '.join(libraries)}"
        alike.setdefault(on, []).append(f"{name} ({one['day']}, {one['revision']}, load {one['load']})")
    return "".join(f"* {', '.join(names)}: {on}.\n" for on, names in alike.items())


def _machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _versions(peers: Path | None) -> dict[str, dict[str, str]]:
    found = {}
    for one in contestants(("dpgm", "mbi", "pyagrum", "pgmpy", "pgmax"), peers):
        with one:
            try:
                found[one.name] = one.ask({"versions": list(LIBRARIES)}, 60)["versions"]
            except Crashed as why:
                found[one.name] = {"error": str(why)}
    return found
