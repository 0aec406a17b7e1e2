"""`dpgm compare --task`: what classifiers trained on a model's rows are worth on real rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from dpgm.cli.common import (
    FILE,
    RECORDS,
    check_has_records,
    open_ledger,
    print_err,
    print_json,
    print_out,
    print_remarks,
    print_table,
    progress_shown,
    settings_option,
    stamp,
    warn_renamed,
)
from dpgm.cli.records import records_of
from dpgm.cli.show import reserved
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from dpgm.comparison.task_comparison import TaskComparison
    from dpgm.comparison.task_release import Estimate, TaskTest
    from dpgm.spec import Spec
    from dpgm_core.models.model import Model

__all__ = ["TaskOptions", "print_task", "task_options"]

_EXACT = "NOT PRIVATE: exact functions of the records"
_MUST_BE_NEW = "no model may have been fitted to the test rows, which nothing here checks; else its scores are too high"
_MAY_BE_OLD = (
    "rows that the model was fitted to are not held out: scores on them tend to be too high, and the privacy of the "
    "model limits by how much"
)


@frozen(kw_only=True)
class TaskOptions:
    """The options of `dpgm compare --task`. column: None without the option."""

    column: str | None
    spec: Path | None
    settings: tuple[str, ...]
    train_data: Path | str | None
    seed: int

    def check(self, data: object, files: Sequence[Path]) -> None:
        """Refuse, with OptionError, options that do not go together."""
        if self.column is None:
            if self.spec is not None or self.settings or self.train_data is not None:
                raise OptionError("--spec, --set and --train-data go with --task COLUMN; name the column to predict")
            return
        if (data is None) == (self.spec is None):
            raise OptionError(
                "--task needs real rows: --data FILE --allow-non-private for exact scores, which are NOT PRIVATE, or "
                "--spec SPEC --set budget={epsilon=0.1} for a private release"
            )
        if self.spec is None and self.settings:
            raise OptionError("--set goes with --spec, whose keys it overrides; leave it out")
        if self.spec is not None:
            if self.train_data is not None:
                raise OptionError("--train-data goes with --data; a private release trains on rows of the model alone")
            if len(files) > 1:
                raise OptionError("--task with --spec tests one model, as each test is a release; name one")
            if not any(one.partition("=")[0].partition(".")[0].strip() == "budget" for one in self.settings):
                raise OptionError(
                    "say what the test may spend, as in --set budget={epsilon=0.1}; the budget in the spec is that of "
                    "its fit"
                )


def task_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a task, which the function gets as `task`."""

    @wraps(function)
    def collected(*arguments: object, **named: Any) -> None:
        parts = {key: named.pop(key) for key in ("spec", "settings", "train_data", "seed")}
        function(*arguments, task=TaskOptions(column=named.pop("task"), **parts), **named)

    options = [
        click.option("--task", metavar="COLUMN", help="Test classifiers of COLUMN, trained on rows of each model."),
        click.option(
            "--spec", type=FILE, help="Spec of the rows to test on, privately: one release, which is charged."
        ),
        settings_option,
        click.option(
            "--train-data", type=RECORDS, help="Rows to train the real baseline on; by default half of --data."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0),
            default=1,
            show_default=True,
            help="Seed of the rows, the halves and the classifiers of a task.",
        ),
    ]
    decorated: Callable[..., None] = collected
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def print_task(
    task: TaskOptions, files: Sequence[Path], data: Path | str | None, allow_non_private: bool, as_json: bool
) -> None:
    """Test classifiers that are trained on rows of each model file, and print their scores."""
    from dpgm_core.models.model_file import load_model

    models = {str(path): load_model(path) for path in files}
    if len(models) < len(files):
        raise OptionError("a model is named twice; name models that may differ")
    if data is not None:
        _print_comparison(task, models, data, allow_non_private, as_json)
    else:
        _print_release(task, files[0], models[str(files[0])], as_json)


# --- Exact scores ---


def _print_comparison(
    task: TaskOptions, models: dict[str, Model], data: Path | str, allow_non_private: bool, as_json: bool
) -> None:
    from dpgm.comparison.task_comparison import compare_task
    from dpgm_core.releases.session import caveats_of

    assert task.column is not None  # checked
    train = None if task.train_data is None else records_of(task.train_data)
    with progress_shown() as progress:
        progress("training classifiers", 0, None)
        compared = compare_task(
            models,
            records_of(data),
            task.column,
            train_records=train,
            seed=task.seed,
            allow_non_private=allow_non_private,
        )
    print_err(f"dpgm: {_EXACT}")
    print_err(f"dpgm: {_MUST_BE_NEW}")
    if as_json:
        notes = [_MUST_BE_NEW, *_caveats(models)]
        print_json({**compared.to_dict(), "seed": task.seed, "notes": notes, "privacy": _EXACT})
        return
    for name, model in models.items():
        stamp(Path(name), caveats_of(model.releases))
    label, share = compared.commonest
    print_out(f"{task.column}: {compared.test_rows:,} test rows, {share:.4f} of them {label}")
    print_out()
    print_table(["trained on", "rows", "learner", "accuracy", "loss", "AUC", "loss"], _score_rows(compared))
    print_out()
    print_out("+- is the standard error from the number of test rows; losses are from the same learner on real rows.")
    print_out(_EXACT)


def _caveats(models: dict[str, Model]) -> list[str]:
    """Return why models are less private than their budgets, as lines on stderr say it without --json."""
    from dpgm_core.releases.session import caveats_of

    return [f"{name}: {caveat}" for name, model in models.items() for caveat in caveats_of(model.releases)]


def _score_rows(compared: TaskComparison) -> list[list[object]]:
    from dpgm.comparison.task_comparison import REAL

    rows: list[list[object]] = []
    for name, scores in compared.scores.items():
        for score, loss in zip(scores, compared.losses(name), strict=True):
            rows.append(
                [
                    name,
                    compared.rows[name],
                    score.learner,
                    _shown(score.accuracy, score.accuracy_error),
                    "" if name == REAL else _shown(loss.accuracy, loss.accuracy_error),
                    _shown(score.auc, score.auc_error),
                    "" if name == REAL else _shown(loss.auc, loss.auc_error),
                ]
            )
    return rows


def _shown(value: float | None, error: float | None) -> str:
    return "none" if value is None or error is None else f"{value:.4f} +- {error:.4f}"


# --- A private release ---


def _print_release(task: TaskOptions, file: Path, model: Model, as_json: bool) -> None:
    from dpgm.comparison.task_release import plan_task
    from dpgm.spec import load_spec
    from dpgm_core.releases.release import total_cost
    from dpgm_core.releases.session import caveats_of, stamp_of

    assert task.spec is not None and task.column is not None  # checked
    run = load_spec(task.spec, task.settings)
    if run.terms.related is not None:
        raise OptionError(f"{task.spec} is of two related tables, and a task is of one; name the spec of one table")
    if run.ledger is None:
        raise OptionError(
            f"{task.spec} has no [ledger], so nothing would add the test to what these people's data have cost; "
            "name one there"
        )
    check_has_records(run)
    with progress_shown() as progress:
        progress("training a classifier", 0, None)
        planned = plan_task(model, run.data, task.column, run.terms, task.seed)
    run = _run_of(run, planned)
    with reserved(run, again=True) as (saved, _), open_ledger(run) as ledger, progress_shown() as progress:
        print_remarks(run)
        noisy = run.to_run(ledger=ledger, save_release=saved, progress=progress, learns=False).release()
        left = None if ledger is None else ledger.remaining()
    warn_renamed(run, saved, [noisy])
    found = planned.estimate(noisy)
    notes = [_MAY_BE_OLD, *_notes(found, planned)]
    if as_json:
        facts = {
            "target": task.column,
            "model": str(file),
            "training_rows": planned.drawn,
            "commonest_label": planned.commonest,
            "scores": {name: None if one is None else one.to_dict() for name, one in found.items()},
            "release": str(noisy.saved_as),
            "spent": total_cost([noisy]).to_dict(),
            "left": None if left is None else left.to_dict(),
            "notes": [*notes, *_caveats({str(file): model})],
        }
        print_json({**facts, **stamp_of([noisy], noisy.guarantee())})
        return
    stamp(file, caveats_of(model.releases))
    stamp(noisy.saved_as or saved, caveats_of([noisy]))
    print_out(f"release: {noisy.saved_as}")
    print_out(f"spent:   {total_cost([noisy])}; left: {left}")
    print_out()
    print_out(f"{task.column}: gradient boosting, trained on {planned.drawn:,} rows of {file}")
    print_out()
    names = {"accuracy": "accuracy", "auc": "AUC", "commonest": f"share of {planned.commonest}"}
    rows = [[names[name], f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}"] for name, one in found.items() if one]
    print_table(["", "estimate", "95 % interval"], rows)
    print_out()
    for note in notes:
        print_out(f"note: {note}")
    print_out()
    print_out(noisy.guarantee())


def _run_of(run: Spec, planned: TaskTest) -> Spec:
    """Return the run that releases the one table of the test: same people, terms, ledger and folder; its own files."""
    mechanism = run.mechanism
    if mechanism is None and run.budget.kind != "pure":
        mechanism = "gaussian"
    return evolve(
        run,
        name=f"{run.name}.task",
        data=planned.source,
        domain=planned.structure.domain,
        structure=planned.structure,
        terms=evolve(run.terms, contributions=None),  # each row counts as one, which is what a share of rows is of
        selector=None,
        workload=None,
        mechanism=mechanism,
        split="even",
        ranges=(),
        holdout=Fraction(0),
        labels_from=None,
        analyses=(),
        intervals=None,
    )


def _notes(found: dict[str, Estimate | None], planned: TaskTest) -> list[str]:
    notes = ["the interval includes the noise and the sampling of rows, taken as independent"]
    if not planned.has_auc:
        notes.append(f"no AUC, as {planned.source.target} has {len(planned.labels)} labels and not 2")
    if found["accuracy"] is None or (planned.has_auc and found["auc"] is None):
        notes.append("the noise is too wide for a score that is missing here; spend more")
    return notes
