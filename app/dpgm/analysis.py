"""Analyses of a model in the words of a formula: regressions, means of groups, correlations and two-way tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from attrs import frozen

from dpgm.comparison.subjects import RecordsSide, Synthetic, read_subject
from dpgm.formulas import Formula, Response, present_codes, read_formula
from dpgm.moments import ANYWHERE, Question, correlations, group_means, two_way_table
from dpgm.pooling import (
    answer_over_pools,
    calibrate,
    calibrate_correlations,
    columns_to_pool,
    merged_note,
    pools_note,
)
from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.toml import toml_value
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, InferenceError, OptionError, clipped, listed, printable
from dpgm_core.models.analysis import (
    BY_STRUCTURE,
    MOSTLY_MEASURED,
    CorrectedEstimates,
    Pools,
    estimate,
    pooled_marginal,
)
from dpgm_core.models.functionals import Family, Moments, Regression
from dpgm_core.models.model import Model
from dpgm_core.models.within_bins import tables_of_wide
from dpgm_core.pipeline.evaluation import tabulate
from dpgm_core.releases.session import stamp_of
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["Analysis", "WaldTest", "analyse", "question_of"]

Kind: TypeAlias = Literal["regression", "groups", "correlation", "table"]

_MAX_NAMED = 5  # estimates in a sentence
#: Standard deviations of the noise from which on a label is a category, and what computing its share may be off by.
_LEAST, _ROUNDING = 3.0, 1e-12


@frozen(kw_only=True)
class WaldTest:
    """A Wald test that several numbers are 0."""

    statistic: float
    degrees: int
    p_value: float


@frozen(kw_only=True, eq=False, repr=False)
class Analysis:
    """Answers about the population, corrected from a model's released tables, with their errors and their standing.

    `str` gives the table as a text.

    Attributes
    ----------
    formula : str
    kind : {"regression", "groups", "correlation", "table"}
    family, event : str, optional
        Of a regression, and the label that counts as 1.
    estimates : CorrectedEstimates
        All numbers with their covariance; `names`, `estimate`, `standard_error`, `low`, `high`, `standing`.
    test : WaldTest, optional
        Of a two-way table: that its columns are independent. None where no table measured them together.
    notes : tuple of str
        What the reader of the table should know.
    pooled : mapping
        Column whose adjacent bins were pooled, so that the table of all columns fits -> how many it has, and the share
        of its variance that is between them.
    """

    formula: str
    kind: Kind
    family: Family | None
    event: str | None
    estimates: CorrectedEstimates
    test: WaldTest | None
    notes: tuple[str, ...]
    pooled: Mapping[str, tuple[int, float]]
    _question: Question
    _planned: Mapping[str, Any]
    _stamp: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers that are shown."""
        return self.estimates.names[: self._question.shown]

    @property
    def not_promised(self) -> tuple[str, ...]:
        """The names of the numbers whose intervals are not promised: by structure, or unstable."""
        return tuple(name for at, name in enumerate(self.names) if not self._is_promised(at))

    @property
    def z(self) -> FloatArray:
        """Each number by its standard error, (K,); inf without an error."""
        errors = self.estimates.standard_error
        z: FloatArray = np.divide(self.estimates.estimate, errors, out=np.full(len(errors), math.inf), where=errors > 0)
        return z

    @property
    def p_values(self) -> FloatArray:
        """Two-sided p-values of the hypotheses that a number is 0, (K,).

        NaN for a number that is no difference or ratio, whose interval is not promised, or without an error.
        """
        from scipy.special import ndtr

        tested = [self._is_tested(at) for at in range(len(self.estimates.names))]
        return np.where(tested, 2 * ndtr(-np.abs(self.z)), np.nan)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The ends of the intervals, within the range of the numbers."""
        return self._clipped(self.estimates.low), self._clipped(self.estimates.high)

    def _clipped(self, numbers: FloatArray) -> FloatArray:
        least, most = np.array(self._question.within).T
        return np.asarray(np.clip(numbers, least, most))

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis as plain values."""
        return {
            "formula": self.formula,
            "kind": self.kind,
            "family": self.family,
            "event": self.event,
            "level": self.estimates.level,
            "records": self.estimates.total,
            "estimates": [self._plain(at) for at in range(len(self.names))],
            "unstable": bool(self.estimates.unstable.any()),
            "test": None
            if self.test is None
            else {
                "statistic": self.test.statistic,
                "degrees_of_freedom": self.test.degrees,
                "p_value": self.test.p_value,
            },
            "notes": [*self.notes, *self.sentences()],
            "pooled": {name: {"bins": bins, "variance_share": share} for name, (bins, share) in self.pooled.items()},
            **self._stamp,
        }

    def _plain(self, at: int) -> dict[str, Any]:
        found, (low, high) = self.estimates, self.ends()
        variance = float(found.covariance[at, at])
        parts = {"noise": found.noise, "sampling": found.sampling, "structure": found.structure}
        plain: dict[str, Any] = {
            "name": found.names[at],
            "estimate": float(self._clipped(found.estimate)[at]),
            "standard_error": float(found.standard_error[at]),
            "low": float(low[at]),
            "high": float(high[at]),
        }
        if self._is_tested(at):
            plain |= {"z": float(self.z[at]), "p_value": float(self.p_values[at])}
        if self._question.logarithms[at]:
            plain |= {f"exp_{key}": _exp(plain[key]) for key in ("estimate", "low", "high")}
        return plain | {
            "standing": found.standing[at],
            "promised": self._is_promised(at),
            "unsupported": float(found.unsupported[at]),
            "missing": [{"attributes": list(names), "share": float(share)} for names, share in found.missing[at]],
            "uncorrected": float(found.uncorrected[at]),
            "variance_shares": {
                name: float(part[at, at]) / variance if variance > 0 else 0.0 for name, part in parts.items()
            },
        }

    def header(self) -> list[str]:
        """Return the columns of the table."""
        head = ["", "coef" if self.kind == "regression" else "estimate", "std err"]
        head += ["z", "P>|z|"] if any(self._question.compared[: len(self.names)]) else []
        head += [f"[{(1 - self.estimates.level) / 2:.4g}", f"{(1 + self.estimates.level) / 2:.4g}]"]
        head += ["exp(coef)" if self.kind == "regression" else "exp", "low", "high"] if self._has_logarithms else []
        return [*head, "standing"]

    def rows(self) -> list[list[str]]:
        """Return the rows of the table."""
        return [self._row(at) for at in range(len(self.names))]

    def sentences(self) -> list[str]:
        """Return what stands below the table: the parts of the variance, and what no table tells."""
        return [*self._test_line(), self._parts(), *self._support()]

    def __str__(self) -> str:
        cells = [self.header(), *self.rows()]
        widths = [max(len(printable(row[at])) for row in cells) for at in range(len(cells[0]))]
        last = len(widths) - 1
        lines = [
            "  ".join(
                printable(cell).ljust(width) if at in (0, last) else printable(cell).rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([printable(self.title()), "", *lines, "", *map(printable, [*self.sentences(), *self.notes])])

    def __repr__(self) -> str:
        return f"Analysis({clipped(self.formula)!r}, {len(self.names)} numbers)"

    def title(self) -> str:
        """Return the line above the table."""
        event = "" if self.event is None else f", event {self.event!r}"
        what = {
            "regression": f"{self.family} regression{event}",
            "groups": f"groups{event}",
            "correlation": "correlations",
            "table": "two-way table",
        }[self.kind]
        return f"{self.formula}: {what}, about {self.estimates.total:,.0f} records"

    @property
    def _has_logarithms(self) -> bool:
        return any(self._question.logarithms[: len(self.names)])

    def _row(self, at: int) -> list[str]:
        found, (low, high) = self.estimates, self.ends()
        row = [found.names[at], _number(self._clipped(found.estimate)[at]), _number(found.standard_error[at])]
        if any(self._question.compared[: len(self.names)]):
            row += [f"{self.z[at]:.2f}", _p_value(self.p_values[at])] if self._is_tested(at) else ["", ""]
        row += [_number(low[at]), _number(high[at])]
        if self._has_logarithms:
            shown = self._question.logarithms[at]
            row += [_number(_exp(one)) if shown else "" for one in (found.estimate[at], low[at], high[at])]
        standing = f"{found.standing[at]}{', unstable' if found.unstable[at] else ''}"
        return [*row, standing if self._is_promised(at) else f"{standing} (not promised)"]

    def _is_tested(self, at: int) -> bool:
        has_error = bool(self.estimates.covariance[at, at] > 0)
        return self._question.compared[at] and self._is_promised(at) and has_error

    def _is_promised(self, at: int) -> bool:
        return self.estimates.standing[at] != BY_STRUCTURE and not self.estimates.unstable[at]

    def _test_line(self) -> list[str]:
        if self.kind != "table":
            return []
        if self.test is None:
            return ["There is no test of independence, as no table measured the columns together."]
        return [
            f"Independence: Wald chi-square {self.test.statistic:.2f} with {self.test.degrees} degrees of freedom, "
            f"p {_p_value(self.test.p_value, equals='= ')}."
        ]

    def _parts(self) -> str:
        shown = slice(0, len(self.names))
        whole = np.diag(self.estimates.covariance)[shown]
        kept = whole > 0
        if not kept.any():
            return "No number has an error."
        parts = []
        for name, part in (("noise", self.estimates.noise), ("structure", self.estimates.structure)):
            shares = np.diag(part)[shown][kept] / whole[kept]
            if name == "noise" or shares.max() > 0:
                parts.append(f"{name} is {_range(shares)}")
        return f"Of the variance, {' and '.join(parts)}; the rest is that records are a sample."

    def _support(self) -> list[str]:
        found = self.estimates
        lines = []
        for standing in (MOSTLY_MEASURED, BY_STRUCTURE):
            at = [one for one in range(len(self.names)) if found.standing[one] == standing]
            if not at:
                continue
            worst = sorted(at, key=lambda one: -found.unsupported[one])
            named = "; ".join(_unsupported(found, one) for one in worst[:_MAX_NAMED])
            more = f"; and {len(at) - _MAX_NAMED} more" if len(at) > _MAX_NAMED else ""
            of = f"{len(at)} of {len(self.names)} {self._noun}"
            lines.append(
                f"{of} are mostly measured; no table tells this part of them: {named}{more}."
                if standing == MOSTLY_MEASURED
                else f"{of} rest on dependence that no table measured: {named}{more}. Their intervals are not "
                f"promised. To measure it, {self._plan()}."
            )
        return lines or [f"All {self._noun} are measured: released tables hold all that they rest on."]

    def _plan(self) -> str:
        """Return what measures the formula in a new run."""
        if not self._planned:
            return (
                "name these tables as cliques under [structure] in the spec of a new run, without [workload], and say "
                "mechanism = 'gaussian' where its budget has a delta"
            )
        planned = self._planned if len(self._planned) > 1 else self._planned["formula"]
        return (
            f"put regressions = {toml_value([planned])} under [research] in the spec of a new run, in place of cliques "
            "under [structure] if it names any, with public labels and bins, or those that fit printed or wrote as a "
            "domain"
        )

    @property
    def _noun(self) -> str:
        return "coefficients" if self.kind == "regression" else "numbers"


def analyse(
    model: Model,
    formula: str,
    *,
    groups: bool = False,
    family: Family | None = None,
    event: str | None = None,
    level: float = 0.95,
    rows: object = None,
    given: Mapping[str, Any] | None = None,
) -> Analysis:
    """Return estimates about the population, without the learner's bias, with intervals for noise and sampling.

    Parameters
    ----------
    model : Model
        With at least one release.
    formula : str
        `income ~ age + C(education)` for a regression. `~ age + hours` for correlations, of columns with numbers, or
        else a two-way table with a test of independence.
    groups : bool
        The mean of the outcome in each group that the right side makes, with differences and ratios to the first.
    family : {"linear", "logistic", "poisson", "multinomial"}, optional
        Of a regression; the outcome's by default.
    event : str, optional
        The label of the outcome that counts as 1; by default the later one of two.
    level : float
        Of the intervals.
    rows : path, list of paths or pyarrow.Table, optional
        Synthetic records that were drawn from this model, as their stamp says: files of `dpgm sample`, which count as
        one, or the table that `Model.sample` returned.
    given : mapping, optional
        attribute -> label, value or code: only records with them. Not together with rows.

    Returns
    -------
    Analysis

    Raises
    ------
    OptionError
        For a formula that cannot be read or does not fit, and a model without a release.
    DataError
        For rows that were not drawn from this model.
    StructureError
        For attributes that no release measured.
    InferenceError
        For numbers that the model does not define, such as coefficients under separation.
    TooLarge
        For too many cells, also where columns of numbers are pooled.

    Notes
    -----
    `dpgm_core.models.analysis` has the estimator and its proof. Nothing is charged: this is post-processing. Where the
    table of all columns is too large, adjacent bins of columns of numbers are pooled, by the model's shares.
    """
    if rows is not None and given:
        raise OptionError("rows stand for all records; leave the condition out, or analyse the model without rows")
    files = rows if isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], (str, Path)) else [rows]
    whole, settings = read_formula(formula, model.domain, most=math.inf), (groups, family, event)
    columns = [] if rows is not None else columns_to_pool(whole, *settings)
    wide = tables_of_wide(model._distribution, [model.domain[name] for name in whole.attributes])

    def answer(read: Formula, pools: Mapping[str, Pools]) -> Analysis:
        read = read.with_tables(wide)
        table = None if rows is None else np.sum([_counts(model, one, read.attributes) for one in files], axis=0)
        return _answer(model, read, settings, level, table, given, pools)

    return answer_over_pools(
        whole,
        answer,
        columns,
        lambda: model.marginals_of([(name,) for name in columns], given),
        blocks=None if model._merged_codes is None else {key: one.codes for key, one in model._merged_codes.of.items()},
        fixed=[name for name in given or {} if name in model.domain],
        empty=_empty_codes(model, whole, given, event),
    )


def _answer(
    model: Model,
    read: Formula,
    settings: tuple[bool, Family | None, str | None],
    level: float,
    table: FloatArray | None,
    given: Mapping[str, Any] | None,
    pools: Mapping[str, Pools],
) -> Analysis:
    """Return the analysis of a formula over pools.

    settings: groups, family and event. table: counts of rows, if they take the model's place.
    """
    kind, found, response = question_of(read, *settings)
    text = _planned_text(read, kind, given)
    stated = zip(("formula", "groups", "family", "event"), (text, *settings), strict=True)
    numeric = tuple(dict.fromkeys(one.column for one in read.factors if one.kind == "numbers"))
    if kind in ("groups", "table"):
        numeric = ()
    if response is not None and response.event is None and not response.classes:
        numeric = (read.attributes[0], *numeric)
    codes = {name: one.codes for name, one in pools.items()}
    left_out: tuple[str, ...] = ()
    try:
        estimates = estimate(model, found.functional, level=level, rows=table, given=given, pools=codes)
    except InferenceError:
        if kind != "groups":
            raise
        shares = pooled_marginal(model, read.attributes, codes, given).reshape(-1)
        question, left_out = found.defined_at(shares if table is None else table / table.sum())
        if not left_out or not question.shown:
            raise
        found = question
        estimates = estimate(model, found.functional, level=level, rows=table, given=given, pools=codes)
    family = found.functional.family if isinstance(found.functional, Regression) else None
    calibrated = family is not None and all(len(term) == 1 for term in read.terms)
    calibrated &= family == "linear" or read.attributes[0] not in pools
    merged = {} if model._merged_codes is None else model._merged_codes.of
    blocks = {name: merged[name].codes for name in columns_to_pool(read, *settings) if name in merged}
    if family != "linear":
        blocks.pop(read.attributes[0], None)
    if calibrated and (pools or blocks):
        estimates = calibrate(model, read, estimates, pools, given, blocks)
    elif kind == "correlation" and not pools:
        estimates = calibrate_correlations(model, read, estimates, given)
    else:
        blocks = {}
    return Analysis(
        formula=read.text,
        kind=kind,
        family=family,
        event=None if response is None else response.event,
        estimates=estimates,
        test=_test(estimates, found.shown) if kind == "table" else None,
        notes=(
            *pools_note(pools, calibrated),
            *merged_note(blocks),
            *_notes(read, numeric, bool(estimates.unstable[: found.shown].any()), left_out, pools),
            *filter(None, [model.rows_note]),
        ),
        pooled={name: (one.bins, one.variance_share) for name, one in pools.items()},
        question=found,
        planned={name: one for name, one in stated if text and one},
        stamp=stamp_of(model.releases, model.guarantee()),
    )


def _planned_text(formula: Formula, kind: Kind, given: Mapping[str, Any] | None) -> str | None:
    """Return the formula whose tables tell this one under a condition, which plans do not have; None without any."""
    outcome, join = formula.outcome, ":" if kind == "groups" else "*"
    if outcome is None or not given:
        return None if given else formula.text
    extra = [f"C(`{name}`)" for name in given]
    terms = [join.join([*(":".join(one.text for one in term),), *extra]) for term in formula.terms]
    return f"{outcome.text} ~ {' + '.join(terms or [join.join(extra)])}"


def question_of(
    formula: Formula, groups: bool, family: Family | None, event: str | None
) -> tuple[Kind, Question, Response | None]:
    """Return what a formula asks, and the values of its outcome."""
    if formula.outcome is None:
        if groups or family is not None or event is not None:
            raise OptionError("groups, a family and an event go with an outcome, as in 'income ~ sex'")
        if any(len(term) > 1 for term in formula.terms) or len(formula.terms) < 2:
            raise OptionError("a formula without an outcome lists columns, as in '~ age + hours'")
        if len(formula.covariates) < len(formula.terms):
            raise OptionError("a formula without an outcome names each column once; leave one out")
        if all(term[0].kind == "numbers" for term in formula.terms):
            return "correlation", correlations(formula), None
        if len(formula.terms) > 2:
            raise OptionError("a two-way table has two columns; name two, or columns with numbers for correlations")
        return "table", two_way_table(formula), None
    if groups:
        if family is not None:
            raise OptionError("groups have means, and no family; leave one out")
        response = formula.response("linear" if formula.outcome.kind == "numbers" and event is None else None, event)
        return "groups", group_means(formula, response), response
    response = formula.response(family, event)
    regression = formula.regression(family, event)
    count = len(regression.names)
    question = Question(
        functional=regression,
        logarithms=(regression.family != "linear",) * count,
        compared=(True,) * count,
        within=(ANYWHERE,) * count,
        shown=count,
    )
    return "regression", question, response


def _empty_codes(
    model: Model, formula: Formula, given: Mapping[str, Any] | None, event: str | None
) -> dict[str, frozenset[int]]:
    """Return the codes of categories of a formula that the tables do not tell from codes that nobody has.

    An event that is named is not one of them.
    """
    every = [*([formula.outcome] if formula.outcome else []), *formula.factors]
    found = {}
    for name in dict.fromkeys(factor.column for factor in every if factor.kind == "labels" and model.releases):
        size = model.domain[name].size
        shares = Moments(attributes=(name,), names=model.domain[name].labels, features=np.eye(size), function=_as_is)
        answer = estimate(model, shares, given=given)
        deviations = np.sqrt(np.diag(answer.noise))
        empty = answer.estimate <= _LEAST * deviations + _ROUNDING
        if formula.outcome is not None and name == formula.outcome.column:
            empty &= np.array(answer.names) != event
        found[name] = frozenset(code for code in present_codes(model.domain[name]) if empty[code])
    return found


def _as_is(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    return means, np.eye(len(means))


def _counts(model: Model, rows: object, attributes: Clique) -> FloatArray:
    """Return how many synthetic records lie in each cell of the attributes."""
    # Without constraints: a drawn record that breaks one counts.
    domain = Domain(model.domain[name] for name in attributes)
    if not isinstance(rows, (str, Path)):
        _check_stamp(model, "the table", _stamp_in(rows))
        counted = tabulate(rows, Structure(domain, [attributes]), allow_non_private=True)
        return np.asarray(counted[attributes], dtype=np.float64)
    content = read_subject(rows)
    if not isinstance(content, Synthetic):
        raise DataError(f"{rows} is no table of rows; name a file that dpgm sample drew from this model")
    _check_stamp(model, str(rows), content.stamp)
    side = RecordsSide(content=content, whole=model.domain)
    lacking = [name for name in attributes if name not in side.domain]
    if lacking:
        raise DataError(f"{rows} has no column {lacking[0]!r}; name rows with all columns of the formula")
    return side.counts([attributes])[0]


def _stamp_in(rows: object) -> Mapping[str, Any]:
    """Return the stamp of a table that `Model.sample` made. Raises DataError for records of any other origin."""
    import pyarrow as pa

    raw = (rows.schema.metadata or {}).get(b"dpgm") if isinstance(rows, pa.Table) else None
    if raw is None:
        raise DataError(
            "rows without a stamp may hold records of people; give the table that the model's sample returned, or a "
            "file of dpgm sample"
        )
    stamp: Mapping[str, Any] = json.loads(raw)
    return stamp


def _check_stamp(model: Model, rows: str, stamp: Mapping[str, Any]) -> None:
    if not stamp.get("synthetic") or stamp.get("guarantee") != model.guarantee():
        raise DataError(f"{rows} was drawn from another model, by its stamp; name rows that this model drew")
    if stamp.get("given"):
        raise DataError(f"{rows} was drawn under a condition, by its stamp; draw rows without --given")


def _test(estimates: CorrectedEstimates, start: int) -> WaldTest | None:
    """Return the Wald test that all numbers from `start` on are 0; None where one of them is by structure."""
    from scipy.special import chdtrc

    if BY_STRUCTURE in estimates.standing[start:]:
        return None
    values, covariance = estimates.estimate[start:], estimates.covariance[start:, start:]
    sizes, axes = np.linalg.eigh(covariance)
    kept = sizes > 1e-10 * max(float(sizes.max()), 0.0)
    degrees = int(kept.sum())
    statistic = float(((axes[:, kept].T @ values) ** 2 / sizes[kept]).sum())
    return WaldTest(statistic=statistic, degrees=degrees, p_value=float(chdtrc(degrees, statistic)))


def _notes(
    formula: Formula, numeric: Clique, unstable: bool, left_out: Sequence[str], pools: Mapping[str, Pools]
) -> tuple[str, ...]:
    """Return what the reader of a table should know of its columns and numbers.

    numeric: columns that enter as numbers. left_out: numbers that are undefined.
    """
    every = [*([formula.outcome] if formula.outcome else []), *formula.factors]
    binned = [name for name in numeric if formula.domain[name].edges is not None or name in pools]
    missing = [one.column for one in every if one.missing(formula.domain[one.column]).sum() > len(one.empty)]
    notes = []
    if binned:
        notes.append(f"A record counts with the mean of its bin in {listed(binned)}.")
    if missing:
        notes.append(f"Records with a missing value in {listed(list(dict.fromkeys(missing)))} are left out.")
    empty: dict[str, dict[str, None]] = {}
    for one in every:
        for code in sorted(one.empty):
            empty.setdefault(formula.domain[one.column].labels[code], {})[one.column] = None
    if empty:
        named = "; ".join(f"{clipped(repr(label))} of {listed(list(names))}" for label, names in empty.items())
        notes.append(f"Left out, as the tables do not tell them from labels that nobody has: {named}.")
    if left_out:
        notes.append(f"Not given, as the model has probability 0 for what it divides by: {listed(left_out)}.")
    if unstable:
        notes.append(
            "Unstable: the corrected table gives no such number near the model's, so it is one step from the model's, "
            "and its interval is not promised; leave terms out, or merge labels."
        )
    return tuple(notes)


def _unsupported(found: CorrectedEstimates, at: int) -> str:
    """One number with the share that no table tells, and the tables that would."""
    sets = [names for names, _ in found.missing[at]]
    tables = ", ".join(" x ".join(names) if len(names) > 1 else f"codes of {names[0]}" for names in sets)
    share = _percent(min(float(found.unsupported[at]), 1.0))  # effects are orthogonal under even weights only
    return f"{found.names[at]} ({share}{': ' if tables else ''}{tables})"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _range(shares: FloatArray) -> str:
    low, high = f"{100 * shares.min():.0f}", f"{100 * shares.max():.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _exp(number: float) -> float:
    return math.exp(min(float(number), 709.0))


def _number(number: float) -> str:
    if number == 0 or 1e-2 <= abs(number) < 1e5:
        return f"{number:.4f}"
    return f"{number:.6f}" if 1e-5 <= abs(number) < 1e-2 else f"{number:.3e}"


def _p_value(number: float, equals: str = "") -> str:
    return f"{'< ' if equals else '<'}0.001" if number < 0.001 else f"{equals}{number:.3f}"
