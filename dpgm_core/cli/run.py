"""What the commands that pay have in common: their ledger, what they remark, and what they keep where they fail."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpgm_core.cli.common import print_err

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dpgm_core.ledger.ledger import Ledger
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.spec import Spec

__all__ = [
    "learn_again",
    "open_ledger",
    "releases_of",
    "saved_files",
    "warn_moved",
    "check_has_records",
    "print_remarks",
    "warn_renamed",
    "selector_of",
    "explain_kept_releases",
    "unexpected_number",
]


def selector_of(run: Spec) -> str | None:
    """The name of what chooses the structure of a run; None where its cliques are named."""
    return run.selector if run.selector is None or isinstance(run.selector, str) else str(run.selector["name"])


def saved_files(releases: Sequence[NoisyTables]) -> list[Path]:
    """The files of the releases of a run."""
    return [one.saved_as for one in releases if one.saved_as is not None]


def releases_of(error: BaseException) -> Sequence[NoisyTables]:
    """What was released before a run failed; of an interrupt the cause knows."""
    from dpgm_core.errors import LearningFailed

    return next((one.releases for one in (error, error.__cause__) if isinstance(one, LearningFailed)), ())


@contextmanager
def explain_kept_releases() -> Iterator[None]:
    """Where what is done inside fails after a charge, say how to learn from what was saved."""
    from dpgm_core.errors import LearningFailed

    try:
        yield
    except BaseException as error:
        paid = releases_of(error)
        warn_moved(paid)
        files = saved_files(paid)
        if files:
            print_err(f"dpgm: {learn_again(files, saved_files([one for one in paid if one.holdout]))}")
        elif isinstance(error.__cause__, LearningFailed) and error.__cause__.discovery is not None:
            print_err(f"dpgm: {error.__cause__}")
        raise


def learn_again(files: Sequence[Path], holdouts: Sequence[Path]) -> str:
    """What is kept of a run that failed; the release of a holdout goes along with what is learned from."""
    learned = [file for file in files if file not in holdouts]
    what = "the release is paid for and saved; learn from it"
    if len(learned) > 1:
        what = f"{len(learned)} releases are paid for and saved, the last as {learned[-1]}; learn from one"
    return f"{what} with: dpgm learn {shlex.join(str(file) for file in [*learned[:1], *holdouts])}"


def warn_renamed(run: Spec, planned: Path, releases: Sequence[NoisyTables]) -> None:
    """Tell of a release that is not where it was to be, or whose name has a number."""
    files = saved_files(releases)
    warn_moved(releases)
    if not planned.name.startswith(f"{run.name}.release."):
        print_err(
            f"dpgm: {run.name}.dpgm is there from an earlier run, or its release is; what was paid for is never "
            f"replaced, so these files are {planned.name.removesuffix('.release.dpgm')}"
        )
    if files and planned not in files and releases[0].save_error is None:
        print_err(f"dpgm: another process wrote {planned} during the run, so the release was saved as {files[0]}")


def warn_moved(releases: Sequence[NoisyTables]) -> None:
    """Tell of a release that had to be saved in another folder."""
    for one in releases:
        if one.save_error is not None and one.saved_as is not None:
            print_err(
                f"dpgm: WARNING: {one.save_error}; the release is saved as {one.saved_as}, which only you can read; "
                "move it to where it is safe"
            )


def unexpected_number(run: Spec, releases: Sequence[NoisyTables]) -> list[str]:
    """A sentence where the releases of a run have another number of records than its spec expects; mostly none."""
    from dpgm_core.releases.totals import far_from

    return [] if run.records is None else far_from(run.records, releases)


def check_has_records(run: Spec) -> None:
    """Refuse a CSV file that ends with its header, before anything is charged.

    This tells the file from its neighbour with one record under add-remove, so sources themselves treat both alike. The
    size of an input file is not hidden (docs/privacy.md), and whoever runs a spec on such a file has named a wrong one.
    """
    from dpgm_core.curator.shield import redact_source_errors
    from dpgm_core.errors import DataError
    from dpgm_core.sources import as_source
    from dpgm_core.sources.csv import CsvSource

    source = as_source(run.data)
    cliques = run.domain.names if run.structure is None else [name for one in run.structure.cliques for name in one]
    columns = run.workload.attributes if run.workload is not None else cliques
    if isinstance(source, CsvSource) and redact_source_errors(source, lambda: source.has_header_alone(columns)):
        raise DataError(f"{source.path} has no record behind the line that names its columns; nothing was charged")


def print_remarks(run: Spec) -> None:
    """What the owner should know of before a release."""
    from dpgm_core.foresight.plans import delta_note
    from dpgm_core.releases.discovery import load_discovery

    for remark in run.remarks:
        print_err(f"dpgm: {remark}")
    note = delta_note(run.budget, run.expected_records)
    if note:
        print_err(f"dpgm: {note}")
    if run.labels_from is not None and run.ledger is not None and not load_discovery(run.labels_from).is_identified:
        print_err(
            f"dpgm: {run.labels_from} was written before ledgers had identities: that this ledger paid for its labels "
            "is checked by the ledger's name and the number and cost of the charge alone"
        )
    if run.seed is not None:
        print_err("dpgm: a seed is set: this is a simulation, and everything it writes is stamped private = false")


@contextmanager
def open_ledger(run: Spec) -> Iterator[Ledger | None]:
    """The ledger of a run, made if the spec says so and nothing else is wrong; None, which is said, without one."""
    from dpgm_core.errors import BudgetError, Overspent
    from dpgm_core.ledger.ledger import Ledger

    if run.ledger is None:
        print_err("dpgm: no [ledger] in the spec, so nothing records what these people's data have cost so far")
        yield None
        return
    if run.ledger.create and not run.ledger.path.exists():
        _check_before_creating(run)
        assert run.ledger.budget is not None  # checked by the spec
        try:
            Ledger.create(
                run.ledger.path,
                name=run.name,
                budget=run.ledger.budget,
                neighbours=run.terms.neighbours,
                unit=run.terms.unit,
                person=run.terms.person,
                rows_per_person=run.terms.rows_per_person,
            )
            print_err(f"dpgm: created ledger {run.ledger.path} with {run.ledger.budget}")
        except BudgetError:
            if not run.ledger.path.exists():
                raise  # else another run made it meanwhile; its terms are checked like those of any that exists
    ledger = Ledger.open(run.ledger.path)
    try:
        yield ledger
    except Overspent as error:
        try:
            ledger.check(run.budget)  # is it the ledger that is spent, or did the learner ask for more than its budget?
        except Overspent:
            if run.ledger.when_spent is not None:
                raise Overspent(f"{error}; the spec says of {run.ledger.path}: {run.ledger.when_spent}") from None
        raise


def _check_before_creating(run: Spec) -> None:
    """Refuse what can be refused without the records before a ledger appears for nothing."""
    from dpgm_core.errors import Overspent

    whole = None if run.ledger is None else run.ledger.budget
    if whole is not None and whole.kind == run.budget.kind and not run.budget <= whole:
        raise Overspent(f"{run.budget} was asked, but the ledger to be created holds only {whole}; ask for less")
    run.to_run().check()
