"""A private test of a classifier: its scores on real rows from one noisy table of score by true label.

The classifier is trained on rows that a model draws, which is post-processing. It turns each record into two columns, a
bin of its score and its true label, by a function that was fixed before any record was read. So neighbouring tables
stay neighbouring, in rows and in persons, and the table of the two columns has the sensitivity of any contingency
table: the ordinary curator counts it, charges it and adds the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import asdict, field, frozen

from dpgm.comparison.task import Trained, check_seed, train_learner
from dpgm.comparison.task_comparison import check_rows, draw_rows, ordered_names, task_domain
from dpgm.formulas import present_codes
from dpgm_core._util.arrays import Array, Codes, FloatArray, IntArray
from dpgm_core.counting.rows import by_person
from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError
from dpgm_core.models.model import Model
from dpgm_core.pipeline.planning import check_source
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import KeyedSource, Source
from dpgm_core.sources.persons import checked_keys
from dpgm_core.sources.reading import KeyedBatches, checked
from dpgm_core.structure.structure import Structure

__all__ = ["Estimate", "ScoredSource", "TaskTest", "plan_task"]

#: Gradient boosting adds up a row's score in the same order whatever the other rows are; see `Trained.margins`.
_LEARNER = "gradient boosting"
#: Bins of the score with about as many rows of the model each, and one more edge at the decision.
_SCORE_BINS = 10
#: Normal deviate of two-sided intervals of 95 %.
_DEVIATE = 1.959964


@frozen(kw_only=True)
class ScoredSource(KeyedBatches):
    """Records with the code of their score and of their target in place of their own columns; each row by itself.

    source: of the records. domain: the attributes that are read. score, target: names of the two columns. classify:
    returns the score codes of rows.
    """

    source: Source
    domain: Domain
    score: str
    target: str
    classify: Callable[[Mapping[str, Array]], IntArray] = field(repr=False)

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes of the two columns, and the person keys of the records."""
        names = self.domain.names
        if key is None:
            batches: Iterator[tuple[Codes, Any]] = ((codes, None) for codes in checked(self.source, self.domain, names))
        else:
            assert isinstance(self.source, KeyedSource)  # `plan_task` has checked it
            batches = checked_keys(self.source, self.domain, key)
        for codes, keys in batches:
            rows = dict(zip(names, codes, strict=True))
            derived = {self.score: self.classify(rows).astype(code_dtype(domain[self.score].size)), **rows}
            yield [derived[name] for name in columns], keys


@frozen(kw_only=True)
class Estimate:
    """A share or an AUC with its 95 % interval, which includes noise and the sampling of rows.

    Attributes
    ----------
    value, low, high
        Within 0 and 1.
    error
        The standard error.
    """

    value: float
    low: float
    high: float
    error: float

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def of(cls, value: float, slopes: FloatArray, table: FloatArray, variance: float) -> Estimate:
        """Return the estimate of a function of a noisy table that does not change with the table's scale.

        slopes: its derivatives by each cell. Cells vary by the noise and, as Poisson counts, by the sampling of rows:
        with such a function the multinomial has the same variance, as its slopes add up to 0 with the cells as weights.
        """
        error = float(np.sqrt(np.sum(slopes**2 * (variance + np.maximum(table, 0)))))
        inside = np.clip([value, value - _DEVIATE * error, value + _DEVIATE * error], 0, 1)
        return cls(value=float(inside[0]), low=float(inside[1]), high=float(inside[2]), error=error)


@frozen(kw_only=True)
class TaskTest:
    """What is released to test a classifier, and how scores are read from it.

    Attributes
    ----------
    source
        The records as they are counted.
    structure
        The one table: bins of the score by the true label; of more than two labels "wrong" and "right" by it.
    drawn
        Number of the model's rows that the classifier was trained on.
    commonest
        The model's commonest label of the target.
    """

    source: ScoredSource
    structure: Structure
    drawn: int
    commonest: str
    _correct: FloatArray  # 1 for cells whose rows are predicted right, (scores, labels that are not missing)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the target but that of missing values, whose rows have no score."""
        target = self.structure.domain[self.source.target]
        return tuple(target.labels[code] for code in present_codes(target))

    @property
    def has_auc(self) -> bool:
        """Whether scores are binned, as of two labels."""
        return len(self.labels) == 2

    def estimate(self, release: NoisyTables) -> dict[str, Estimate | None]:
        """Return the accuracy, the AUC and the share of the commonest label from the noisy table.

        None where noise leaves nothing to divide by: the rows, or of the AUC those of either label, are fewer than
        three standard deviations of their noise. The AUC counts pairs in one bin half; None of more than two labels.
        """
        whole, variance = release.tables[self.structure.cliques[0]].astype(np.float64), float(release.variances[0])
        table = whole[:, present_codes(self.structure.domain[self.source.target])]
        common = np.zeros(table.shape)
        common[:, self.labels.index(self.commonest)] = 1
        return {
            "accuracy": _share(self._correct, table, variance),
            "auc": _binned_auc(table, variance) if self.has_auc else None,
            "commonest": _share(common, table, variance),
        }


def _is_lost_in_noise(total: float, cells: int, variance: float) -> bool:
    return bool(total <= 3 * np.sqrt(cells * variance))


def _share(counts: FloatArray, table: FloatArray, variance: float) -> Estimate | None:
    """The share of some cells, of which `counts` has 1."""
    total = float(table.sum())
    if _is_lost_in_noise(total, table.size, variance):
        return None
    share = float(np.sum(counts * table)) / total
    return Estimate.of(share, (counts - share) / total, table, variance)


def _binned_auc(table: FloatArray, variance: float) -> Estimate | None:
    """The AUC of bins, ascending, by the label: sum_i x_i (Y_<i + y_i / 2) / (X Y), x of the second label."""
    negative, positive = table.T
    totals = negative.sum(), positive.sum()
    if any(_is_lost_in_noise(total, len(table), variance) for total in totals):
        return None
    below = (np.cumsum(negative) - negative / 2) / totals[0]  # share of the first label below each bin
    above = (totals[1] - np.cumsum(positive) + positive / 2) / totals[1]
    area = float(positive @ below / totals[1])
    slopes = np.column_stack([(above - area) / totals[0], (below - area) / totals[1]])
    return Estimate.of(area, slopes, table, variance)


def plan_task(model: Model, records: object, target: str, terms: Terms, seed: int = 1) -> TaskTest:
    """Return what to release for a test of gradient boosting trained on a model's rows; reads no record.

    Parameters
    ----------
    model : Model
        Draws the training rows. Its domain says what the records' values mean.
    records : path, data frame, code array or Source
        Of one table, which must have a column for each attribute that the model draws.
    target : str
        The attribute that is predicted.
    terms : Terms
        Of the release; with a person key the source must be able to read it.
    seed : int
        Of the rows that are drawn and of the classifier.

    Raises
    ------
    OptionError, DataError
        The model does not know the target or draws one label of it only; the records lack a column, or are summed
        where they are.
    """
    check_seed(seed)
    domain = task_domain(model, target)
    source = check_rows(as_source(records))
    by_person(source, terms.person, terms.rows_per_person)  # refuses one that cannot read the key
    check_source(source, Structure(domain, [(name,) for name in domain.names]), terms)
    rows = draw_rows(model, domain, target, seed)
    trained = train_learner(_LEARNER, rows, target, seed, ordered_names(domain))
    if trained.is_constant:
        raise OptionError(f"all rows that the model draws have the same {target!r}, so there is nothing to predict")
    label, name = domain[target], f"score of {target}"
    if len(present_codes(label)) == 2:
        edges = _score_edges(trained.margins(draw_rows(model, domain, target, seed + 1)))
        shown = ["1: lowest", *(f"{number}: above {edge:.4g}" for number, edge in enumerate(edges, 2))]
        correct = np.eye(2)[(np.append(edges, np.inf) > 0).astype(int)]

        def classify(found: Mapping[str, Array]) -> IntArray:
            return np.asarray(np.searchsorted(edges, trained.margins(found), side="left"))
    else:
        shown = ["wrong", "right"]
        correct = np.repeat([[0.0], [1.0]], len(present_codes(label)), axis=1)

        def classify(found: Mapping[str, Array]) -> IntArray:
            return np.asarray(_predict(trained, found) == found[target], np.int64)

    score = Attribute.of_labels(name, shown, unknown=shown[0])
    derived = Domain([score, label])
    return TaskTest(
        source=ScoredSource(source=source, domain=domain, score=name, target=target, classify=classify),
        structure=Structure(derived, [(name, target)]),
        drawn=len(rows[target]),
        commonest=label.labels[int(trained.classes[np.argmax(trained.shares)])],
        correct=correct,
    )


def _score_edges(scores: FloatArray) -> FloatArray:
    """Return edges of bins with about as many scores each, and 0, where the prediction changes."""
    quantiles = np.quantile(scores, np.arange(1, _SCORE_BINS) / _SCORE_BINS)
    return np.unique(np.append(quantiles, 0.0))


def _predict(trained: Trained, rows: Mapping[str, Array]) -> IntArray:
    margins = trained.margins(rows)
    places = (margins > 0).astype(np.int64) if margins.ndim == 1 else np.argmax(margins, axis=1)
    return np.asarray(trained.classes[places])
