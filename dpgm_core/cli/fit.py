"""dpgm fit, release, learn."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm_core.cli.common import (
    json_option,
    print_json,
    progress_bar,
    records_of,
    say,
    settings_option,
    stamp,
    talk,
    unmeasured_note,
)
from dpgm_core.cli.output import free_path, reserved
from dpgm_core.cli.report import print_fit, summary
from dpgm_core.components.builtins import INFERENCE, LEARNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dpgm_core.learning.contract import Fit
    from dpgm_core.ledger.ledger import Ledger
    from dpgm_core.progress import Progress
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.spec import Spec

__all__ = ["fit", "learn", "release"]


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@json_option
@click.pass_obj
def fit(obj: dict[str, bool], spec: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Run the whole way on SPEC (a TOML file) and print where the model is, what was spent and what is left."""
    from dpgm_core.pipeline import fit as fit_records
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings)
    with reserved(run) as (saved, path), _ledger(run) as ledger, progress_bar() as progress:
        _remarks(run)
        try:
            done = fit_records(
                records_of(run),
                run.structure,
                run.budget,
                run.mechanism,
                run.learner,
                run.inference,
                save_release=saved,
                ledger=ledger,
                progress=progress,
                **_settings(run),
            )
            _save(done, path)
        except BaseException as error:
            files = _saved(_paid(error))
            if files:
                talk(f"dpgm: {_learn_again(files, _saved([one for one in _paid(error) if one.check]))}")
            raise
        _say_where(saved, done.releases)
        left = None if ledger is None else ledger.remaining()
        if run.intervals is not None:
            done = _with_replicates(done, path, run, progress)
    if as_json:
        print_json(summary(done, path, _saved(done.releases), left))
        return
    level = None if run.intervals is None else run.intervals.level
    print_fit(done, path, _saved(done.releases), left, verbose=obj["verbose"], level=level)


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@json_option
def release(spec: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Only the noisy release of SPEC, to learn from later with `dpgm learn`."""
    from dpgm_core.errors import OptionError
    from dpgm_core.pipeline import release as release_records
    from dpgm_core.releases.stamps import caveats_of, stamp_of
    from dpgm_core.releases.totals import contradictions
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings)
    if run.check:
        raise OptionError(
            f"spec {spec.name} sets a share aside for a structure check, which is part of a fit; run dpgm fit, or "
            "leave the check out with --set check.share=0"
        )
    with reserved(run) as (saved, _), _ledger(run) as ledger, progress_bar() as progress:
        _remarks(run)
        noisy = release_records(
            records_of(run),
            run.structure,
            run.budget,
            run.mechanism,
            save_release=saved,
            ledger=ledger,
            progress=progress,
            **_settings(run),
        )
        _say_where(saved, [noisy])
        left = None if ledger is None else ledger.remaining()
    if as_json:
        facts = stamp_of([noisy], noisy.guarantee())
        told = {"release": str(noisy.saved_as), "cost": noisy.cost.to_dict(), "left": left and left.to_dict()}
        print_json({**told, "unmeasured": list(noisy.structure.uncovered), **facts})
        return
    stamp(noisy.saved_as or saved, caveats_of([noisy]))
    for note in contradictions([noisy]):
        talk(f"note: {note}")
    say(f"release: {noisy.saved_as}")
    say(f"spent:   {noisy.cost}" + ("" if left is None else f"; left: {left}"))
    if noisy.structure.uncovered:
        say(unmeasured_note(noisy.structure.uncovered))
    say(noisy.guarantee())


@click.command()
@click.argument(
    "release_files", metavar="RELEASE...", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path)
)
@click.option("--learner", default=LEARNER, show_default=True, help="Name of the learner.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference.")
@click.option("--conversion-delta", metavar="DELTA", help="Where releases cost rho and epsilon: converts the rho.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Model file to write.")
@settings_option
@json_option
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
    """Learn a model from a saved RELEASE; costs no budget, however often. Settings: learner.KEY, inference.KEY.

    Several files, in the order of the releases, are one to a learner that asks for one: each table is the mean over its
    releases, weighted by how little noise they have.
    """
    from dpgm_core.errors import OptionError
    from dpgm_core.files import MODEL_FILE, check_writable
    from dpgm_core.pipeline import learn as learn_release
    from dpgm_core.releases.reading import load_release
    from dpgm_core.spec import parse_setting

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
        talk(f"dpgm: {path} is a model, which will be replaced")
    with progress_bar() as progress:
        done = learn_release(
            noisy, parts["learner"], parts["inference"], progress=progress, conversion_delta=conversion_delta
        )
    done.model.save(path)
    if as_json:
        print_json(summary(done, path, release_files, None))
        return
    print_fit(done, path, release_files, None, verbose=obj["verbose"], learned_again=True)


def _saved(releases: Sequence[NoisyTables]) -> list[Path]:
    """The files of the releases of a run."""
    return [one.saved_as for one in releases if one.saved_as is not None]


def _paid(error: BaseException) -> Sequence[NoisyTables]:
    """What was released before a run failed; of an interrupt the cause knows."""
    from dpgm_core.errors import LearningFailed

    return next((one.releases for one in (error, error.__cause__) if isinstance(one, LearningFailed)), ())


def _learn_again(files: Sequence[Path], checks: Sequence[Path]) -> str:
    """What is kept of a run that failed; the release of a structure check goes along with what is learned from."""
    learned = [file for file in files if file not in checks]
    what = "the release is paid for and saved; learn from it"
    if len(learned) > 1:
        what = f"{len(learned)} releases are paid for and saved, the last as {learned[-1]}; learn from one"
    return f"{what} with: dpgm learn {shlex.join(str(file) for file in [*learned[:1], *checks])}"


def _say_where(asked: Path, releases: Sequence[NoisyTables]) -> None:
    """Tell of a release that is not where it was to be."""
    files = _saved(releases)
    if files and asked not in files:
        talk(f"dpgm: another process wrote {asked} during the run, so the release was saved as {files[0]}")


def _save(done: Fit, path: Path) -> None:
    """A model that cannot be written is work that failed: its release is paid for."""
    from dpgm_core.errors import LearningFailed, ModelFileError

    try:
        done.model.save(path)
    except ModelFileError as error:
        raise LearningFailed(f"the model is learned but not saved: {error}", releases=done.releases) from error


def _with_replicates(done: Fit, path: Path, run: Spec, progress: Progress) -> Fit:
    """Error bars for a fit that is paid for and saved; without them it is no worse."""
    from attrs import evolve

    from dpgm_core.errors import DpgmError
    from dpgm_core.learning.bootstrap import bootstrap
    from dpgm_core.randomness import SeededRandomness

    assert run.intervals is not None
    seeded = None if run.seed is None else SeededRandomness(run.seed)
    try:
        model = bootstrap(done.model, run.intervals.replicates, randomness=seeded, progress=progress)
        model.save(path)
    except DpgmError as error:
        talk(f"dpgm: no intervals: {error}")
        return done
    return evolve(done, model=model)


def _settings(run: Spec) -> dict[str, Any]:
    """What the curator is told, apart from the budget."""
    from dpgm_core.randomness import SeededRandomness

    return {
        "terms": run.terms,
        "randomness": None if run.seed is None else SeededRandomness(run.seed),
        "split": {"tables": run.split, "check": run.check},
    }


def _remarks(run: Spec) -> None:
    """What the owner should know of before a release."""
    from dpgm_core.planning import delta_note

    note = delta_note(run.budget, run.terms.declared)
    if note:
        talk(f"dpgm: {note}")
    if run.seed is not None:
        talk("dpgm: a seed is set: this is a simulation, and everything it writes is stamped private = false")


@contextmanager
def _ledger(run: Spec) -> Iterator[Ledger | None]:
    from dpgm_core.errors import BudgetError, Overspent
    from dpgm_core.ledger.ledger import Ledger

    if run.ledger is None:
        talk("dpgm: no [ledger] in the spec, so nothing records what these people's data have cost so far")
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
            talk(f"dpgm: created ledger {run.ledger.path} with {run.ledger.budget}")
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
    from dpgm_core.pipeline import check

    whole = None if run.ledger is None else run.ledger.budget
    if whole is not None and whole.kind == run.budget.kind and not run.budget <= whole:
        raise Overspent(f"{run.budget} was asked, but the ledger to be created holds only {whole}; ask for less")
    check(
        records_of(run),
        run.structure,
        run.budget,
        run.mechanism,
        run.learner,
        run.inference,
        **_settings(run),
    )
