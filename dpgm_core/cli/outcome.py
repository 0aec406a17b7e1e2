"""What a run prints when it is done: the outcome."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpgm_core.cli.common import print_err, print_out, print_table, stamp, unmeasured_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpgm_core.learning.contract import Fit
    from dpgm_core.models.model import Model
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.releases.session import Step
    from dpgm_core.structure import Clique, Structure

__all__ = [
    "print_chosen",
    "print_fit",
    "print_labels",
    "summary",
    "count_noisy_tables",
]

#: Cliques that are spelled out on the screen.
_MAX_ROWS_SHOWN = 20


def summary(done: Fit, path: Path, saved: Sequence[Path], left: Any, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """A fit as plain values, for `--json`. saved: the files of its releases. remarks: those of its spec."""
    from dpgm_core.releases.stamps import stamp_of
    from dpgm_core.releases.told import labels_facts, session_facts

    surest, cost, chosen = _surest(done), _cost(done), session_facts(done.model.releases)
    return {
        "model": str(path),
        "release": str(saved[0]),
        "releases": [str(file) for file in saved],
        "spent": cost.to_dict(),
        "left": None if left is None else left.to_dict(),
        "records": {"total": _records(surest), "policy": surest.total_policy},
        "converged": done.converged,
        "replicates": len(done.model.replicates),
        "certificate": dict(done.certificate),
        "notes": [*remarks, *done.notes, *filter(None, [_wide(done.model)])],
        "unmeasured": list(done.model.unmeasured),
        "misfit": _scores(done.model),
        "structure_error": _structure_error(done.model),
        "structure": [list(clique) for clique in done.model.structure.cliques],
        **({"selector": _selector(done.model), "rounds": _selection(done.model).get("trace", [])} if chosen else {}),
        **chosen,
        **labels_facts(done.model.releases),
        **stamp_of(done.model.releases, done.model.guarantee()),
    }


def print_labels(releases: Sequence[NoisyTables]) -> None:
    """What was found of each open column, a line each; nothing without any."""
    from dpgm_core.releases.release import discoveries

    for discovery in discoveries(releases):
        for one in discovery.columns:
            shown = ", ".join(one.labels[:_MAX_ROWS_SHOWN]) + (", ..." if len(one.labels) > _MAX_ROWS_SHOWN else "")
            about = f"{_several(len(one.labels), 'label')} found for {one.budget}, each of about "
            about += f"{one.noise.threshold:,} persons or more"
            print_out(f"labels:  {one.column}: {about}{': ' if shown else '; all its values are one label'}{shown}")


def _selector(model: Model) -> str | None:
    """Who chose the structure; None where nobody did, or a release was learned from later."""
    return dict(model.provenance.get("selector") or {}).get("name")


def _selection(model: Model) -> dict[str, Any]:
    """The selector's own trace and notes, where the model came with them."""
    return dict(model.provenance.get("selection") or {})


def _step_row(step: Step) -> list[object]:
    """A step as a row of a table."""
    from dpgm_core.releases.told import step_facts

    facts = step_facts(step)
    tables = [" x ".join(clique) for clique in facts["cliques"]]
    more = f", and {len(tables) - _MAX_ROWS_SHOWN} more" if len(tables) > _MAX_ROWS_SHOWN else ""
    return [facts["kind"], facts.get("candidates", "-"), step.cost, ", ".join(tables[:_MAX_ROWS_SHOWN]) + more]


def _scores(model: Model) -> list[dict[str, Any]]:
    """How far each table is from the model; nothing where exact answers do not fit."""
    from dpgm_core.errors import InferenceError, TooLarge

    try:
        return [{"table": list(clique), "standard_errors": score} for clique, score in model.misfit().items()]
    except (TooLarge, InferenceError):
        return []


def _structure_error(model: Model) -> dict[str, float] | None:
    """What the structure misses, total variation; None without a holdout."""
    from dpgm_core.errors import InferenceError, TooLarge

    try:
        error = model.structure_error() if model.checked else None
    except (TooLarge, InferenceError):
        return None
    if error is None:
        return None
    return {"tv": float(error.estimate), "low": float(error.low), "high": float(error.high), "level": error.level}


def _cost(done: Fit) -> Budget:
    assert done.model.cost is not None  # `run` refuses a fit to nothing
    return done.model.cost


def _surest(done: Fit) -> NoisyTables:
    """The release that tells the number of records best."""

    def variance(release: NoisyTables) -> float:
        return release.total_variance / float(1 if release.round is None else release.round.sampling_rate) ** 2

    return min(done.model.seen, key=variance)  # all in one where they were pooled: it is surer than each


def _wide(model: Model) -> str | None:
    """What is said of bins much wider than a neighbour, those that were found privately too."""
    from dpgm_core.models.wide import wide_note

    return wide_note(one for one in model.domain if one.name not in model.unmeasured)


def _records(release: NoisyTables) -> float:
    """The number of records behind a release; a round's own total is that of its subsample."""
    return release.total / float(1 if release.round is None else release.round.sampling_rate)


def print_fit(
    done: Fit,
    path: Path,
    saved: Sequence[Path],
    left: Any,
    *,
    verbose: bool,
    learned_again: bool = False,
    level: float | None = None,
) -> None:
    """A fit for people: files, cost, structure if it was chosen, margins, guarantee."""
    from dpgm_core.errors import TooLarge
    from dpgm_core.learning.judgement import goodness_of_fit
    from dpgm_core.releases.stamps import caveats_of
    from dpgm_core.releases.told import sessions_of
    from dpgm_core.releases.totals import contradictions

    stamp(path, caveats_of(done.model.releases))
    surest, cost = _surest(done), _cost(done)
    print_out(f"model:   {path}")
    for file in saved:
        print_out(f"release: {file}")
    paid = "" if learned_again else "" if left is None else f"; left in the ledger: {left}"
    print_out(("paid before: " if learned_again else "spent:   ") + f"{cost}{paid}")
    print_labels(done.model.releases)
    if sessions_of(done.model.releases):
        print_chosen(
            done.model.structure,
            done.model.releases,
            verbose=verbose,
            selector=_selector(done.model),
            notes=_selection(done.model).get("notes", []),
        )
    what = "records: " if surest.contributions is None else "persons: "
    print_out(f"{what}{_records(surest):,.0f} ({surest.total_policy})")
    if not done.converged:
        print_out("WARNING: the learner did not converge; the model carries this flag")
    if not done.model.potentials.values.any():
        print_out(
            "WARNING: the model is uniform: the learner found nothing in the noisy tables that noise does not explain"
        )
    misfit, missed = goodness_of_fit(done.model)
    for note in misfit:
        print_err(f"dpgm: {note}")
    for note in missed:
        print_out(f"holdout: {note}")
    selection_notes = _selection(done.model).get("notes", [])
    for note in done.notes if verbose or not done.converged else contradictions(done.releases):
        if note not in selection_notes:  # they stand beside the structure
            print_err(f"note: {note}")
    print_out()
    try:
        _print_margins(done.model, level if done.model.replicates else None)
    except TooLarge:
        print_out("exact answers do not fit in memory; ask with: dpgm query --inference loopy-bp")
    swamped, tables = count_noisy_tables(done.model.seen)
    if swamped:
        print_err(
            f"dpgm: the noise is larger than the average cell in {swamped} of {tables} tables, so finer "
            "detail there is noise; use fewer or smaller tables, or more budget"
        )
    wide = _wide(done.model)
    if wide is not None:
        print_err(f"dpgm: {wide}")
    print_out()
    print_out(done.model.guarantee())


def print_chosen(
    structure: Structure,
    releases: Sequence[NoisyTables],
    *,
    verbose: bool,
    selector: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """The structure that a session chose and why, the bins that it found and what was merged in it, and with `verbose`
    each of its steps; of cliques that were named the bins only.

    Cliques inside others are not listed. selector: who chose it, if that is known; notes: its own.
    """
    from dpgm_core.releases.told import bins_of, merges_of, sessions_of

    sessions = sessions_of(releases)
    for bins in bins_of(sessions):
        count, attribute = len(bins.edges) - 1, bins.attribute
        if attribute.values.is_temporal:
            at = list(attribute.labels[:count])
        else:
            at = [f"{edge:g}" for edge in bins.edges]
        shown = ", ".join(at if len(at) <= _MAX_ROWS_SHOWN else [*at[: _MAX_ROWS_SHOWN - 1], "...", at[-1]])
        print_out(f"bins:    {bins.name} in {_several(count, 'bin')} found for {bins.cost}, at {shown}")
    if all(one.session is not None and one.session.named for one in sessions):
        return
    steps = [step for one in sessions for step in one.steps]
    inside = [set(clique) for clique in structure.cliques]
    cliques = [" x ".join(clique) for clique in structure.cliques if not any(set(clique) < other for other in inside)]
    hidden = len(cliques) - _MAX_ROWS_SHOWN
    more = f", and {hidden} more (dpgm report lists all)" if hidden > 0 else ""
    by = "" if selector is None else f" by {selector}"
    of = f" of {len(sessions)} sessions" if len(sessions) > 1 else ""
    print_out(f"chosen:  {_several(len(cliques), 'clique')}{by} in {_several(len(steps), 'step')}{of}")
    print_out(f"         {', '.join(cliques[:_MAX_ROWS_SHOWN])}{more}")
    for note in notes:
        print_out(f"note:    {note}")
    merged = [f"{name} ({len(codes)} as {max(codes) + 1})" for name, codes in merges_of(sessions).items()]
    if merged:
        print_out(f"merged:  labels too rare to be told from noise, as one in larger tables: {', '.join(merged)}")
    if verbose:
        rows = [[number, *_step_row(step)] for number, step in enumerate(steps, start=1)]
        print_table(["step", "what", "of", "cost", "tables"], rows)


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def count_noisy_tables(releases: Sequence[NoisyTables]) -> tuple[int, int]:
    """How many tables have more noise in a cell than records in the average one, and of how many; public facts alone.

    A table that was released more than once counts once, with the least noise; cells are those of its measurement.
    """
    from dpgm_core.releases.coarse import cells_as_drawn

    swamped: dict[tuple[Clique, ...], bool] = {}
    for release in releases:
        for group, (cells, variance), total in zip(
            release.structure.groups, cells_as_drawn(release), release.totals, strict=True
        ):
            swamped[group] = swamped.get(group, True) and variance * cells**2 > total**2
    return sum(swamped.values()), len(swamped)


def _print_margins(model: Model, level: float | None) -> None:
    """Each attribute's most likely labels, in per cent, as the model has them, with intervals if a level is given.

    What was not measured is named, and what was measured in tied tables alone.
    """
    from dpgm_core.columns.tables import MISSING
    from dpgm_core.models.standing import BY_STRUCTURE

    rows, tied = [], []
    unmeasured = set(model.unmeasured)
    for attribute in model.domain:
        if attribute.name in unmeasured:
            continue
        if model.standing(attribute.name) == BY_STRUCTURE:
            tied.append(attribute.name)
        intervals = None if level is None else model.intervals(attribute.name, level=level)
        shares = model.marginal(attribute.name) if intervals is None else intervals.estimate
        own_label = attribute.labels[attribute.unknown] == MISSING  # of which the notes of a fit speak
        if attribute.size > 1 and shares[attribute.unknown] > 0.95 and not own_label:
            print_err(
                f"dpgm: nearly all of {attribute.name!r} is {attribute.labels[attribute.unknown]!r}, where unknown "
                "values go; if that is a surprise, the file's values are not the domain's labels: see dpgm validate"
            )
        order = (
            sorted(range(attribute.size), key=lambda code: -shares[code])[:6]
            if attribute.size > 6
            else range(attribute.size)
        )
        text = ", ".join(
            f"{attribute.labels[code]}: {100 * shares[code]:.1f}%"
            + ("" if intervals is None else f" ({100 * intervals.low[code]:.1f}-{100 * intervals.high[code]:.1f})")
            for code in order
        )
        rows.append([attribute.name, text + (", ..." if attribute.size > 6 else "")])
    sure = "" if level is None else f" ({100 * level:g}% interval)"
    print_table(["attribute", f"share of records in the model{sure}"], rows[:40])
    if tied:
        print_out(f"by structure, as only tables shared with others hold them: {', '.join(tied)}")
    if unmeasured:
        print_out(unmeasured_note(model.unmeasured))
