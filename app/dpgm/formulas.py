"""Formulas of analyses: what `income ~ age + C(education)` means over a domain.

formulaic evaluates Python, so it never sees the text of a formula, a name or a label: the text is parsed here, by a
grammar that has column names, `C(name)`, `C(name, Treatment("label"))`, `I(name == "label")`, `+`, `:`, `*` and `- 1`.
What formulaic gets are the factors as numbered columns, of numbers or codes, over all cells of the covariates.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray, along
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError, OptionError, TooLarge, clipped, did_you_mean, listed
from dpgm_core.models.functionals import FAMILIES, Family, Regression
from dpgm_core.models.numeric import number_distribution
from dpgm_core.models.within_bins import bin_distribution, missing_code
from dpgm_core.structure.graphs import Clique

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Design", "Factor", "Formula", "MAX_CELLS", "Response", "check_ends", "present_codes", "read_formula"]

BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

#: Cells of the table of a formula's columns.
MAX_CELLS = 2**20
#: Numbers of a design: cells of the covariates times coefficients.
_MAX_NUMBERS = 2**25
#: Letters of a formula, and factors that `*` joins; the terms are the subsets of these.
_MAX_LETTERS, _MAX_CROSSED = 10_000, 8
#: Smallest singular value of a design with unit columns, as a part of the largest.
_SINGULAR = 1e-10
#: Smallest eigenvalue of its columns' products that needs no closer look, which takes ten times as long.
_CLEARLY_REGULAR = 1e-6

_GRAMMAR = 'a formula has column names, C(name), C(name, Treatment("label")), I(name == "label"), +, :, * and - 1'


# --- The parts of a formula ---


@frozen(kw_only=True)
class Factor:
    """One factor of a term, over a column of the domain.

    kind: "numbers" for the representative values of the column's labels, "labels" for a category with a reference, and
    "label" for the indicator of one label. code: the reference of a category, or the label of an indicator. empty: the
    codes of a category that nobody has; records with one are left out. text: how the factor is written in the names
    of coefficients. table: p of the column's codes, to which the numbers of wide bins are fitted.
    """

    column: str
    kind: Literal["numbers", "labels", "label"]
    code: int = -1
    empty: frozenset[int] = frozenset()
    text: str = field(eq=False)
    table: FloatArray | None = field(default=None, eq=False)

    def present(self, attribute: Attribute) -> list[int]:
        """Return the codes that records with this factor can have."""
        return [code for code in present_codes(attribute) if code not in self.empty]

    def codes(self, attribute: Attribute) -> list[int]:
        """Return the codes of a category, its reference first."""
        return [self.code, *(code for code in self.present(attribute) if code != self.code)]

    def missing(self, attribute: Attribute) -> BoolArray:
        """Return whether a record with each code lacks this factor, (codes,)."""
        missing = np.ones(attribute.size, bool)
        missing[self.present(attribute)] = False
        if self.kind == "numbers":
            missing |= ~number_distribution(attribute).present
        return missing

    def values(self, attribute: Attribute) -> FloatArray:
        """Return the number of each code, (codes,): representative values, or 1 for an indicator's label.

        Raises OptionError for a bin without an end.
        """
        if self.kind == "label":
            return np.asarray(np.arange(attribute.size) == self.code, np.float64)
        check_ends(attribute)
        return np.nan_to_num(number_distribution(attribute, self.table).moments()[0])


@frozen(kw_only=True, eq=False)
class Design:
    """The columns of a formula over the cells of its covariates.

    matrix: (cells, coefficients), zero in cells that are not included. names: of the coefficients. included: (cells,),
    whether no covariate is missing.
    """

    matrix: FloatArray
    names: tuple[str, ...]
    included: BoolArray


@frozen(kw_only=True, eq=False)
class Response:
    """The outcome of a regression. values: (labels,) numbers, or (labels, classes - 1) indicators of all classes but
    the first. included: (labels,), whether the outcome is not missing. event: the label that is 1."""

    family: Family
    values: FloatArray
    included: BoolArray
    event: str | None = None
    classes: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False)
class Formula:
    """A formula that was read over a domain.

    outcome: None for a one-sided formula. terms: each a tuple of factors, those of fewer factors first; the intercept
    is not among them.
    """

    text: str
    domain: Domain
    outcome: Factor | None
    terms: tuple[tuple[Factor, ...], ...]
    intercept: bool

    @property
    def covariates(self) -> Clique:
        """The columns of the right side, in order."""
        return tuple(dict.fromkeys(factor.column for term in self.terms for factor in term))

    @property
    def attributes(self) -> Clique:
        """The outcome, if there is one, and the columns of the right side."""
        return (*(() if self.outcome is None else (self.outcome.column,)), *self.covariates)

    @property
    def term_attributes(self) -> tuple[Clique, ...]:
        """The columns of each term."""
        return tuple(tuple(dict.fromkeys(factor.column for factor in term)) for term in self.terms)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors of the right side, each once."""
        return tuple(dict.fromkeys(factor for term in self.terms for factor in term))

    def with_tables(self, tables: Mapping[str, FloatArray]) -> Formula:
        """Return the same with p of columns' codes in its factors."""
        fitted = {one: evolve(one, table=tables.get(one.column)) for one in (*self.factors, self.outcome) if one}
        terms = tuple(tuple(fitted[one] for one in term) for term in self.terms)
        return evolve(self, outcome=None if self.outcome is None else fitted[self.outcome], terms=terms)

    def response(self, family: Family | None = None, event: str | None = None) -> Response:
        """Return the outcome's values, by the family that is asked for or follows from the column.

        A column with two labels, an indicator and an `event` are logistic, numbers are linear, and more labels are
        multinomial. Raises OptionError for a family that does not fit.
        """
        if self.outcome is None:
            raise OptionError(f"{clipped(self.text, 200)}: a regression needs an outcome before ~")
        return _response(self.outcome, self.domain[self.outcome.column], family, event)

    def regression(self, family: Family | None = None, event: str | None = None) -> Regression:
        """Return the regression of the outcome on the design; cells with a missing value are left out.

        Raises OptionError for a family that does not fit and a singular design, and TooLarge for one that does not fit.
        """
        response, design = self.response(family, event), self.design()
        labels = len(response.values)
        names = design.names
        if response.classes:
            assert self.outcome is not None
            outcome = _spelled(self.outcome.column)
            names = tuple(f"{outcome}={label}: {name}" for label in response.classes[1:] for name in names)
        return Regression(
            attributes=self.attributes,
            names=names,
            family=response.family,
            design=np.tile(design.matrix, (labels, 1)),
            outcome=np.repeat(response.values, len(design.included), axis=0),
            included=np.logical_and.outer(response.included, design.included).reshape(-1),
        )

    def design(self) -> Design:
        """Return the columns of the right side over the cells of `covariates`, in C order.

        Raises OptionError for a singular design, and TooLarge for one that does not fit.
        """
        shape = self.domain.shape(self.covariates)
        included = np.ones(shape, bool)
        for factor in self.factors:
            missing = factor.missing(self.domain[factor.column])
            included &= ~along(missing, self.covariates.index(factor.column), len(shape))
        included = included.reshape(-1)
        self._check_columns(int(included.sum()))
        columns, names, terms = self._columns(np.flatnonzero(included), shape)
        impossible = self.domain.impossible(self.covariates) if self.covariates else None
        possible = columns if impossible is None else columns[~impossible.reshape(-1)[included]]
        _check_rank(possible, terms)
        matrix = np.zeros((len(included), len(names)))
        matrix[included] = columns
        return Design(matrix=matrix, names=names, included=included)

    def _check_columns(self, cells: int) -> None:
        """Refuse a design with too many columns before it is made."""
        sizes = {factor: 1 if factor.kind != "labels" else self._levels(factor) - 1 for factor in self.factors}
        least = self.intercept + sum(math.prod(sizes[factor] for factor in term) for term in self.terms)
        if least > cells:
            raise OptionError(
                f"the formula has {least:,} coefficients, but its columns only {cells:,} combinations without missing "
                "values; leave terms out"
            )
        most = 1 + sum(math.prod(sizes[factor] + 1 for factor in term) for term in self.terms)
        if most * cells > _MAX_NUMBERS:
            raise TooLarge(
                f"the design has {cells:,} cells and up to {most:,} columns, more than {_MAX_NUMBERS:,} numbers in "
                "all; leave terms out"
            )

    def _levels(self, factor: Factor) -> int:
        return len(factor.codes(self.domain[factor.column]))

    def _columns(self, cells: IntArray, shape: tuple[int, ...]) -> tuple[FloatArray, tuple[str, ...], list[str]]:
        """Return the columns over these cells, their names, and the term of each."""
        if not self.terms:
            return np.ones((len(cells), 1)), ("Intercept",), ["Intercept"]
        model_matrix, frame = _formulaic(), self._frame(cells, shape)
        numbered = {factor: f"f{number}" for number, factor in enumerate(self.factors)}
        spelled = ["1" if self.intercept else "0", *(":".join(numbered[one] for one in term) for term in self.terms)]
        made = model_matrix(" + ".join(spelled), frame, output="numpy", na_action="ignore")
        factors, names, terms = self.factors, [], []
        for column in made.model_spec.column_names:
            parts = [_PART.fullmatch(part) for part in column.split(":")] if column != "Intercept" else []
            names.append(":".join(self._name(factors[int(part[1])], part[2], part[3]) for part in parts if part))
            terms.append(":".join(factors[int(part[1])].text for part in parts if part))
        return (
            np.ascontiguousarray(made, np.float64),
            tuple(name or "Intercept" for name in names),
            [term or "Intercept" for term in terms],
        )

    def _frame(self, cells: IntArray, shape: tuple[int, ...]) -> pd.DataFrame:
        """Return the factors f0, f1, ... over these cells: numbers, and codes as categories, the reference first."""
        import pandas as pd

        codes = dict(zip(self.covariates, np.unravel_index(cells, shape), strict=True))
        columns: dict[str, object] = {}
        for number, factor in enumerate(self.factors):
            attribute, here = self.domain[factor.column], codes[factor.column]
            if factor.kind == "labels":
                columns[f"f{number}"] = pd.Categorical(here, categories=factor.codes(attribute))
            else:
                columns[f"f{number}"] = factor.values(attribute)[here]
        return pd.DataFrame(columns)

    def _name(self, factor: Factor, treatment: str | None, code: str | None) -> str:
        label = None if code is None else self.domain[factor.column].labels[int(code)]
        return factor.text if label is None else f"{factor.text}[{'T.' if treatment else ''}{label}]"


def _response(factor: Factor, attribute: Attribute, family: Family | None, event: str | None) -> Response:
    if family is not None and family not in FAMILIES:
        raise OptionError(f"the family is one of {', '.join(FAMILIES)}, got {clipped(repr(family))}")
    code = None if event is None else _label_of(attribute, event)
    name, present = factor.column, factor.present(attribute)
    if factor.kind == "label":
        if code not in (None, factor.code):
            raise OptionError(f"the outcome {factor.text} names its event itself; leave the event out")
        code = factor.code
    elif code is None and len(present) == 2 and (factor.kind == "labels" or family in (None, "logistic")):
        code = max(present) if family != "multinomial" else None
    if code is not None and family == "multinomial":
        raise OptionError("a multinomial regression has no event; leave it out, or ask for the logistic family")
    missing = factor.missing(attribute)
    if code is not None:
        chosen = Factor(column=name, kind="label", code=code, text=factor.text)
        return Response(
            family=family or "logistic",
            values=chosen.values(attribute),
            included=~chosen.missing(attribute),
            event=attribute.labels[code],
        )
    if family == "logistic":
        raise OptionError(f"{name!r} has {len(present)} labels; name the event of a logistic regression, --event LABEL")
    if factor.kind == "numbers" and family != "multinomial":
        values = factor.values(attribute)
        if family == "poisson" and (values[~missing] < 0).any():
            raise OptionError(f"{name!r} has values below 0, which are no counts; take the linear family")
        return Response(family=family or "linear", values=values, included=~missing)
    if family in ("linear", "poisson"):
        raise OptionError(f"{name!r} has no numbers for the {family} family; name an event, --event LABEL")
    codes = factor.codes(attribute) if factor.kind == "labels" else np.flatnonzero(~missing).tolist()
    if len(codes) < 2:
        known = ", as far as the tables tell" if factor.empty else ""
        raise OptionError(f"{name!r} has one label only{known}, so there is nothing to explain; take another outcome")
    indicators = np.stack([np.arange(attribute.size) == code for code in codes[1:]], axis=1)
    return Response(
        family="multinomial",
        values=indicators.astype(np.float64),
        included=~missing,
        classes=tuple(attribute.labels[code] for code in codes),
    )


def _label_of(attribute: Attribute, label: str) -> int:
    code = attribute.label_code(label)
    if code not in present_codes(attribute):
        raise OptionError(f"{label!r} stands for missing values of {attribute.name!r}; name another label")
    return code


#: A factor in formulaic's names of columns, such as f0, f1[T.2] and f1[2].
_PART = re.compile(r"f(\d+)(?:\[(T\.)?(\d+)\])?")


def _formulaic() -> Any:
    try:
        from formulaic import model_matrix
    except ImportError:
        raise OptionError("formulas need formulaic: pip install 'dpgm[research]'") from None
    return model_matrix


def present_codes(attribute: Attribute) -> list[int]:
    """Return the codes of an attribute but that of missing values."""
    missing = missing_code(attribute)
    return [code for code in range(attribute.size) if code != missing]


def check_ends(attribute: Attribute) -> None:
    """Refuse a column of numbers in which a bin has no end. Raises OptionError."""
    for code, (low, high) in enumerate(itertools.pairwise(attribute.edges or ())):
        if math.isinf(low) or math.isinf(high):
            label, name = attribute.labels[code], _spelled(attribute.name)
            raise OptionError(
                f"the bin {label!r} of {attribute.name!r} has no end, so its values have no mean; use C({name}) or "
                f"I({name} == {_quoted(label)})"
            )


def _check_rank(matrix: FloatArray, terms: list[str]) -> None:
    """Refuse a design whose columns are linearly dependent, by the terms that are."""
    norms = np.linalg.norm(matrix, axis=0)
    if not norms.all():
        empty = sorted({term for term, norm in zip(terms, norms, strict=True) if not norm})
        raise OptionError(f"the design is singular: a column of {listed(empty)} is zero everywhere; leave it out")
    unit = matrix / norms
    if np.linalg.eigvalsh(unit.T @ unit)[0] > _CLEARLY_REGULAR:
        return
    _, values, vectors = np.linalg.svd(np.linalg.qr(unit, mode="r"))
    if len(values) == len(norms) and values[-1] > _SINGULAR * values[0]:
        return
    part = np.abs(vectors[-1])
    same = list(dict.fromkeys(term for term, size in zip(terms, part, strict=True) if size > 1e-6 * part.max()))
    if len(same) > 2 and "Intercept" in same:
        same.remove("Intercept")
    if len(same) == 1:
        raise OptionError(f"the design is singular: the columns of {same[0]} are linearly dependent; leave it out")
    shown = f"{', '.join(same[:-1])} and {same[-1]}"
    raise OptionError(f"the design is singular: {shown} say the same; leave one of them out")


# --- Reading ---

#: What a factor cannot be because it is computed over rows.
_OF_ROWS = frozenset(("center", "scale", "standardize", "poly", "bs", "cr", "cs", "cc", "ns", "te", "lag", "rank"))
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>`[^`]*`)|(?P<label>"[^"]*"|'[^']*')|(?P<name>[^\W\d][\w.]*)|(?P<one>[01](?![\w.]))"""
    r"""|(?P<sign>==|[~+\-*:(),])|(?P<other>\S))"""
)


def read_formula(
    text: str, domain: Domain, empty: Mapping[str, Collection[int]] | None = None, most: float = MAX_CELLS
) -> Formula:
    """Return the formula that a text means over a domain.

    Columns with numbers enter with the representative values of their labels, those of texts as categories whose first
    label is the reference. empty: codes of columns that nobody has, which make no category unless the text names
    them. most: cells of its columns. Raises OptionError for all that the grammar does not have, unknown columns and
    bins without an end, and TooLarge for too many cells.

    >>> domain = Domain.from_dict({"income": ["low", "high"], "sex": ["F", "M"], "job": ["none", "cook", "pilot"]})
    >>> formula = read_formula("income ~ sex * job", domain)
    >>> formula.attributes, formula.term_attributes
    (('income', 'sex', 'job'), (('sex',), ('job',), ('sex', 'job')))
    >>> formula.design().names[:4]
    ('Intercept', 'sex[T.M]', 'job[T.cook]', 'job[T.pilot]')
    """
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f"a formula is a text such as 'income ~ age + sex', got {clipped(repr(text))}")
    if len(text) > _MAX_LETTERS:
        raise OptionError(f"a formula has at most {_MAX_LETTERS:,} letters, this one {len(text):,}; name fewer columns")
    reader = _Reader(text.strip(), domain, empty or {})
    formula = reader.formula()
    cells = math.prod(domain.shape(formula.attributes))
    if cells > most:
        raise TooLarge(f"this formula's columns have {cells:,} combinations, more than {most:,}; leave some out")
    return formula


class _Reader:
    """The tokens of a formula, read from left to right."""

    def __init__(self, text: str, domain: Domain, empty: Mapping[str, Collection[int]]) -> None:
        self.text, self.domain, self.empty = text, domain, empty
        self.tokens = [(one.lastgroup, one[one.lastgroup or 0], one.start(one.lastgroup or 0)) for one in _found(text)]
        self.at = 0

    def formula(self) -> Formula:
        outcome = None if self._token()[1] == "~" else self._factor()
        if not self._take("~"):
            self._refuse("a formula is OUTCOME ~ TERM + TERM" if self._is_at_end else _GRAMMAR)
        intercept, groups = True, []
        sign = "-" if self._take("-") else "+"
        while True:
            kind, word, _ = self._token()
            if kind == "one":
                self.at += 1
                intercept = (word == "1") == (sign == "+")
            elif sign == "-":
                self._refuse("only the intercept can be taken away, by - 1")
            else:
                groups.append(self._product())
            if self._is_at_end:
                break
            sign = "+" if self._take("+") else "-" if self._take("-") else self._refuse(_GRAMMAR)
        return self._made(outcome, intercept, [term for group in groups for term in group])

    def _made(self, outcome: Factor | None, intercept: bool, found: list[tuple[Factor, ...]]) -> Formula:
        terms = list({frozenset(term): term for term in reversed(found)}.values())[::-1]
        formula = Formula(
            text=self.text,
            domain=self.domain,
            outcome=outcome,
            terms=tuple(sorted(terms, key=len)),
            intercept=intercept,
        )
        if not terms and not intercept:
            raise OptionError(f"{clipped(self.text, 200)}: the right side is empty; name a column, or 1 for the mean")
        for factor in formula.factors:
            if factor.empty and len(factor.present(self.domain[factor.column])) < 2:
                raise OptionError(
                    f"{factor.column!r} has no two labels to compare, but for labels that nobody has as far as the "
                    "tables tell; leave it out"
                )
        if outcome is not None and outcome.column in formula.covariates:
            raise OptionError(
                f"{clipped(self.text, 200)}: {outcome.column!r} stands on both sides; leave it out of the right one"
            )
        return formula

    def _product(self) -> list[tuple[Factor, ...]]:
        """The terms of factors joined by : and *."""
        crossed = [[self._factor()]]
        while True:
            if self._take(":"):
                crossed[-1].append(self._factor())
            elif self._take("*"):
                crossed.append([self._factor()])
            else:
                break
        if len(crossed) > _MAX_CROSSED:
            raise OptionError(f"* joins at most {_MAX_CROSSED} factors, here {len(crossed)}; write the terms with :")
        subsets = (itertools.combinations(crossed, count) for count in range(1, len(crossed) + 1))
        return [tuple(dict.fromkeys(itertools.chain(*one))) for one in itertools.chain(*subsets)]

    def _factor(self) -> Factor:
        kind, word, _ = self._token()
        called = self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][1:2] == ("(",)
        if kind == "name" and called:
            if word in ("C", "I"):
                self.at += 2
                factor = self._category() if word == "C" else self._indicator()
                return factor if self._take(")") else self._refuse(_GRAMMAR)
            self._refuse_call(word)
        column = self._column()
        return self._of_column(column, None)

    def _category(self) -> Factor:
        column = self._column()
        if not self._take(","):
            return self._of_column(column, "C")
        if self._token()[1:2] != ("Treatment",):
            self._refuse('the second part of C(name, ...) is Treatment("label"), which names the reference')
        self.at += 1
        if not self._take("("):
            self._refuse(_GRAMMAR)
        code = self._label(column)
        if not self._take(")"):
            self._refuse(_GRAMMAR)
        label = self.domain[column].labels[code]
        text = f"C({_spelled(column)}, Treatment({_quoted(label)}))"
        empty = frozenset(self.empty.get(column, ())) - {code}
        return Factor(column=column, kind="labels", code=code, empty=empty, text=text)

    def _indicator(self) -> Factor:
        column = self._column()
        if not self._take("=="):
            self._refuse('I(...) compares a column with a label, as in I(sex == "male")')
        code = self._label(column)
        text = f"I({_spelled(column)} == {_quoted(self.domain[column].labels[code])})"
        return Factor(column=column, kind="label", code=code, text=text)

    def _column(self) -> str:
        kind, word, _ = self._token()
        name = word[1:-1] if kind == "quoted" else word
        if kind not in ("name", "quoted"):
            self._refuse(_GRAMMAR)
        if name not in self.domain:
            hint = did_you_mean(name, self.domain.names)
            raise OptionError(f"{clipped(self.text, 200)}: the domain has no column {clipped(name)!r}{hint}")
        self.at += 1
        return name

    def _label(self, column: str) -> int:
        kind, word, _ = self._token()
        if kind != "label":
            self._refuse("labels stand in quotes")
        try:
            code = _label_of(self.domain[column], word[1:-1])
        except (DomainError, OptionError) as error:
            raise OptionError(f"{clipped(self.text, 200)}: {error}") from None
        self.at += 1
        return code

    def _of_column(self, column: str, call: str | None) -> Factor:
        attribute = self.domain[column]
        dist = bin_distribution(attribute) if call is None else None
        if dist is None or not dist.present.any():
            codes, empty = present_codes(attribute), frozenset(self.empty.get(column, ()))
            if len(codes) < 2:
                raise OptionError(f"{column!r} has no two labels to compare; leave it out")
            first = next((code for code in codes if code not in empty), codes[0])
            text = _spelled(column) if call is None else f"C({_spelled(column)})"
            return Factor(column=column, kind="labels", code=first, empty=empty - {first}, text=text)
        return Factor(column=column, kind="numbers", text=_spelled(column))

    @property
    def _is_at_end(self) -> bool:
        return self.at >= len(self.tokens)

    def _token(self) -> tuple[str | None, str, int]:
        return self.tokens[self.at] if not self._is_at_end else (None, "", len(self.text))

    def _take(self, sign: str) -> bool:
        found = self._token()[:2] == ("sign", sign)
        self.at += found
        return found

    def _refuse_call(self, function: str) -> NoReturn:
        start = self._token()[2]
        end = self.text.find(")", start) + 1 or len(self.text)
        inside = [token for token in self.tokens[self.at + 2 :] if token[0] in ("name", "quoted")][:1]
        column = inside[0][1].strip("`") if inside else ""
        instead = f"use {_spelled(column)} or C({_spelled(column)})" if column in self.domain else _GRAMMAR
        shown = clipped(self.text[start:end])
        if function.rpartition(".")[2] in _OF_ROWS:
            raise OptionError(f"{shown} depends on the rows, which an analysis of a model does not have; {instead}")
        raise OptionError(f"{shown} is no part of a formula; {instead}")

    def _refuse(self, what: str) -> NoReturn:
        start = self._token()[2]
        where = f"at {clipped(self.text[start:], 20)!r}" if start < len(self.text) else "at its end"
        raise OptionError(f"{clipped(self.text, 200)}: cannot be read {where}; {what}")


def _found(text: str) -> list[re.Match[str]]:
    return [one for one in _TOKEN.finditer(text) if one.lastgroup is not None]


def _spelled(column: str) -> str:
    """A column as a formula names it, in backticks where its name is no word."""
    return column if re.fullmatch(r"[^\W\d][\w.]*", column) else f"`{column}`"


def _quoted(label: str) -> str:
    return f"'{label}'" if '"' in label else f'"{label}"'
