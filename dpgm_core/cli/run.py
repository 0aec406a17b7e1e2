"""dpgm fit, plan, release, learn."""

from __future__ import annotations

import itertools
import os
import shlex
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm_core.cli.common import json_option, print_json, print_table, progress_bar, settings_option, talk
from dpgm_core.defaults import INFERENCE, LEARNER
from dpgm_core.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpgm_core.ledger import Ledger
    from dpgm_core.model import Model
    from dpgm_core.protocols import Fit, Progress
    from dpgm_core.releases import NoisyTables
    from dpgm_core.spec import Spec

__all__ = ["fit", "learn", "plan", "release"]


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
    terms = _terms(run)
    with _reserved(run) as (saved, path), _ledger(run) as ledger, progress_bar() as progress:
        _remarks(run)
        try:
            done = fit_records(
                _data(run),
                run.structure,
                run.budget,
                run.mechanism,
                run.learner,
                run.inference,
                save_release=saved,
                ledger=ledger,
                progress=progress,
                **terms,
            )
            done.model.save(path)
        except BaseException as error:
            if saved.exists():
                talk(
                    f"dpgm: the release is paid for and saved; learn from it with: dpgm learn {shlex.quote(str(saved))}"
                )
                error.release = saved  # type: ignore[attr-defined]
            raise
        left = None if ledger is None else ledger.remaining()
        if run.intervals is not None:
            done = _with_replicates(done, path, run, progress)
    if as_json:
        print_json(_summary(done, path, saved, left))
        return
    level = None if run.intervals is None else run.intervals.level
    _print_fit(done, path, saved, left, verbose=obj["verbose"], level=level)


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@json_option
@click.option("--records", type=float, default=None, help="A publicly known or guessed number of records.")
def plan(spec: Path, settings: tuple[str, ...], as_json: bool, records: float | None) -> None:
    """Say what SPEC would cost and how accurate it would be. Reads no data."""
    from dpgm_core.measuring import total_policy
    from dpgm_core.pipeline import plan as make_plan
    from dpgm_core.registry import make
    from dpgm_core.sources import as_source
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings)
    make("learner", run.learner)
    total_policy(run.total)
    as_source(_data(run))
    planned = make_plan(
        run.structure,
        run.budget,
        run.mechanism,
        run.inference,
        neighbours=run.neighbours,
        rows_per_person=run.rows_per_person,
        records=_declared(run) if records is None else records,
        split=run.split,
        contributions=run.contributions,
    )
    for note in planned.notes:
        talk(f"dpgm: {note}")
    if as_json:
        print_json(planned.to_dict())
        return
    one = planned.sensitivity
    click.echo(f"budget: {planned.asked}; this release costs {planned.cost}")
    if run.ledger is not None and run.ledger.path.exists():
        from dpgm_core.ledger import Ledger

        click.echo(f"ledger: {Ledger.open(run.ledger.path).remaining()} left in {run.ledger.path}")
    weighted = planned.contributions
    unit = "records" if weighted is None else f"1/{weighted.grid} persons"
    click.echo(
        f"sensitivity ({planned.neighbours.value}): L0 {one.l0}, L1 {one.l1}, L2 {one.l2:.4g}, Linf {one.linf}; "
        f"noise scale {planned.scale:.6g} {unit} per cell"
    )
    click.echo(str(planned.structure))
    cost = f"{planned.inference_cost}; " if planned.inference_cost else ""
    click.echo(f"inference: {cost}about {1000 * planned.seconds_per_inference:.3g} ms a call\n")
    what = "records" if weighted is None else "persons"
    header = ["table", "cells", f"noise sd ({what})", "error of a probability"]
    rows = [
        [
            " x ".join(table.clique) or "(total)",
            table.cells,
            f"{table.noise:.4g}",
            "-" if table.relative is None else f"{table.relative:.3g}",
        ]
        for table in planned.tables
    ]
    print_table(header, rows)
    if all(table.relative is None for table in planned.tables):
        talk("for the error of a probability give a publicly known number of records: --records N")


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@json_option
def release(spec: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Only the noisy release of SPEC, to learn from later with `dpgm learn`."""
    from dpgm_core.pipeline import release as release_records
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings)
    terms = _terms(run)
    with _reserved(run) as (saved, _), _ledger(run) as ledger, progress_bar() as progress:
        _remarks(run)
        noisy = release_records(
            _data(run),
            run.structure,
            run.budget,
            run.mechanism,
            save_release=saved,
            ledger=ledger,
            progress=progress,
            **terms,
        )
        left = None if ledger is None else ledger.remaining()
    if as_json:
        print_json({"release": str(saved), "cost": noisy.cost.to_dict(), "left": left and left.to_dict()})
        return
    click.echo(f"release: {saved}")
    click.echo(f"spent:   {noisy.cost}" + ("" if left is None else f"; left: {left}"))
    click.echo(noisy.guarantee())


@click.command()
@click.argument("release_file", metavar="RELEASE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--learner", default=LEARNER, show_default=True, help="Name of the learner.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Model file to write.")
@settings_option
@json_option
@click.pass_obj
def learn(
    obj: dict[str, bool],
    release_file: Path,
    learner: str,
    inference: str,
    output: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Learn a model from a saved RELEASE; costs no budget, however often. Settings: learner.KEY, inference.KEY."""
    from dpgm_core.errors import OptionError
    from dpgm_core.pipeline import learn as learn_release
    from dpgm_core.releases import load_release
    from dpgm_core.spec import parse_setting

    parts: dict[str, dict[str, Any]] = {"learner": {"name": learner}, "inference": {"name": inference}}
    for setting in settings:
        keys, value = parse_setting(setting)
        if len(keys) != 2 or keys[0] not in parts:
            raise OptionError(f"setting {setting!r}: here it must start with learner. or inference.")
        parts[keys[0]][keys[1]] = value
    noisy = load_release(release_file)
    stem = release_file.name.removesuffix(".dpgm").removesuffix(".release")
    path = output or _free_path(release_file.with_name(f"{stem}.{learner}.dpgm"))
    if path.exists() and path.samefile(release_file):
        raise OptionError(f"--output {path} is the release itself; name another file")
    with progress_bar() as progress:
        done = learn_release(noisy, parts["learner"], parts["inference"], progress=progress)
    done.model.save(path)
    if as_json:
        print_json(_summary(done, path, release_file, None))
        return
    _print_fit(done, path, release_file, None, verbose=obj["verbose"], learned_again=True)


def _with_replicates(done: Fit, path: Path, run: Spec, progress: Progress) -> Fit:
    """Error bars for a fit that is paid for and saved; without them it is no worse."""
    from attrs import evolve

    from dpgm_core.errors import DpgmError
    from dpgm_core.randomness import SeededRandomness

    assert run.intervals is not None
    seeded = None if run.seed is None else SeededRandomness(run.seed)
    try:
        model = done.model.bootstrap(run.intervals.replicates, randomness=seeded, progress=progress)
        model.save(path)
    except DpgmError as error:
        talk(f"dpgm: no intervals: {error}")
        return done
    return evolve(done, model=model)


def _data(run: Spec) -> object:
    from dpgm_core.registry import make

    return make("source", run.data) if isinstance(run.data, dict) else run.data


def _terms(run: Spec) -> dict[str, Any]:
    """What the curator is told, apart from the budget."""
    from dpgm_core.randomness import SeededRandomness

    return {
        "neighbours": run.neighbours,
        "total": run.total,
        "randomness": None if run.seed is None else SeededRandomness(run.seed),
        "unit": run.unit,
        "person": run.person,
        "rows_per_person": run.rows_per_person,
        "split": run.split,
        "contributions": run.contributions,
    }


def _remarks(run: Spec) -> None:
    """What the owner should know of before a release."""
    from dpgm_core.planning import delta_note

    note = delta_note(run.budget, _declared(run))
    if note:
        talk(f"dpgm: {note}")
    if run.seed is not None:
        talk("dpgm: a seed is set: this is a simulation, and everything it writes is stamped private = false")


def _declared(run: Spec) -> float | None:
    """The number of records, where the owner declared it as public knowledge."""
    return run.total if isinstance(run.total, (int, float)) and not isinstance(run.total, bool) else None


@contextmanager
def _ledger(run: Spec) -> Iterator[Ledger | None]:
    from dpgm_core.errors import Overspent
    from dpgm_core.ledger import Ledger

    if run.ledger is None:
        talk("dpgm: no [ledger] in the spec, so nothing records what these people's data have cost so far")
        yield None
        return
    if run.ledger.create and not run.ledger.path.exists():
        _check_before_creating(run)
        assert run.ledger.budget is not None  # checked by the spec
        Ledger.create(
            run.ledger.path,
            name=run.name,
            budget=run.ledger.budget,
            neighbours=run.neighbours,
            unit=run.unit,
            person=run.person,
            rows_per_person=run.rows_per_person,
        ).close()
        talk(f"dpgm: created ledger {run.ledger.path} with {run.ledger.budget}")
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
    finally:
        ledger.close()


def _check_before_creating(run: Spec) -> None:
    """Refuse what can be refused without the records before a ledger appears for nothing."""
    from dpgm_core.curator import LiveCurator
    from dpgm_core.errors import DataError, Overspent
    from dpgm_core.pipeline import plan as make_plan
    from dpgm_core.registry import make
    from dpgm_core.sources import as_source
    from dpgm_core.sources.reading import locate

    whole = None if run.ledger is None else run.ledger.budget
    if whole is not None and whole.kind == run.budget.kind and not run.budget <= whole:
        raise Overspent(f"{run.budget} was asked, but the ledger to be created holds only {whole}; ask for less")
    make("learner", run.learner)
    source = as_source(_data(run))
    LiveCurator(source, run.structure, make("mechanism", run.mechanism), budget=run.budget, **_terms(run))
    path = getattr(source, "path", None)
    if path is not None and not Path(path).is_file():
        raise DataError(f"there is no data file {path}; say in the spec where the records are")
    if hasattr(source, "names"):  # a header is public, so its columns can be looked at before anything is paid
        columns = [] if run.person is None else [run.person, *run.domain.names]
        columns += [name for clique in run.structure for name in clique]
        locate(str(path), dict.fromkeys(columns), source.names())
    make_plan(
        run.structure,
        run.budget,
        run.mechanism,
        run.inference,
        neighbours=run.neighbours,
        rows_per_person=run.rows_per_person,
        split=run.split,
        contributions=run.contributions,
    )


@contextmanager
def _reserved(run: Spec) -> Iterator[tuple[Path, Path]]:
    """Files for the release and the model that nobody has, not even a run of the same spec at the same time.

    A paid release is never overwritten: names are numbered, and one is held by a marker file while the run lasts.
    """
    made = not run.output.exists()
    try:
        run.output.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            stem = run.name if number == 1 else f"{run.name}-{number}"
            marker = run.output / f".{stem}.reserved"
            release, model = run.output / f"{stem}.release.dpgm", run.output / f"{stem}.dpgm"
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                continue
            if not os.path.lexists(release) and not os.path.lexists(model):
                break
            marker.unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"cannot write to the output folder {run.output}: {reason}") from None
    try:
        yield release, model
    finally:
        marker.unlink(missing_ok=True)
        if made:
            with suppress(OSError):  # something was written, so it stays
                run.output.rmdir()


def _free_path(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _summary(done: Fit, path: Path, saved: Path, left: Any) -> dict[str, Any]:
    release = done.release
    return {
        "model": str(path),
        "release": str(saved),
        "private": release.private,
        "unsafe": release.unsafe,
        "spent": release.cost.to_dict(),
        "left": None if left is None else left.to_dict(),
        "records": {"total": _records(release), "policy": release.total_policy},
        "converged": done.converged,
        "replicates": len(done.model.replicates),
        "certificate": dict(done.certificate),
        "notes": list(done.notes),
        "guarantee": release.guarantee(),
    }


def _records(release: NoisyTables) -> float:
    """The number of records behind a release; a round's own total is that of its subsample."""
    rounds = release.provenance.get("rounds") or {}
    rate = Fraction(str(rounds.get("sampling_rate", "1")))
    return release.total / float(rate)


def _print_fit(
    done: Fit,
    path: Path,
    saved: Path,
    left: Any,
    *,
    verbose: bool,
    learned_again: bool = False,
    level: float | None = None,
) -> None:
    from dpgm_core.errors import TooLarge

    release = done.release
    click.echo(f"model:   {path}")
    click.echo(f"release: {saved}")
    paid = "" if learned_again else "" if left is None else f"; left in the ledger: {left}"
    click.echo(("paid before: " if learned_again else "spent:   ") + f"{release.cost}{paid}")
    what = "records: " if release.contributions is None else "persons: "
    click.echo(f"{what}{_records(release):,.0f} ({release.total_policy})")
    if not done.converged:
        click.echo("WARNING: the learner did not converge; the model carries this flag")
    for note in done.notes if verbose or not done.converged else ():
        talk(f"note: {note}")
    click.echo("")
    try:
        _print_margins(done.model, level if done.model.replicates else None)
    except TooLarge:
        click.echo("exact answers do not fit in memory; ask with: dpgm query --inference loopy-bp")
    swamped = _swamped(release)
    if swamped:
        talk(
            f"dpgm: the noise is larger than the average cell in {swamped} of {len(release.noise)} tables, so finer "
            "detail there is noise; use fewer or smaller tables, or more budget"
        )
    click.echo("")
    click.echo(release.guarantee())


def _swamped(release: NoisyTables) -> int:
    """How many tables have more noise in a cell than records in the average one; public facts alone."""
    return sum(
        noise.variance * cells**2 > total**2
        for noise, cells, total in zip(release.noise, release.structure.sizes, release.totals, strict=True)
    )


def _print_margins(model: Model, level: float | None) -> None:
    """Each attribute's most likely labels, in per cent, as the model has them, with intervals if a level is given.

    What was not measured is named.
    """
    rows = []
    measured = {name for clique in model.structure for name in clique}
    for attribute in model.domain:
        if attribute.name not in measured:
            continue
        found = None if level is None else model.intervals(attribute.name, level=level)
        shares = model.marginal(attribute.name) if found is None else found.estimate
        if attribute.size > 1 and shares[attribute.unknown] > 0.95:
            talk(
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
            + ("" if found is None else f" ({100 * found.low[code]:.1f}-{100 * found.high[code]:.1f})")
            for code in order
        )
        rows.append([attribute.name, text + (", ..." if attribute.size > 6 else "")])
    sure = "" if level is None else f" ({100 * level:g}% interval)"
    print_table(["attribute", f"share of records in the model{sure}"], rows[:40])
    left_out = [name for name in model.domain.names if name not in measured]
    if left_out:
        click.echo(f"not measured, so unknown to the model: {', '.join(left_out)}")
