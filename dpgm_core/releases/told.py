"""Facts about the origin of releases as plain values: private labels and bins, and the steps of sessions.

All of it is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpgm_core.releases.bins import FoundBins
from dpgm_core.releases.descents import Descent
from dpgm_core.releases.release import NoisyTables, discoveries
from dpgm_core.releases.session import Step
from dpgm_core.releases.steps import Choice, NoisyScores
from dpgm_core.releases.verdict import Verdict

__all__ = ["bins_of", "labels_facts", "merges_of", "session_facts", "sessions_of", "step_facts"]


def labels_facts(releases: Sequence[NoisyTables]) -> dict[str, Any]:
    """The labels that were found privately before, by column; nothing without any."""
    columns = [one for discovery in discoveries(releases) for one in discovery.columns]
    facts = [
        {
            "column": one.column,
            "labels": list(one.labels),
            "counts": list(one.counts),
            "threshold": one.noise.threshold,
            "cost": one.budget.to_dict(),
        }
        for one in columns
    ]
    return {"labels": facts} if facts else {}


def session_facts(releases: Sequence[NoisyTables]) -> dict[str, Any]:
    """What sessions did, step by step, and which codes they merged; nothing without one."""
    sessions = sessions_of(releases)
    if not sessions:
        return {}
    bins = {one.name: list(one.attribute.labels[: len(one.places) - 1]) for one in bins_of(sessions)}
    facts = {"trace": [step_facts(step) for one in sessions for step in one.steps], "merges": merges_of(sessions)}
    return facts | ({"bins": bins} if bins else {})


def sessions_of(releases: Sequence[NoisyTables]) -> list[NoisyTables]:
    """Those that are all that a session handed out."""
    return [one for one in releases if one.session is not None]


def bins_of(sessions: Sequence[NoisyTables]) -> list[FoundBins]:
    """The bins that sessions found, column by column."""
    return [bins for one in sessions if one.session is not None for bins in one.session.bins]


def merges_of(sessions: Sequence[NoisyTables]) -> dict[str, list[int]]:
    """Attribute -> the new code of each of its codes; sessions that are learned from together agree on them."""
    merged = [one.session.merges for one in sessions if one.session is not None]
    return {name: list(codes) for merges in merged for name, codes in merges.items()}


def step_facts(step: Step) -> dict[str, Any]:
    """One step: its kind, what it chose or measured, of how many candidates, and what it cost."""
    cost = step.cost.to_dict()
    if isinstance(step, Descent):
        moved = [list(clique) for clique in step.cliques]
        return {"kind": "descend", "cliques": moved, "candidates": len(step.candidates), "cost": cost}
    if isinstance(step, Verdict):
        edges = None if step.edges is None else [list(pair) for pair in step.edges]
        facts = {"kind": "vote", "cliques": edges or [], "stable": edges is not None}
        return {**facts, "candidates": len(step.candidates), "cost": cost}
    if isinstance(step, Choice):
        chosen = [list(clique) for clique in step.cliques]
        return {"kind": "select", "cliques": chosen, "candidates": len(step.candidates), "cost": cost}
    if isinstance(step, NoisyScores):
        return {"kind": "score", "cliques": [], "candidates": len(step.candidates), "cost": cost}
    kind = "check" if step.holdout else "measure"
    return {"kind": kind, "cliques": [list(clique) for clique in step.structure.cliques], "cost": cost}
