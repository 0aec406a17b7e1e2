"""The commands `dpgm fit` and `dpgm learn`."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import astuple, evolve, frozen

from dpgm.cli.common import (
    FILE,
    check_has_records,
    explain_saved_releases,
    json_option,
    open_ledger,
    paid_command,
    print_err,
    print_json,
    print_out,
    print_remarks,
    progress_option,
    progress_shown,
    saved_files,
    settings_option,
    unexpected_number,
    warn_renamed,
)
from dpgm.cli.init import RowsAndColumns, print_started, rows_and_columns_options, start_run
from dpgm.cli.show import free_path, print_fit, records_of, reserved, save_found_domain, summary
from dpgm_core.components.builtins import INFERENCE, LEARNER
from dpgm_core.errors import DpgmError, LearningFailed, ModelFileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpgm.spec import Spec
    from dpgm_core._util.progress import Progress
    from dpgm_core.domain.domain import Domain
    from dpgm_core.learning.contract import Fit

__all__ = ["fit", "learn"]


@frozen
class _Start:
    """What is said of a file of records in place of a spec."""

    epsilon: str | None
    delta: str | None
    output: Path | None
    one_row_each: bool
    rows: RowsAndColumns

    def spec_of(self, path: Path, undo: ExitStack) -> tuple[Path, bool]:
        """Return the spec, which is written if the path is a file of records, and whether it was.

        undo: gets what removes it again.
        """
        from dpgm_core._util.files import hint_not_a_spec
        from dpgm_core.domain.domain_files import is_data

        own = (self.epsilon, self.delta, self.output, self.one_row_each)
        if not is_data(path):
            if any((*own, *astuple(self.rows))):
                raise OptionError(
                    hint_not_a_spec(path)
                    or "these options describe a file of records, such as a.csv; a spec says itself whose its rows are "
                    "and what may be spent"
                )
            return path, False
        if self.epsilon is None or self.delta is None:
            raise OptionError(
                f"{path} is a table of records: say what may be spent on it, as in --epsilon 1 --delta 1e-6, delta far "
                f"below 1 in the number of people; or write a spec with: dpgm init {path}"
            )
        if (self.rows.person is None) is not self.one_row_each and not self.rows.ask:
            raise OptionError(
                "say whose the rows are: --person COLUMN with --rows-per-person, or --one-row-each where each row is "
                "another person, or --ask"
            )
        budget = {"epsilon": self.epsilon, "delta": self.delta}
        return start_run(path, self.output, evolve(self.rows, private=True), budget, undo), True


def _start_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a run on a file of records, which the function gets as `start`."""

    @wraps(function)
    def collected(*arguments: object, **named: Any) -> None:
        parts = {key: named.pop(key) for key in ("epsilon", "delta", "output", "one_row_each", "rows")}
        function(*arguments, start=_Start(**parts), **named)

    each = "Each row is another person."
    options = [
        click.option("--epsilon", help="What may be spent on a file of records, such as 1 or 0.5."),
        click.option("--delta", help="Its delta, far below 1 / number of people, such as 1e-9."),
        click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Folder to write."),
        click.option("--one-row-each", is_flag=True, help=each),
    ]
    decorated = rows_and_columns_options(collected)
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@paid_command
@_start_options
def fit(
    obj: dict[str, bool],
    spec: Path,
    settings: tuple[str, ...],
    validated: Path | None,
    again: bool,
    as_json: bool,
    start: _Start,
) -> None:
    """Fit a model as SPEC (a TOML file) says, and print its file, the budget spent and the budget left.

    SPEC may be a file of records, a.csv, with --epsilon, --delta and --person or --one-row-each: then types, ranges and
    labels are found from the records, for a twentieth of the budget; a spec, a domain with what was found, a model and
    synthetic records are written to a folder of its name.

    If an earlier run of this name was killed, or failed after its charge, and its release was saved, nothing is charged
    and the message says how to continue.
    """
    from dpgm.cli.records import check_output
    from dpgm.cli.sample import draw_like, synthetic_file
    from dpgm.related import data_files
    from dpgm.spec import load_spec

    with ExitStack() as undo:
        spec, started = start.spec_of(spec, undo)
        run = load_spec(spec, settings, validated)
        check_has_records(run)
        if started:
            check_output(synthetic_file(spec, run.name))
        with reserved(run, again=again) as (saved, path), open_ledger(run) as ledger, progress_shown() as progress:
            undo.pop_all()  # from here on the run may be charged
            if started:
                print_started(spec, run)
            print_remarks(run)
            with explain_saved_releases():
                done = run.to_run(ledger=ledger, save_release=saved, progress=progress).fit()
                if run.terms.related is not None:  # samples are named as their data
                    files = data_files(run.data)
                    done = evolve(done, model=done.model.noted(done.model.provenance.get("notes", ()), **files))
                path = _save(done, path, None if ledger is None else ledger.path)
                found = save_found_domain(done.model, path)
            warn_renamed(run, saved, done.releases)
            left = None if ledger is None else ledger.remaining()
            if run.intervals is not None:
                done = _with_replicates(done, path, run, progress)
    unexpected = (*unexpected_number(run, done.releases), *_left_out_rules(run.domain, done.model.domain))
    files = {} if found is None else {"domain": found}
    if started:
        try:
            files["synthetic"] = draw_like(done.model, _count_of(done), spec, run.name)
        except DpgmError as error:  # the model is there
            print_err(f"dpgm: no synthetic records: {error}")
    if as_json:
        facts = summary(done, path, saved_files(done.releases), left, (*run.remarks, *unexpected))
        print_json({**facts, **{what: str(file) for what, file in files.items()}})
        return
    for note in unexpected:
        print_err(f"dpgm: {note}")
    level = None if run.intervals is None else run.intervals.level
    print_fit(done, path, saved_files(done.releases), left, verbose=obj["verbose"], level=level)
    for what, file in files.items():
        print_out(f"{what}: {file}")
    if found is not None and not started:
        _print_sample_command(done, path, spec)


@click.command()
@click.argument("release_files", metavar="RELEASE...", nargs=-1, required=True, type=FILE)
@click.option("--learner", default=LEARNER, show_default=True, help="Name of the learner.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference.")
@click.option("--conversion-delta", metavar="DELTA", help="Delta that converts rho, for releases of both kinds.")
@click.option("-o", "--output", type=FILE, help="Model file to write.")
@settings_option
@json_option
@progress_option
@click.pass_obj
def learn(
    obj: dict[str, bool],
    release_files: tuple[Path, ...],
    learner: str,
    inference: str,
    conversion_delta: str | None,
    output: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Learn a model from saved releases. This costs no budget. --set takes learner.KEY and inference.KEY.

    A domain that was found from the records is written too.

    Give several files in the order of their release. A learner of one release gets the mean of each table, weighted by
    the inverse variance of the noise.
    """
    from dpgm.spec import parse_setting
    from dpgm_core._util.files import MODEL_FILE, check_writable
    from dpgm_core.pipeline.run import learn as learn_release
    from dpgm_core.releases.release_file import load_release

    parts: dict[str, dict[str, Any]] = {"learner": {"name": learner}, "inference": {"name": inference}}
    for setting in settings:
        keys, value = parse_setting(setting)
        if len(keys) != 2 or keys[0] not in parts:
            raise OptionError(f"setting {setting!r}: here it must start with learner. or inference.")
        parts[keys[0]][keys[1]] = value
    noisy = [load_release(file) for file in release_files]
    first = release_files[0]
    stem = first.name.removesuffix(".dpgm").removesuffix(".release")
    path = output or free_path(first.with_name(f"{stem}.{learner}.dpgm"))
    if path.exists() and any(path.samefile(file) for file in release_files):
        raise OptionError(f"--output {path} is the release itself; name another file")
    check_writable(path, MODEL_FILE)
    if path.exists():
        print_err(f"dpgm: {path} is a model, which will be replaced")
    with progress_shown() as progress:
        done = learn_release(
            noisy, parts["learner"], parts["inference"], progress=progress, conversion_delta=conversion_delta
        )
    done.model.save(path)
    found = save_found_domain(done.model, path)
    if as_json:
        print_json({**summary(done, path, release_files, None), **({} if found is None else {"domain": str(found)})})
        return
    print_fit(done, path, release_files, None, verbose=obj["verbose"], learned_again=True)
    if found is not None:
        print_out(f"domain: {found}")
        _print_sample_command(done, path, None)


def _print_sample_command(done: Fit, path: Path, spec: Path | None) -> None:
    """Print how to draw what a fit of a file of records draws by itself. spec: None where it is not known."""
    from dpgm.cli.sample import synthetic_file

    file = synthetic_file(path, path.name.removesuffix(".dpgm"))
    words = ["dpgm", "sample", str(path), "-n", str(_count_of(done)), "-o", str(file)]
    words += [] if spec is None else ["--dialect", str(spec)]
    more = "; add --dialect SPEC to have them written as the data of that spec" if spec is None else ""
    print_err(f"dpgm: synthetic records are drawn with: {shlex.join(words)}{more}")


def _count_of(done: Fit) -> int:
    return max(1, round(records_of(done)))


def _left_out_rules(stated: Domain, modelled: Domain) -> list[str]:
    """Return a note on constraints that do not apply to the labels that were found."""
    kept = {one.name for one in modelled.constraints}
    gone = [one.name for one in stated.constraints if one.name not in kept]
    listed = ", ".join(map(repr, gone[:4])) + (", ..." if len(gone) > 4 else "")
    words = f"constraint {listed} does not apply to the labels that were found, and is left out"
    return [words] if gone else []


def _save(done: Fit, path: Path, ledger: Path | None) -> Path:
    """Save the model and return its path. If no folder can be written, the fit failed, but its release is paid for."""
    from dpgm_core.releases.saving import save_elsewhere

    try:
        done.model.save(path)
    except ModelFileError as error:
        try:
            path = save_elsewhere(path, error, ledger, done.model.save)
        except ModelFileError as nowhere:
            raise LearningFailed(f"the model is learned but not saved: {nowhere}", releases=done.releases) from error
        print_err(f"dpgm: WARNING: {error}; the model is saved as {path}, which only you can read")
    return path


def _with_replicates(done: Fit, path: Path, run: Spec, progress: Progress) -> Fit:
    """Add error bars to a fit that is paid for and saved; if that fails, return the fit unchanged."""
    from dpgm_core._util.randomness import SeededRandomness
    from dpgm_core.learning.bootstrap import bootstrap

    assert run.intervals is not None
    seeded = None if run.seed is None else SeededRandomness(run.seed)
    try:
        model = bootstrap(done.model, run.intervals.replicates, randomness=seeded, progress=progress)
        model.save(path)
    except DpgmError as error:
        print_err(f"dpgm: no intervals: {error}")
        return done
    return evolve(done, model=model)
