"""Accuracy of classifiers that are trained on one table and tested on another.

`measure_task` is a plain function of two tables of codes. It is NOT PRIVATE where the tables hold records of people.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.errors import DataError, OptionError

__all__ = ["LEARNERS", "TaskScore", "Trained", "check_seed", "measure_task", "train_learner"]

#: Columns of codes by attribute, all of one length.
Columns: TypeAlias = Mapping[str, Any]

# Histograms of scikit-learn's gradient boosting have room for so many codes of an attribute.
_MAX_CODES = 254
_MAX_SEED = 2**32 - 1


@frozen(kw_only=True)
class TaskScore:
    """How well a classifier predicts the target of the test rows.

    Attributes
    ----------
    learner
        "gradient boosting" or "logistic regression".
    accuracy
        The share of test rows whose label is the predicted one.
    auc
        Area under the ROC curve, 0.5 for a guess. Of more than two labels the mean over the labels that test rows have,
        each against the rest; a label that no training row had counts as never predicted. None if all test rows have
        the same label.
    accuracy_error, auc_error
        Standard errors that come from the number of test rows, taken as independent. The training rows are as they are.
    accuracy_terms, auc_terms
        What each test row adds to the error of either, (rows,): their squares sum to the squared standard error, and
        their differences to that of a difference between two classifiers on the same rows.
    """

    learner: str
    accuracy: float
    auc: float | None
    accuracy_terms: FloatArray = field(repr=False, eq=False)
    auc_terms: FloatArray | None = field(repr=False, eq=False)

    @property
    def accuracy_error(self) -> float:
        """Standard error of the accuracy."""
        return float(np.sqrt(np.sum(self.accuracy_terms**2)))

    @property
    def auc_error(self) -> float | None:
        """Standard error of the AUC; None without an AUC."""
        return None if self.auc_terms is None else float(np.sqrt(np.sum(self.auc_terms**2)))


def measure_task(
    train: Columns, test: Columns, target: str, seed: int, ordered: Collection[str] = ()
) -> tuple[TaskScore, ...]:
    """Train classifiers on one table and test them on another.

    The classifiers are scikit-learn's gradient boosting and logistic regression with their usual settings, which suit
    tables from a thousand to a million rows. Nothing is tuned.

    Parameters
    ----------
    train, test : mapping of str to array of int, (rows,)
        Codes of each attribute, the target among them. Other attributes of `train` are the predictors.
    target : str
        The attribute that is predicted.
    seed : int
        Of the classifiers.
    ordered : collection of str
        Attributes whose codes have an order, such as bins. Gradient boosting splits other attributes by sets of codes;
        logistic regression has an indicator of each code of every attribute.

    Returns
    -------
    tuple of TaskScore
        One for each classifier.

    Raises
    ------
    DataError
        A table has no rows, columns of different lengths or of other than whole numbers, or lacks an attribute.
    OptionError
        The seed is no whole number that scikit-learn takes, or scikit-learn is not installed.

    Examples
    --------
    >>> codes = np.arange(200) % 4
    >>> table = {"a": codes, "b": codes // 2}
    >>> [(one.learner, one.accuracy, one.auc) for one in measure_task(table, table, "b", seed=1)]
    [('gradient boosting', 1.0, 1.0), ('logistic regression', 1.0, 1.0)]
    """
    check_seed(seed)
    _check_columns("training", train, [target, *train])
    _check_columns("test", test, train)
    truth = np.asarray(test[target])
    return tuple(_score(name, train_learner(name, train, target, seed, ordered), test, truth) for name in LEARNERS)


def check_seed(seed: object) -> None:
    """Refuse, with OptionError, a seed that scikit-learn would refuse, or its successor."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < _MAX_SEED:
        raise OptionError(f"the seed of a task must be a whole number from 0 to {_MAX_SEED - 1:,}, got {seed!r}")


def _check_columns(what: str, columns: Columns, needed: Collection[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise DataError(f"the {what} rows have no column {missing[0]!r}")
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError(f"the columns of the {what} rows differ in length")
    if not len(columns[next(iter(needed))]):
        raise DataError(f"there are no {what} rows; a classifier needs some")
    if any(np.asarray(columns[name]).dtype.kind not in "iu" for name in needed):
        raise DataError(f"the columns of the {what} rows must be arrays of codes, which are whole numbers")


# --- Classifiers ---


@frozen(kw_only=True)
class Trained:
    """A classifier after training.

    Attributes
    ----------
    classes
        Codes of the target that training rows had, ascending.
    shares
        Share of each among the training rows.
    """

    classes: IntArray
    shares: FloatArray
    _model: Any = field(repr=False)
    _matrix: Callable[[Columns], IntArray] = field(repr=False)

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for all rows, as training rows have one class or no predictor."""
        return self._model is None

    def probabilities(self, rows: Columns) -> FloatArray:
        """Return the probability of each class for each row, (rows, classes)."""
        if self._model is None:
            return np.tile(self.shares, (len(next(iter(rows.values()))), 1))
        return np.asarray(self._model.predict_proba(self._matrix(rows)))

    def margins(self, rows: Columns) -> FloatArray:
        """Return the scores before they become probabilities: (rows,) of two classes, above 0 for the second one; else
        (rows, classes). Not for a constant classifier.

        Those of gradient boosting are sums over trees, added row by row in the same order, so that a row's score does
        not depend on other rows, not even in its last digit.
        """
        return np.asarray(self._model.decision_function(self._matrix(rows)))


def train_learner(learner: str, train: Columns, target: str, seed: int, ordered: Collection[str] = ()) -> Trained:
    """Return the named classifier after training; arguments as of `measure_task`, which has checked them."""
    names = [name for name in train if name != target]
    labels = np.asarray(train[target])
    classes, counts = np.unique(labels, return_counts=True)
    make = LEARNERS[learner]
    common = {name: _common_codes(np.asarray(train[name])) for name in names if name not in ordered}

    def matrix(rows: Columns) -> IntArray:
        """Codes as a matrix; what training rows lack, or have too rarely for a histogram, is one further code."""
        columns = {name: np.asarray(rows[name]) for name in names}
        return np.column_stack(
            [_recode(column, common[name]) if name in common else column for name, column in columns.items()]
        )

    model = None
    if len(classes) > 1 and names:  # else scikit-learn has no classifier
        model = make([number for number, name in enumerate(names) if name in common], seed)
        with warnings.catch_warnings():  # a regression that has not converged is a classifier as well
            warnings.simplefilter("ignore")
            model.fit(matrix(train), labels)
    return Trained(classes=classes, shares=counts / counts.sum(), model=model, matrix=matrix)


def _common_codes(codes: IntArray) -> IntArray:
    """Return the codes that occur, in order; of more than histograms have room for, the most frequent."""
    values, counts = np.unique(codes, return_counts=True)
    chosen = np.argsort(-counts, kind="stable")[:_MAX_CODES]
    return np.sort(values[chosen])


def _recode(codes: IntArray, common: IntArray) -> IntArray:
    """Return the place of each code among the common ones, or their number for another code.

    >>> _recode(np.array([7, 2, 3]), np.array([2, 7])).tolist()
    [1, 0, 2]
    """
    places = np.minimum(np.searchsorted(common, codes), len(common) - 1)
    return np.where(common[places] == codes, places, len(common))


def _gradient_boosting(unordered: Sequence[int], seed: int) -> Any:
    ensemble = _scikit_learn("ensemble")
    # Early stopping would set rows aside by class, which fails for a class of one row.
    return ensemble.HistGradientBoostingClassifier(
        categorical_features=list(unordered) or None, early_stopping=False, random_state=seed
    )


def _logistic_regression(unordered: Sequence[int], seed: int) -> Any:
    encoder = _scikit_learn("preprocessing").OneHotEncoder(handle_unknown="ignore")
    regression = _scikit_learn("linear_model").LogisticRegression(max_iter=300, random_state=seed)
    return _scikit_learn("pipeline").make_pipeline(encoder, regression)


#: What makes each classifier, of the places of unordered attributes and a seed.
LEARNERS: Mapping[str, Callable[[Sequence[int], int], Any]] = {
    "gradient boosting": _gradient_boosting,
    "logistic regression": _logistic_regression,
}


def _scikit_learn(module: str) -> Any:
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise OptionError('a task needs scikit-learn: pip install "dpgm[task]"') from None


# --- Scores ---


def _score(learner: str, trained: Trained, test: Columns, truth: IntArray) -> TaskScore:
    probabilities = trained.probabilities(test)
    correct = trained.classes[np.argmax(probabilities, axis=1)] == truth
    accuracy = float(np.mean(correct))
    auc, terms = _area(probabilities, trained.classes, truth)
    return TaskScore(
        learner=learner,
        accuracy=accuracy,
        auc=auc,
        accuracy_terms=(correct - accuracy) / len(truth),
        auc_terms=terms,
    )


def _area(probabilities: FloatArray, classes: IntArray, truth: IntArray) -> tuple[float | None, FloatArray | None]:
    """Return the AUC, the mean over the classes of the test rows, and what each row adds to its error."""
    present = np.unique(truth)
    if len(present) < 2:
        return None, None
    scores = {int(one): probabilities[:, number] for number, one in enumerate(classes)}
    never = np.zeros(len(truth))
    areas = [_area_of_one(scores.get(int(one), never), truth == one) for one in present]
    return float(np.mean([area for area, _ in areas])), np.mean([terms for _, terms in areas], axis=0)


def _area_of_one(scores: FloatArray, positive: Any) -> tuple[float, FloatArray]:
    """Return the AUC of a score, ties counted half, and what each row adds to its error.

    The terms are those of E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Biometrics 44 (1988), 837-845: how far
    the share of the other group that a row beats is from the AUC.
    """
    from scipy.stats import rankdata

    everywhere = rankdata(scores)
    within = np.empty(len(scores))
    for group in (positive, ~positive):
        within[group] = rankdata(scores[group])
    number = int(np.sum(positive))
    own = np.where(positive, number, len(scores) - number)
    beaten = (everywhere - within) / (len(scores) - own)  # the share of the other group with a lower score
    area = float(np.mean(beaten[positive]))
    return area, np.where(positive, beaten - area, 1 - beaten - area) / own
