"""Questions of an analysis besides regressions: means of groups, correlations and two-way tables, of a formula."""

from __future__ import annotations

import itertools
import math

import numpy as np
from attrs import evolve, frozen

from dpgm.formulas import BoolArray, Factor, Formula, Response, check_ends
from dpgm_core._util.arrays import FloatArray, along
from dpgm_core.errors import OptionError, TooLarge, clipped
from dpgm_core.models.functionals import Functional, Moments
from dpgm_core.models.numeric import number_distribution

__all__ = ["ANYWHERE", "Question", "correlations", "group_means", "two_way_table"]

#: The range of a number that may be any.
ANYWHERE = (-math.inf, math.inf)
#: Numbers of the features of a question, cells times functions.
_MAX_NUMBERS = 2**25


@frozen(kw_only=True, eq=False)
class Question:
    """A functional, and how its numbers are shown.

    logarithms: whether each is a logarithm, whose exponential is shown too. compared: whether each is a difference or a
    ratio, of which 0 is a hypothesis. shown: how many, from the first, are shown; the rest are for a test that all of
    them are 0. within: the least and the largest possible value of each.
    """

    functional: Functional
    logarithms: tuple[bool, ...]
    compared: tuple[bool, ...]
    within: tuple[tuple[float, float], ...]
    shown: int

    def defined_at(self, table: FloatArray) -> tuple[Question, tuple[str, ...]]:
        """Return the numbers that are defined at a table, and the names of the others; only of means of groups."""
        assert isinstance(self.functional, Moments)
        kept = self.functional.are_defined(table)
        question = evolve(
            self,
            functional=self.functional.only(kept),
            logarithms=tuple(itertools.compress(self.logarithms, kept)),
            compared=tuple(itertools.compress(self.compared, kept)),
            within=tuple(itertools.compress(self.within, kept)),
            shown=int(kept.sum()),
        )
        return question, tuple(itertools.compress(self.functional.names, ~kept))


def group_means(formula: Formula, response: Response) -> Question:
    """Return the mean of the outcome in each group, with differences and ratios to the first group.

    Of an event these are probabilities, and their odds ratios follow. Ratios are of means that cannot be negative.

    formula: its right side is one term, of columns whose labels make the groups, or 1.
    """
    if response.classes:
        raise OptionError(f"the labels of {formula.attributes[0]!r} have no mean; name an event, --event LABEL")
    if len(formula.terms) > 1 or not formula.intercept:
        raise OptionError(
            f"{clipped(formula.text, 200)}: groups are the labels of one column, or of columns joined by :"
        )
    factors = formula.terms[0] if formula.terms else ()
    indicators, names = _groups(formula, factors)
    groups = len(names)
    cells = len(response.values) * indicators.shape[1]
    _check_numbers(2 * groups * cells)
    kept = response.values[response.included]
    values = np.where(response.included, response.values, 0.0)
    features = np.concatenate(
        [
            (response.included[None, :, None] * indicators[:, None, :]).reshape(groups, cells),
            (values[None, :, None] * indicators[:, None, :]).reshape(groups, cells),
        ]
    )
    what = "mean" if response.event is None else f"p({clipped(response.event)})"
    kinds = ["ratio"] if (values >= 0).all() else []
    if response.event is not None:
        kinds.append("odds ratio")
    pairs = [f"{name} / {names[0]}" for name in names[1:]]
    every = [f"{what}: {name}" if name else what for name in names]
    every += [f"{name} - {names[0]}" for name in names[1:]]
    every += [f"log {kind}: {pair}" for kind in kinds for pair in pairs]
    compared = groups - 1

    def function(means: FloatArray) -> tuple[FloatArray, FloatArray]:
        shares, sums = means[:groups], means[groups:]
        value = sums / shares
        slope = np.hstack([np.diag(-value / shares), np.diag(1 / shares)])
        values, slopes = [value, value[1:] - value[0]], [slope, slope[1:] - slope[0]]
        for kind in kinds:
            one = np.log(value) if kind == "ratio" else np.log(value / (1 - value))
            change = (1 / value if kind == "ratio" else 1 / (value * (1 - value)))[:, None] * slope
            values.append(one[1:] - one[0])
            slopes.append(change[1:] - change[0])
        return np.concatenate(values), np.concatenate(slopes)

    return Question(
        functional=Moments(
            attributes=formula.attributes, names=tuple(every), features=features.astype(np.float64), function=function
        ),
        logarithms=(False,) * (groups + compared) + (True,) * (compared * len(kinds)),
        compared=(False,) * groups + (True,) * (compared * (1 + len(kinds))),
        within=((float(kept.min()), float(kept.max())),) * groups + (ANYWHERE,) * (len(every) - groups),
        shown=len(every),
    )


def correlations(formula: Formula) -> Question:
    """Return Pearson's correlation of each pair of the columns, over records that have both numbers.

    A value within a bin counts with the spread of its bin, independent of all else, as in `Model.correlation`.
    """
    names = formula.covariates
    pairs = list(itertools.combinations(range(len(names)), 2))
    shape = formula.domain.shape(names)
    _check_numbers(6 * len(pairs) * math.prod(shape))
    axes = [_number_axis(formula, at, shape) for at in range(len(names))]
    features = []
    for one, other in pairs:
        (here, x, xx), (there, y, yy) = axes[one], axes[other]
        both = here & there
        features += [np.broadcast_to(both * part, shape) for part in (1.0, x, y, xx, yy, x * y)]

    def function(means: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = np.zeros(len(pairs)), np.zeros((len(pairs), len(means)))
        for at in range(len(pairs)):
            share, (x, y, xx, yy, xy) = means[6 * at], means[6 * at + 1 : 6 * at + 6] / means[6 * at]
            spreads = xx - x**2, yy - y**2
            scale = math.sqrt(max(spreads[0] * spreads[1], 0.0)) or math.nan
            value = (xy - x * y) / scale
            inside = np.array(
                [
                    -y / scale + value * x / spreads[0],
                    -x / scale + value * y / spreads[1],
                    -value / (2 * spreads[0]),
                    -value / (2 * spreads[1]),
                    1 / scale,
                ]
            )
            values[at] = value
            slopes[at, 6 * at] = -(inside @ np.array([x, y, xx, yy, xy])) / share
            slopes[at, 6 * at + 1 : 6 * at + 6] = inside / share
        return values, slopes

    return Question(
        functional=Moments(
            attributes=names,
            names=tuple(f"{names[one]}, {names[other]}" for one, other in pairs),
            features=np.stack([one.reshape(-1) for one in features]),
            function=function,
        ),
        logarithms=(False,) * len(pairs),
        compared=(True,) * len(pairs),
        within=((-1.0, 1.0),) * len(pairs),
        shown=len(pairs),
    )


def two_way_table(formula: Formula) -> Question:
    """Return the joint probabilities of the labels of two columns, and what they differ by from independence.

    The differences p(a, b) - p(a) p(b), for all labels but the first of each, are not shown: they are for the test.
    """
    parts = [_groups(formula, (term[0],)) for term in formula.terms]
    (rows, row_names), (columns, column_names) = parts
    count = len(rows), len(columns)
    for size, term in zip(count, formula.terms, strict=True):
        if size < 2:
            raise OptionError(f"{term[0].column!r} has no two labels to compare; name another column")
    first = formula.covariates.index(formula.terms[0][0].column) == 0
    axes = "rc" if first else "cr"
    features = np.einsum(f"ir,jc->ij{axes}", rows.astype(np.float64), columns.astype(np.float64))
    features = features.reshape(count[0] * count[1], -1)
    tested = np.ix_(range(1, count[0]), range(1, count[1]))
    _check_numbers(2 * features.size)

    def function(means: FloatArray) -> tuple[FloatArray, FloatArray]:
        table = means.reshape(count) / means.sum()
        slope = (np.eye(len(means)) - table.reshape(-1, 1)).reshape(*count, -1) / means.sum()
        row, column = table.sum(axis=1), table.sum(axis=0)
        row_slope, column_slope = slope.sum(axis=1), slope.sum(axis=0)
        apart = table - np.outer(row, column)
        change = slope - row[:, None, None] * column_slope - column[None, :, None] * row_slope[:, None, :]
        values = np.concatenate([table.reshape(-1), apart[tested].reshape(-1)])
        return values, np.concatenate([slope.reshape(len(means), -1), change[tested].reshape(-1, len(means))])

    shown = [f"{row}, {column}" for row in row_names for column in column_names]
    hidden = [f"{row}, {column}: from independence" for row in row_names[1:] for column in column_names[1:]]
    return Question(
        functional=Moments(
            attributes=formula.covariates, names=(*shown, *hidden), features=features, function=function
        ),
        logarithms=(False,) * len(shown + hidden),
        compared=(False,) * len(shown) + (True,) * len(hidden),
        within=((0.0, 1.0),) * len(shown) + (ANYWHERE,) * len(hidden),
        shown=len(shown),
    )


def _groups(formula: Formula, factors: tuple[Factor, ...]) -> tuple[BoolArray, list[str]]:
    """Return the indicators of the groups that labels make, (groups, cells of the columns), and their names."""
    columns = tuple(dict.fromkeys(factor.column for factor in factors))
    shape = formula.domain.shape(columns)
    sides = []
    for factor in factors:
        attribute, axis = formula.domain[factor.column], columns.index(factor.column)
        present, labels = factor.present(attribute), attribute.labels
        if factor.kind == "label":
            rest = [code for code in present if code != factor.code]
            if not rest:
                raise OptionError(f"{factor.column!r} has no two labels to compare; name another column")
            levels = [(f"not {labels[factor.code]}", rest), (labels[factor.code], [factor.code])]
        else:
            codes = factor.codes(attribute) if factor.kind == "labels" else present
            levels = [(labels[code], [code]) for code in codes]
        masks = [along(np.isin(np.arange(attribute.size), codes), axis, len(shape)) for _, codes in levels]
        sides.append(
            [(f"{factor.column}={clipped(label)}", mask) for (label, _), mask in zip(levels, masks, strict=True)]
        )
    groups, names = [], []
    _check_numbers(math.prod(map(len, sides)) * math.prod(shape))
    for one in itertools.product(*sides):
        inside = np.ones(shape, bool)
        for _, mask in one:
            inside &= mask
        groups.append(inside.reshape(-1))
        names.append(", ".join(name for name, _ in one))
    return np.stack(groups), names


def _number_axis(formula: Formula, at: int, shape: tuple[int, ...]) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return where a column has numbers, its numbers and their mean squares, along its axis.

    Numbers are taken from the middle of their range, so that those of dates lose no digits.
    """
    attribute = formula.domain[formula.covariates[at]]
    check_ends(attribute)
    dist = number_distribution(attribute, formula.terms[at][0].table)
    means, variances = (np.where(dist.present, moment, 0.0) for moment in dist.moments())
    means = means - (means[dist.present].min() + means[dist.present].max()) / 2
    missing, axes = formula.terms[at][0].missing(attribute), len(shape)
    return along(~missing, at, axes), along(means, at, axes), along(means**2 + variances, at, axes)


def _check_numbers(numbers: int) -> None:
    if numbers > _MAX_NUMBERS:
        raise TooLarge(f"this question has {numbers:,} numbers, more than {_MAX_NUMBERS:,}; name fewer columns")
