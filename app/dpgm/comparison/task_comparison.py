"""Classifiers trained on rows of models and tested on real rows: exact functions of the records, NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import asdict, frozen

from dpgm.comparison.task import TaskScore, check_seed, measure_task
from dpgm.formulas import present_codes
from dpgm.related import refuse_related
from dpgm_core._util.arrays import Array
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.curator.redaction import redact_source_errors
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, DomainError, OptionError, did_you_mean, require_non_private
from dpgm_core.models.model import Model
from dpgm_core.releases.totals import counted
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import AnySource, ReducingSource, Source
from dpgm_core.sources.reading import checked

__all__ = [
    "REAL",
    "TaskComparison",
    "TaskLoss",
    "check_rows",
    "compare_task",
    "draw_rows",
    "ordered_names",
    "task_domain",
]

#: Rows to draw from a model that carries no release, and the most of any.
_ROWS_DRAWN, _MAX_ROWS_DRAWN = 10_000, 200_000

#: What classifiers were trained on, where it was no model's rows.
REAL = "real rows"


def task_domain(model: Model, target: str) -> Domain:
    """Return the attributes that a model draws, without constraints. Raises OptionError where it lacks the target."""
    refuse_related(model, "a task is")
    drawn = [one for one in model.domain if one.name not in model.left_out]
    if target in model.left_out:
        raise OptionError(f"no release measured {target!r}, so the model knows nothing of it; name another column")
    if target not in model.domain.names:
        raise OptionError(f"the model has no column {target!r}{did_you_mean(target, model.domain.names)}")
    if len(drawn) < 2:
        raise OptionError(f"the model knows no column but {target!r}, so there is nothing to predict it from")
    return Domain(drawn)


def draw_rows(model: Model, domain: Domain, target: str, seed: int) -> dict[str, Array]:
    """Return rows that a model draws, as codes, without those that lack the target; free in privacy.

    As many are drawn as there were records, at most 200,000.
    """
    count = _ROWS_DRAWN if model.release is None else max(1, round(counted(model.release)[0]))
    table = model.sample(min(count, _MAX_ROWS_DRAWN), form="labels", randomness=SeededRandomness(seed))
    rows = {
        one.name: pc.index_in(table[one.name].combine_chunks(), value_set=pa.array(one.labels, pa.string())).to_numpy()
        for one in domain
    }
    return _with_label(rows, domain, target)


def _with_label(rows: Mapping[str, Array], domain: Domain, target: str) -> dict[str, Array]:
    """Return the rows whose target is not missing."""
    present = np.isin(rows[target], present_codes(domain[target]))
    return {name: column[present] for name, column in rows.items()}


def ordered_names(domain: Domain) -> list[str]:
    """Return the attributes with bins, whose codes have an order."""
    return [one.name for one in domain if one.edges is not None]


def check_rows(source: AnySource) -> Source:
    """Return the source, whose rows can be read here. Raises DataError for one that sums them where they are."""
    if isinstance(source, ReducingSource):
        raise DataError(
            f"source {type(source).__name__} sums records where they are, and a classifier looks at them row by row; "
            "give the records as files or a data frame"
        )
    return source


@frozen(kw_only=True)
class TaskLoss:
    """A score on real rows minus that of a model's rows, by the same learner on the same test rows.

    Attributes
    ----------
    accuracy, auc
        Positive where real rows are the better ones. The AUC is None where there is none.
    accuracy_error, auc_error
        Standard errors that come from the number of test rows.
    """

    accuracy: float
    accuracy_error: float
    auc: float | None
    auc_error: float | None

    @classmethod
    def between(cls, real: TaskScore, other: TaskScore) -> TaskLoss:
        """Return the loss of the other one. The errors allow for the same rows having tested both."""
        accuracy = real.accuracy - other.accuracy
        accuracy_error = float(np.linalg.norm(real.accuracy_terms - other.accuracy_terms))
        if real.auc is None or other.auc is None or real.auc_terms is None or other.auc_terms is None:  # of test rows
            return cls(accuracy=accuracy, accuracy_error=accuracy_error, auc=None, auc_error=None)
        auc, auc_error = real.auc - other.auc, float(np.linalg.norm(real.auc_terms - other.auc_terms))
        return cls(accuracy=accuracy, accuracy_error=accuracy_error, auc=auc, auc_error=auc_error)


@frozen(kw_only=True)
class TaskComparison:
    """Scores of classifiers by what they were trained on. NOT PRIVATE.

    Attributes
    ----------
    target
        The attribute that is predicted.
    commonest
        The commonest label of the test rows, and its share of them.
    test_rows
        Number of test rows.
    rows
        Number of training rows, by what they are: "real rows" or a model's name.
    scores
        Scores of each learner, by the same names.
    """

    target: str
    commonest: tuple[str, float]
    test_rows: int
    rows: Mapping[str, int]
    scores: Mapping[str, tuple[TaskScore, ...]]

    def losses(self, name: str) -> tuple[TaskLoss, ...]:
        """Return what each learner loses when it is trained on rows of this model in place of real ones."""
        return tuple(map(TaskLoss.between, self.scores[REAL], self.scores[name]))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `dpgm compare --task --json` prints them."""
        rows = []
        for name, scores in self.scores.items():
            for score, loss in zip(scores, self.losses(name), strict=True):
                shown = {key: getattr(score, key) for key in ("accuracy", "accuracy_error", "auc", "auc_error")}
                lost = None if name == REAL else asdict(loss)
                rows.append(
                    {"trained_on": name, "rows": self.rows[name], "learner": score.learner, **shown, "loss": lost}
                )
        label, share = self.commonest
        return {
            "target": self.target,
            "test_rows": self.test_rows,
            "commonest": {"label": label, "share": share},
            "scores": rows,
        }


def compare_task(
    models: Mapping[str, Model],
    records: object,
    target: str,
    *,
    train_records: object = None,
    seed: int = 1,
    allow_non_private: bool = False,
) -> TaskComparison:
    """Train classifiers on rows drawn from models, and on real rows, and test all on real rows. NOT PRIVATE.

    Rows whose target is missing are left out everywhere.

    Parameters
    ----------
    models : mapping of str to Model
        By the name they are shown with. Real rows are read by the domain of each; the classifiers trained on real rows
        have the columns of the first.
    records : path, data frame, code array or Source
        Real rows that no model was fitted to, which nothing checks.
    target : str
        The attribute that is predicted.
    train_records : path, data frame, code array or Source, optional
        Real rows to train on. None: a random half of `records`, and the other half are the test rows of all.
    seed : int
        Of the halves, the rows that are drawn and the classifiers.
    allow_non_private : bool
        Must be True.

    Raises
    ------
    NonPrivateError
        `allow_non_private` is not True.
    OptionError, DomainError, DataError
        A model does not know the target, models have different labels of it, or rows cannot be read.
    """
    require_non_private("a classifier's score on records", allow_non_private)
    check_seed(seed)
    domains = {name: task_domain(model, target) for name, model in models.items()}
    first = next(iter(domains.values()))
    for name, domain in domains.items():
        if domain[target].labels != first[target].labels:
            raise DomainError(f"{name} has other labels of {target!r} than the first model; compare them one by one")
    tables = {name: _read_rows(records, domain, target) for name, domain in domains.items()}
    count = len(next(iter(tables.values()))[target])
    if train_records is None:
        order = np.random.default_rng(seed).permutation(count)
        train_places, test_places = np.sort(order[: count // 2]), np.sort(order[count // 2 :])
        train = _take(next(iter(tables.values())), train_places)
        tables = {name: _take(table, test_places) for name, table in tables.items()}
    else:
        train = _read_rows(train_records, first, target)
    trained = {REAL: (train, next(iter(tables)))}
    trained |= {name: (draw_rows(model, domains[name], target, seed), name) for name, model in models.items()}
    scores = {
        what: measure_task(rows, tables[name], target, seed, ordered_names(domains[name]))
        for what, (rows, name) in trained.items()
    }
    truth = next(iter(tables.values()))[target]
    shares = np.bincount(truth, minlength=first[target].size) / len(truth)
    most = int(np.argmax(shares))
    return TaskComparison(
        target=target,
        commonest=(first[target].labels[most], float(shares[most])),
        test_rows=len(truth),
        rows={what: len(rows[target]) for what, (rows, _) in trained.items()},
        scores=scores,
    )


def _read_rows(records: object, domain: Domain, target: str) -> dict[str, Array]:
    """Return the rows with a target, as codes. Raises DataError where a column is missing, or all rows but one are."""
    source = check_rows(as_source(records))
    batches = redact_source_errors(source, lambda: list(checked(source, domain, domain.names)))
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    rows = _with_label(dict(zip(domain.names, columns, strict=True)), domain, target) if columns else {}
    if not rows or len(rows[target]) < 2:
        where = f"{records} has" if isinstance(records, (str, Path)) else "the records have"
        raise DataError(f"{where} fewer than 2 rows with a label of {target!r}; a test needs some")
    return rows


def _take(rows: Mapping[str, Array], places: Sequence[int] | Array) -> dict[str, Array]:
    return {name: column[places] for name, column in rows.items()}
