"""Printing of results, and names of output files."""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from dpgm.cli.column_notes import TEXTS_NOTE, missing_notes, unknown_notes, wide_bins_note
from dpgm.cli.common import print_err, print_evidence_bins, print_json, print_out, print_table, stamp, unmeasured_note
from dpgm_core.errors import DpgmError, InferenceError, ModelFileError, OptionError, TooLarge, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpgm.comparison.values import Comparison, Difference, Gap, Pair
    from dpgm.spec import Spec
    from dpgm_core._util.arrays import FloatArray
    from dpgm_core.domain.attribute import Attribute
    from dpgm_core.domain.domain import Domain
    from dpgm_core.learning.contract import Fit
    from dpgm_core.models.model import Model
    from dpgm_core.privacy.budget import Budget
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.releases.session import Step
    from dpgm_core.structure.graphs import Clique
    from dpgm_core.structure.structure import Structure

__all__ = [
    "STATISTICS",
    "count_noisy_tables",
    "free_path",
    "print_chosen",
    "print_comparison",
    "print_fit",
    "print_labels",
    "print_statistics",
    "reserved",
    "summary",
]


# --- Fits ---

#: Cliques that are spelled out on the screen.
_MAX_NAMES_SHOWN = 20


def summary(done: Fit, path: Path, saved: Sequence[Path], left: Any, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """A fit as plain values, for `--json`. saved: the files of its releases. remarks: those of its spec."""
    from dpgm_core.models.findings import measure_findings
    from dpgm_core.releases.session import labels_facts, session_facts, stamp_of

    surest, cost, chosen = _most_precise(done), _cost_of(done), session_facts(done.model.releases)
    return {
        "model": str(path),
        "release": str(saved[0]),
        "releases": [str(file) for file in saved],
        "spent": cost.to_dict(),
        "left": None if left is None else left.to_dict(),
        "records": {"total": _records_counted(surest), "policy": surest.total_policy},
        "converged": done.converged,
        "replicates": len(done.model.replicates),
        "certificate": dict(done.certificate),
        "notes": [*remarks, *done.notes, *filter(None, [wide_bins_note(done.model)])],
        "unmeasured": list(done.model.unmeasured),
        "misfit": _misfit(done.model),
        "structure_error": _structure_error(done.model),
        "findings": None if (findings := measure_findings(done.model)) is None else findings.to_dict(),
        "structure": [list(clique) for clique in done.model.observed.cliques],
        **(
            {"selector": _selector(done.model), "rounds": _selection_record(done.model).get("trace", [])}
            if chosen
            else {}
        ),
        **chosen,
        **labels_facts(done.model.releases),
        **stamp_of(done.model.releases, done.model.guarantee()),
    }


def save_found_domain(model: Model, path: Path) -> Path | None:
    """Save the domain of a model beside its file, for later runs; return None if no column of any type was found."""
    from dpgm_core._util.files import atomic_write
    from dpgm_core._util.toml import domain_toml
    from dpgm_core.releases.release import discoveries

    found = [one for one in discoveries(model.releases) if one.described is not None]
    if not found:
        return None
    names = ", ".join(name for one in found for name in one.attributes)
    notes = {name: note for one in found if one.described for name, note in missing_notes(one.described).items()}
    head = (
        f"Types, ranges and labels of {names} were found from the records, for {found[0].cost}. They may be published "
        "as the model may, and are no knowledge from outside: what a later run over them promises holds together "
        "with this cost, which the ledger adds up. Naming this file costs nothing more; finding them again does. Here "
        f"{TEXTS_NOTE}."
    )
    plain = model.domain.to_dict()
    file = path.with_name(f"{path.name.removesuffix('.dpgm')}.domain.toml")
    text = domain_toml(plain["attributes"], notes, {}, constraints=plain.get("constraints", {}), head=head).encode()
    with suppress(OSError):
        if file.is_file() and file.read_bytes() == text:
            return file
    file = free_path(file)
    atomic_write(file, text)
    return file


def print_labels(releases: Sequence[NoisyTables]) -> None:
    """Print the labels found in each open column, a line each."""
    from dpgm_core.domain.bins import PrivateLabels
    from dpgm_core.releases.release import discoveries

    for discovery in discoveries(releases):
        for one in discovery.columns:
            shown = ", ".join(one.labels[:_MAX_NAMES_SHOWN]) + (", ..." if len(one.labels) > _MAX_NAMES_SHOWN else "")
            about = f"{_plural(len(one.labels), 'label')} found for {one.budget}, each of about "
            about += f"{one.noise.threshold:,} persons or more"
            print_out(f"labels:  {one.column}: {about}{': ' if shown else '; all its values are one label'}{shown}")
        if discovery.described is not None:
            columns, cost = _plural(len(discovery.attributes), "column"), discovery.described.budget
            least = f"each label of about {discovery.described.noise.threshold:,} persons or more"
            privates = [one.declared.private for one in discovery.described.columns]
            most = max(private.keep for private in privates if isinstance(private, PrivateLabels))
            least += f", at most {most} of a column"
            print_out(f"found:   types, ranges and labels of {columns} for {cost} alone, {least}")
            for name, attribute in discovery.attributes.items():
                kind = "labels" if attribute.edges is None else f"bins, {attribute.values.kind}"
                some = ", ".join(attribute.labels[:_MAX_NAMES_SHOWN])
                more = ", ..." if attribute.size > _MAX_NAMES_SHOWN else ""
                print_out(f"         {name}: {attribute.size} {kind}: {some}{more}")
            for name, note in missing_notes(discovery.described).items():
                print_out(f"         {name}: {note}")
            if any(attribute.edges is not None for attribute in discovery.attributes.values()):
                print_out(f"         {TEXTS_NOTE}")


def _selector(model: Model) -> str | None:
    """Return the name of the selector; None if cliques were named, or a release was learned from later."""
    return dict(model.provenance.get("selector") or {}).get("name")


def _selection_record(model: Model) -> dict[str, Any]:
    """Return the selector's trace and notes, if the model has them."""
    return dict(model.provenance.get("selection") or {})


def _step_row(step: Step) -> list[object]:
    """Return a step as a row of a table."""
    from dpgm_core.releases.session import step_facts

    facts = step_facts(step)
    tables = [" x ".join(clique) for clique in facts["cliques"]]
    more = f", and {len(tables) - _MAX_NAMES_SHOWN} more" if len(tables) > _MAX_NAMES_SHOWN else ""
    return [facts["kind"], facts.get("candidates", "-"), step.cost, ", ".join(tables[:_MAX_NAMES_SHOWN]) + more]


def _misfit(model: Model) -> list[dict[str, Any]]:
    """Return the distance of each table from the model; empty if exact answers do not fit in memory."""
    try:
        return [{"table": list(clique), "standard_errors": score} for clique, score in model.misfit().items()]
    except (TooLarge, InferenceError):
        return []


def _structure_error(model: Model) -> dict[str, float] | None:
    """Return the error of the structure, as total variation; None without a holdout."""
    with suppress(TooLarge, InferenceError):
        if model.checked:
            error = model.structure_error()
            ends = {"low": float(error.low), "high": float(error.high)}
            return {"tv": float(error.estimate), **ends, "level": error.level}
    return None


def _cost_of(done: Fit) -> Budget:
    assert done.model.cost is not None  # `run` refuses a fit to nothing
    return done.model.cost


def _most_precise(done: Fit) -> NoisyTables:
    """Return the release with the most precise number of records."""
    from dpgm_core.releases.totals import counted

    # All in one where they were pooled: it is surer than each.
    return min(done.model.seen, key=lambda one: counted(one)[1])


def records_of(done: Fit) -> float:
    """Return the number of records behind a fit."""
    return _records_counted(_most_precise(done))


def _records_counted(release: NoisyTables) -> float:
    """Return the number of records behind a release."""
    from dpgm_core.releases.totals import counted

    return counted(release)[0]


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
    """Print a fit for people: files, cost, structure if it was chosen, margins, guarantee."""
    from dpgm_core.learning.learner_run import goodness_of_fit
    from dpgm_core.models.within_bins import end_bin_note, one_bin_note
    from dpgm_core.releases.session import caveats_of, sessions_of
    from dpgm_core.releases.totals import contradictions

    stamp(path, caveats_of(done.model.releases))
    surest, cost = _most_precise(done), _cost_of(done)
    print_out(f"model:   {path}")
    for file in saved:
        print_out(f"release: {file}")
    paid = "" if learned_again else "" if left is None else f"; left in the ledger: {left}"
    print_out(("paid before: " if learned_again else "spent:   ") + f"{cost}{paid}")
    print_labels(done.model.releases)
    if sessions_of(done.model.releases):
        print_chosen(
            done.model.observed,
            done.model.releases,
            verbose=verbose,
            selector=_selector(done.model),
            notes=_selection_record(done.model).get("notes", []),
        )
    what = "records: " if surest.contributions is None else "persons: "
    if done.model.related is not None:
        what = "roots:   "
    print_out(f"{what}{_records_counted(surest):,.0f} ({surest.total_policy})")
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
    selection_notes = _selection_record(done.model).get("notes", [])
    for note in done.notes if verbose or not done.converged else contradictions(done.releases):
        if note not in selection_notes:  # they stand beside the structure
            print_err(f"note: {note}")
    print_out()
    tables: Sequence[tuple[Attribute, FloatArray]] = ()
    try:
        tables = _print_margins(done.model, level if done.model.replicates else None)
    except TooLarge:
        print_out("exact answers do not fit in memory; ask with: dpgm query --inference loopy-bp")
    swamped, count = count_noisy_tables(done.model.seen)
    if swamped:
        print_err(
            f"dpgm: the noise is larger than the average cell in {swamped} of {count} tables, so finer "
            "detail there is noise; use fewer or smaller tables, or more budget"
        )
    for note in filter(None, [wide_bins_note(done.model), one_bin_note(tables), end_bin_note(tables)]):
        print_err(f"dpgm: {note}")
    _print_findings(done.model)
    print_out()
    print_out(done.model.guarantee())


def _print_findings(model: Model) -> None:
    """Print what the releases tell apart from noise, and how exact shares are."""
    from dpgm_core.models.findings import measure_findings

    findings = measure_findings(model)
    if findings is not None:
        print_out()
        print_out(f"verdict: {findings.colour}, {findings.verdict}")
        for sentence in findings.sentences():
            print_out(f"         {sentence}")


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
    from dpgm_core.releases.session import bins_of, merges_of, sessions_of

    sessions = sessions_of(releases)
    for bins in bins_of(sessions):
        count, attribute = len(bins.edges) - 1, bins.attribute
        if attribute.values.is_temporal:
            at = list(attribute.labels[:count])
        else:
            at = [f"{edge:g}" for edge in bins.edges]
        shown = ", ".join(at if len(at) <= _MAX_NAMES_SHOWN else [*at[: _MAX_NAMES_SHOWN - 1], "...", at[-1]])
        print_out(f"bins:    {bins.name} in {_plural(count, 'bin')} found for {bins.cost}, at {shown}")
    if all(one.session is not None and one.session.named for one in sessions):
        return
    steps = [step for one in sessions for step in one.steps]
    inside = [set(clique) for clique in structure.cliques]
    cliques = [" x ".join(clique) for clique in structure.cliques if not any(set(clique) < other for other in inside)]
    hidden = len(cliques) - _MAX_NAMES_SHOWN
    more = f", and {hidden} more (dpgm report lists all)" if hidden > 0 else ""
    by = "" if selector is None else f" by {selector}"
    of = f" of {len(sessions)} sessions" if len(sessions) > 1 else ""
    print_out(f"chosen:  {_plural(len(cliques), 'clique')}{by} in {_plural(len(steps), 'step')}{of}")
    print_out(f"         {', '.join(cliques[:_MAX_NAMES_SHOWN])}{more}")
    for note in notes:
        print_out(f"note:    {note}")
    merged = [f"{name} ({len(codes)} as {max(codes) + 1})" for name, codes in merges_of(sessions).items()]
    if merged:
        print_out(f"merged:  labels too rare, or bins too fine, for the noise of larger tables: {', '.join(merged)}")
    if verbose:
        rows = [[number, *_step_row(step)] for number, step in enumerate(steps, start=1)]
        print_table(["step", "what", "of", "cost", "tables"], rows)


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def count_noisy_tables(releases: Sequence[NoisyTables]) -> tuple[int, int]:
    """Return how many tables have more noise in a cell than records in the average one, and the number of tables.

    Uses public facts alone. A table that was released more than once counts once, with the least noise; cells are those
    of its measurement.
    """
    from dpgm_core.releases.views import cells_as_drawn

    swamped: dict[tuple[Clique, ...], bool] = {}
    for release in releases:
        for group, (cells, variance), total in zip(
            release.structure.groups, cells_as_drawn(release), release.totals, strict=True
        ):
            swamped[group] = swamped.get(group, True) and variance * cells**2 > total**2
    return sum(swamped.values()), len(swamped)


def _print_margins(model: Model, level: float | None) -> list[tuple[Attribute, FloatArray]]:
    """Each attribute's most likely labels, in per cent, as the model has them, with intervals if a level is given.

    What was not measured is named, and what was measured in tied tables alone. Returns the shares.
    """
    from dpgm.related import answering, lacks_size, unanswered
    from dpgm_core.models.queries import BY_STRUCTURE
    from dpgm_core.releases.release import discoveries

    if lacks_size(model):
        print_out(
            "WARNING: no table that was measured holds 'size', the number of children, so the model neither answers "
            "nor samples; its release stays: release tables that hold size too, and learn from both"
        )
        return []
    rows: list[list[str]] = []
    tied: list[str] = []
    tables: list[tuple[Attribute, FloatArray]] = []
    unmeasured = unanswered(model)
    answers = answering(model)
    for attribute in answers.domain:
        if attribute.name in unmeasured:
            continue
        if answers.standing(attribute.name) == BY_STRUCTURE:
            tied.append(attribute.name)
        intervals = None if level is None else answers.intervals(attribute.name, level=level)
        shares = answers.marginal(attribute.name) if intervals is None else intervals.estimate
        tables.append((attribute, shares))
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
    searched = {name for one in discoveries(model.releases) for name in one.names}
    for note in unknown_notes(tables, searched):
        print_err(f"dpgm: {note}")
    sure = "" if level is None else f" ({100 * level:g}% interval)"
    print_table(["attribute", f"share of records in the model{sure}"], rows[:40])
    if tied:
        why = "only tables shared with others hold them" if model.related is None else "no table holds them with size"
        print_out(f"by structure, as {why}: {', '.join(tied)}")
    if unmeasured:
        print_out(unmeasured_note(unmeasured))
    return tables


# --- Names of output files ---

_MAX_MARKER_BYTES = 2**16  # bytes of a marker
_MARKER_KEY = "name="  # begins the line of a marker that says whose it is


@contextmanager
def reserved(run: Spec, *, again: bool = False) -> Iterator[tuple[Path, Path]]:
    """Files for the release and the model that nobody has, not even a run of the same spec at the same time.

    A paid release is never overwritten: names are numbered, and one is held by a locked marker file while the run
    lasts. The marker of a run that failed after it had saved something stays, as does that of one that was killed; as
    long as no model of its name is there, that run is unfinished. Raises OptionError, unless `again`, where the output
    folder has an unfinished run of this name; ModelFileError where nothing can be written.
    """
    from dpgm.cli.common import releases_of, saved_files
    from dpgm_core._util.files import make_folder

    left: list[_Names] = []
    with ExitStack() as stack:
        try:
            stack.enter_context(make_folder(run.output))
            left = unfinished_runs(run)
            names, lock = _reserve_names(run, left)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ModelFileError(f"cannot write to the output folder {run.output}: {reason}") from None
        stack.callback(os.close, lock)
        try:
            asking = [one for one in left if not one.goes_on_as(run)]
            if asking and not again:
                raise OptionError(unfinished_text(run, asking))
            yield names.release, names.model
        except BaseException as error:
            files = [*saved_files(releases_of(error)), *names.saved]
            if files:
                with suppress(OSError):
                    names.marker.write_text(
                        "".join(f"{line}\n" for line in [_MARKER_KEY + run.name, *map(Path.absolute, files)])
                    )
            else:
                names.clear()
            raise
        for one in (names, *left):  # the owner was told of the others, or has gone on with them
            one.clear()


class _Names:
    """The files of one run. stem: its name with its number."""

    def __init__(self, run: Spec, stem: str) -> None:
        from dpgm_core.releases.labels import labels_file

        folder = run.output
        self.folder, self.stem, self.ledger = folder, stem, run.ledger
        self.marker, self.model = folder / f".{stem}.reserved", folder / f"{stem}.dpgm"
        self.release = folder / f"{stem}.release.dpgm"
        self.labels = labels_file(self.release)

    @property
    def saved(self) -> list[Path]:
        """Files of its releases, the first one first, or the file of its labels if there is no release."""
        start = f"{self.stem}.release"
        releases = [one for one in self._files() if one.name.startswith((f"{start}.", f"{start}-"))]
        labels = [self.labels] if os.path.lexists(self.labels) else []
        return sorted(releases, key=lambda one: (len(one.name), one.name)) or labels

    @property
    def is_taken(self) -> bool:
        """Whether another file, or a ledger still to be created, has one of its names."""
        ledger = None if self.ledger is None else os.path.realpath(self.ledger.path)
        files = (self.release, self.model, self.labels)
        return any(os.path.lexists(file) or os.path.realpath(file) == ledger for file in files)

    def clear(self) -> None:
        """Remove the marker, and what `clear_parts` removes."""
        self.clear_parts()
        _remove(self.marker)

    def clear_parts(self) -> None:
        """Remove hidden temporary files of a killed run."""
        from dpgm_core._util.files import find_parts, numbered_path

        for file in (self.model, self.labels, self.release, numbered_path(self.release, 2)):
            for part in find_parts(file):
                _remove(part)

    def _said(self) -> list[str]:
        """The lines of the marker; none where it cannot be read."""
        with suppress(OSError, ValueError):
            return self.marker.read_bytes()[:_MAX_MARKER_BYTES].decode().splitlines()
        return []

    def is_of(self, run: Spec) -> bool:
        """Return whether the marker belongs to a run of this name; another run may be named like this one's second."""
        said = self._said()
        return not said or not said[0].startswith(_MARKER_KEY) or said[0] == _MARKER_KEY + run.name

    def left(self) -> list[Path]:
        """Return the saved files that a finished run has paid for, by its files and its marker; none with a model."""
        saved = self.saved
        if any(one.name.startswith(f"{self.stem}.") and one not in saved for one in self._files()):
            return []
        said = [Path(line) for line in self._said() if not line.startswith(_MARKER_KEY)]
        return saved + [one for one in said if os.path.lexists(one) and one not in [*map(Path.absolute, saved)]]

    def goes_on_as(self, run: Spec) -> bool:
        """Return whether a run continues from the labels that are all that this one saved."""
        return run.labels_from is not None and self.saved == [self.labels] == [_same(self.labels, run.labels_from)]

    def _files(self) -> list[Path]:
        with suppress(OSError):  # it may be what failed
            return [one for one in self.folder.iterdir() if one.name.endswith(".dpgm")]
        return []


def _same(one: Path, other: Path) -> Path | None:
    """Return the first path if both are one file."""
    with suppress(OSError):
        return one if one.samefile(other) else None
    return None


def is_under_way(run: Spec) -> bool:
    """Return whether another process has the first files of this name."""
    marker = _Names(run, run.name).marker
    lock = _lock(marker, create=False)
    if lock is not None:
        os.close(lock)
    return lock is None and os.path.lexists(marker)


def unfinished_runs(run: Spec) -> list[_Names]:
    """Return the unfinished runs of this name, whatever their number; remove markers without content."""
    pattern = re.compile(rf"\.({re.escape(run.name)}(?:-([0-9]{{1,9}}))?)\.reserved")
    markers = [match for marker in run.output.iterdir() if (match := pattern.fullmatch(marker.name))]
    left = []
    for match in sorted(markers, key=lambda marker: int(marker[2] or 1)):
        names = _Names(run, match[1])
        lock = _lock(names.marker, create=False)
        if lock is None:
            continue
        if _is_same_file(names.marker, lock):  # else it finished meanwhile
            if names.left():
                left += [names] if names.is_of(run) else []
            elif names.is_taken:
                names.clear()
        os.close(lock)
    return left


def _reserve_names(run: Spec, left: Sequence[_Names]) -> tuple[_Names, int]:
    """Return the first free names, other than those of runs that are `left`, and the lock on their marker."""
    stems = {one.stem for one in left}
    for number in itertools.count(1):
        names = _Names(run, run.name if number == 1 else f"{run.name}-{number}")
        while names.stem not in stems and not names.is_taken:
            was_there = os.path.lexists(names.marker)
            lock = _lock(names.marker, create=True, was_there=was_there)
            if lock is None:
                break  # of a run that is under way
            is_held = _is_same_file(names.marker, lock)
            if is_held and not names.is_taken:
                names.clear_parts()
                names.marker.write_text(
                    f"{_MARKER_KEY}{run.name}\n"
                )  # in place of what a run that is over wrote into it
                return names, lock
            if is_held and not was_there:
                _remove(names.marker)
            os.close(lock)
    raise AssertionError


def _lock(marker: Path, *, create: bool, was_there: bool = True) -> int | None:
    """Return a descriptor of the marker, locked until it is closed or its process ends; None if another has the lock.

    Without file locks, as on some network disks, an existing marker is taken for that of a running process.
    """
    if sys.platform == "win32":
        try:
            os.close(os.open(marker, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return None
        return os.open(os.devnull, os.O_RDWR)  # an open file could not be removed
    import fcntl

    try:
        descriptor = os.open(marker, os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o666)
    except FileNotFoundError:
        return None  # it finished meanwhile
    try:
        # Runs that only look do not take each other for one that is under way.
        fcntl.flock(descriptor, (fcntl.LOCK_EX if create else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        if was_there or isinstance(error, BlockingIOError):
            os.close(descriptor)
            return None
    return descriptor


def _is_same_file(marker: Path, lock: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        return os.path.samestat(marker.lstat(), os.fstat(lock))
    except OSError:
        return False


def _remove(marker: Path) -> None:
    with suppress(OSError):
        marker.unlink()


def unfinished_text(run: Spec, left: Sequence[_Names], spec: Path | None = None) -> str:
    """Return what an earlier run has paid for, and how to continue; with a spec, by a command on it."""
    from dpgm.cli.earlier import explain_labels, repeated_command

    first = left[0]
    files = first.left()
    spent = explain_labels(run, first.labels) if files == [first.labels] else None
    if spent is not None:
        return spent
    if files == [first.labels]:
        what = f"the labels in {first.labels} are paid for, and their run of this name did not finish; go on"
        how = repeated_command(["--set", f"labels_from={first.labels.absolute()}"], spec)
    else:
        what = f"the release {files[0]} is paid for, and its run of this name did not finish; make a model of it, free,"
        how = shlex.join(["dpgm", "learn", *map(str, files), "-o", str(first.model)])
    more = f" ({len(left) - 1} more like it)" if len(left) > 1 else ""
    return f"{what} with: {how}{more}. To spend again all the same, add --again, or give another name (--set name=...)"


def free_path(path: Path) -> Path:
    """Return the path, or the first numbered one that does not exist."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


# --- Comparisons ---

_MAX_DIFFERENCES_SHOWN = 15  # rows of a table


def print_comparison(comparison: Comparison) -> None:
    """Print the subjects side by side, then each of the others against the first; caveats on stderr."""
    from dpgm.comparison.page import short_names, side_by_side

    for subject in comparison.subjects:
        stamp(Path(subject.name), subject.caveats)
    short = short_names(comparison)
    print_table(["", *short.values()], side_by_side(comparison))
    for pair in comparison.pairs:
        print_out()
        _print_pair(pair, short[pair.first], short[pair.other])
    print_out()
    print_out(comparison.privacy)


def _print_pair(pair: Pair, first: str, other: str) -> None:
    """Print the differences of a pair. first, other: their displayed names."""
    from dpgm.comparison.page import apart, shared_lines

    print_out(f"{other} against {first}")
    for line in shared_lines(pair, first, other):
        print_out(f"  {line}")
    single = [one for one in pair.differences if len(one.attributes) == 1]
    several = [one for one in pair.differences if len(one.attributes) > 1]
    for what, some in (("attribute", single), ("table", several)):
        if some:
            _print_differences(what, some)
    if pair.gaps:
        _print_gaps(pair.gaps)
    sentence = apart(pair)
    if sentence is not None:
        print_out()
        print_out(sentence)
    for note in pair.notes:
        print_out(f"note: {note}")


def _print_differences(what: str, differences: Sequence[Difference]) -> None:
    scores = any(one.score is not None for one in differences)
    rows = []
    for one in differences[:_MAX_DIFFERENCES_SHOWN]:
        score = [] if not scores else ["-" if one.score is None else f"{one.score:.1f}"]
        shares = [", ".join(one.cell.values()), f"{one.first:.2%}", f"{one.other:.2%}"]
        rows.append([" x ".join(one.attributes), f"{one.total_variation:.4f}", *score, *shares])
    print_out()
    print_table([what, "total variation", *(["score"] if scores else []), "most at", "first", "other"], rows)
    _print_rows_left_out(len(differences))


def _print_gaps(gaps: Sequence[Gap]) -> None:
    from dpgm.comparison.page import GAPS_MEAN

    rows = []
    for one in gaps[:_MAX_DIFFERENCES_SHOWN]:
        numbers = (one.deviations, one.largest, one.noise_first, one.noise_other)
        rows.append([" x ".join(one.attributes), *(f"{value:.4g}" for value in numbers)])
    print_out()
    print_table(["table", "apart (noise sds)", "furthest cell", "noise, first", "noise, other"], rows)
    _print_rows_left_out(len(gaps))
    print_out()
    print_out(GAPS_MEAN)


def _print_rows_left_out(count: int) -> None:
    if count > _MAX_DIFFERENCES_SHOWN:
        print_out(f"... {count - _MAX_DIFFERENCES_SHOWN:,} more, closer together; --json has all")


# --- Statistics ---

#: What may be asked for besides a share from 0 to 1, which is a quantile.
STATISTICS = ("mean", "sd", "median", "correlation")

#: Part of a correlation that its calibration may add where the answer is mostly measured.
_MAX_MOVED = 0.1
#: Difference to the correlation of drawn records that is noted where there is no interval.
_MIN_APART = 0.01
_RECORDS_LOSE = "{0}: drawn records have the correlation {1:.6g}, as they are independent inside bins and merged codes"


@frozen(kw_only=True)
class _Number:
    """One statistic. of: computes it from a model. placed: whether it is a position on the axis. within: its least and
    largest possible value. of_records: computes that of records drawn from a model, where it is another.
    """

    names: tuple[str, ...]
    statistic: str
    of: Callable[[Model], float]
    placed: bool
    within: tuple[float, float]
    of_records: Callable[[Model], float] | None = None


def print_statistics(
    loaded: tuple[Model, Model | None],
    model_file: Path,
    attributes: Sequence[str],
    statistics: Sequence[str],
    evidence: Mapping[str, str],
    level: float | None,
    as_json: bool,
) -> None:
    """Print a row for each statistic of each attribute or pair. loaded: the model, and one with replicates."""
    from dpgm_core.models.numeric import number_distribution, share_of
    from dpgm_core.releases.session import caveats_of, stamp_of

    model, refitted = loaded
    rows = []
    notes = []
    for number in _requested_numbers(model.domain, attributes, statistics, evidence):
        row: dict[str, Any] = {
            "attributes": list(number.names),
            "statistic": number.statistic,
            "value": number.of(model),
        }
        if refitted is not None and level is not None:
            interval = refitted.interval_of(number.of, level=level, within=number.within)
            notes += (
                [] if interval.note is None else [f"{number.statistic} of {' x '.join(number.names)}: {interval.note}"]
            )
            row |= {
                "standard_error": float(interval.standard_error),
                "low": float(interval.low),
                "high": float(interval.high),
            }
            row["undefined_replicates"] = interval.undefined
        row["standing"] = model.standing(number.names, evidence)
        if number.of_records is not None:
            if level is not None:
                row |= _corrected_interval(model, number.names, evidence, level, row["value"])
            notes += _set_of_records(row, model, number, evidence)
        row["texts"] = [_value_text(model, number, row[key]) for key in ("value", "low", "high") if key in row]
        rows.append(row)
    present = {
        name: share_of(number_distribution(model.domain[name]), model.marginal(name, evidence)) for name in attributes
    }
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        sure = {} if refitted is None else {"level": level, "replicates": len(refitted.replicates)}
        print_json({"given": dict(evidence), "with_a_number": present, **sure, "rows": rows, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    print_evidence_bins(model.domain, evidence)
    bars = [] if refitted is None else ["low", "high", "standard error"]
    cells = []
    for row in rows:
        error = [f"{row['standard_error']:.6g}"] if bars else []
        cells.append([" x ".join(row["attributes"]), row["statistic"], *row["texts"], *error, row["standing"]])
    print_table(["attribute", "statistic", "value", *bars, "standing"], cells)
    for name, share in present.items():
        if share < 1:
            print_out(f"of {name}, missing and unknown values are left out: {1 - share:.2%}")
    if bars:
        notes += ["the intervals cover sampling and noise, and not what the structure misses"]
        notes += filter(None, [model.rows_note])
    for note in notes:
        print_out(note)


def _requested_numbers(
    domain: Domain, attributes: Sequence[str], statistics: Sequence[str], evidence: Mapping[str, str]
) -> list[_Number]:
    """Return the requested statistics. Raises OptionError for an unknown one."""
    numbers = []
    for statistic in dict.fromkeys(statistics):
        if statistic == "correlation":
            if len(attributes) < 2:
                raise OptionError("a correlation is of two attributes; name both")
            numbers += [
                _correlation_of_two(one, other, evidence) for one, other in itertools.combinations(attributes, 2)
            ]
            continue
        share = 0.5 if statistic == "median" else _share_or_none(statistic)
        if share is None and statistic not in STATISTICS:
            raise OptionError(
                f"--statistic is one of {', '.join(STATISTICS)}, or a share from 0 to 1 for a quantile; got "
                f"{statistic!r}{did_you_mean(statistic, STATISTICS)}"
            )
        numbers += [_number_of_one(domain[name], statistic, share, evidence) for name in attributes]
    return numbers


def _number_of_one(attribute: Attribute, statistic: str, share: float | None, evidence: Mapping[str, str]) -> _Number:
    from dpgm_core.models.numeric import ends_of, number_distribution

    name, ends = attribute.name, ends_of(number_distribution(attribute))
    number = partial(_Number, names=(name,), statistic=statistic)
    if share is not None:
        return number(of=lambda model: model.quantile(name, share, evidence), placed=True, within=ends)
    if statistic == "mean":
        return number(of=lambda model: model.mean(name, evidence), placed=True, within=ends)
    widest = (ends[1] - ends[0]) / 2  # half of the numbers at either end
    return number(of=lambda model: math.sqrt(model.variance(name, evidence)), placed=False, within=(0.0, widest))


def _correlation_of_two(one: str, other: str, evidence: Mapping[str, str]) -> _Number:
    return _Number(
        names=(one, other),
        statistic="correlation",
        of=lambda model: model.correlation(one, other, evidence, calibrated=True),
        placed=False,
        within=(-1.0, 1.0),
        of_records=lambda model: model.correlation(one, other, evidence),
    )


def _corrected_interval(
    model: Model, names: Sequence[str], evidence: Mapping[str, str], level: float, value: float
) -> dict[str, float]:
    """Return the interval of a correlation by formula, which holds the value too; nothing where there is none.

    Replicates are as far from the model as learning moves it once more, which is less than it is from the population.
    """
    from dpgm.analysis import analyse

    try:
        found = analyse(model, f"~ `{'` + `'.join(names)}`", level=level, given=evidence)
    except DpgmError:  # without a release, from tied cliques, or for a table that is too large
        return {}
    error, (low, high) = float(found.estimates.standard_error[0]), found.ends()
    if found.pooled or not math.isfinite(error):
        return {}
    return {"standard_error": error, "low": min(float(low[0]), value), "high": max(float(high[0]), value)}


def _set_of_records(row: dict[str, Any], model: Model, number: _Number, evidence: Mapping[str, str]) -> list[str]:
    """Set the statistic of drawn records, and the standing where it is near the row's value; return a note if not."""
    from dpgm_core.models.analysis import MEASURED, MOSTLY_MEASURED

    assert number.of_records is not None
    drawn, value, coarse = number.of_records(model), row["value"], model.coarse
    row["of_records"] = drawn
    can_ask = all(coarse.domain[name] == model.domain[name] for name in evidence)
    if row["standing"] != MEASURED and can_ask and abs(value - drawn) <= _MAX_MOVED * abs(value):
        row["standing"] = MOSTLY_MEASURED if coarse.standing(number.names, evidence) == MEASURED else row["standing"]
    low, high = (row.get(key, value + side) for key, side in (("low", -_MIN_APART), ("high", _MIN_APART)))
    return [] if low <= drawn <= high else [_RECORDS_LOSE.format(" x ".join(number.names), drawn)]


def _share_or_none(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _value_text(model: Model, number: _Number, value: float) -> str:
    """Return a date or time in the format of its column, a number with six digits."""
    values = model.domain[number.names[0]].values
    if number.placed and values.is_temporal:
        return values.text(math.floor(value))
    return f"{value:.6g}"
