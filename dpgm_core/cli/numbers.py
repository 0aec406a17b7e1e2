"""What `dpgm query --statistic` says: means, spreads, quantiles and correlations, with error bars if asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from dpgm_core.cli.common import print_evidence_bins, print_json, print_out, print_table, stamp

if TYPE_CHECKING:
    from dpgm_core.attribute import Attribute
    from dpgm_core.domain import Domain
    from dpgm_core.models.model import Model

__all__ = ["STATISTICS", "print_statistics"]

#: What may be asked for besides a share from 0 to 1, which is a quantile.
STATISTICS = ("mean", "sd", "median", "correlation")


@frozen(kw_only=True)
class _Number:
    """One number. of: the model it is computed from -> the number. placed: whether it is a place on the axis. within:
    the least and the largest that it can be."""

    names: tuple[str, ...]
    statistic: str
    of: Callable[[Model], float]
    placed: bool
    within: tuple[float, float]


def print_statistics(
    loaded: tuple[Model, Model | None],
    model_file: Path,
    attributes: Sequence[str],
    statistics: Sequence[str],
    evidence: Mapping[str, str],
    level: float | None,
    as_json: bool,
) -> None:
    """A row for each statistic of each attribute, or pair of them. loaded: the model, and one with replicates."""
    from dpgm_core.models.given import read_evidence
    from dpgm_core.models.numeric import number_distribution, share_of
    from dpgm_core.releases.stamps import caveats_of, stamp_of

    model, refitted = loaded
    rows = []
    notes = []
    for number in _requested_numbers(model.domain, attributes, statistics, evidence):
        row: dict[str, Any] = {
            "attributes": list(number.names),
            "statistic": number.statistic,
            "value": number.of(model),
        }
        if refitted is not None and level is not None:
            interval = refitted.interval_of(number.of, level=level, within=number.within)
            notes += (
                [] if interval.note is None else [f"{number.statistic} of {' x '.join(number.names)}: {interval.note}"]
            )
            row |= {
                "standard_error": float(interval.standard_error),
                "low": float(interval.low),
                "high": float(interval.high),
            }
            row["undefined_replicates"] = interval.undefined
        row["texts"] = [_text(model, number, row[key]) for key in ("value", "low", "high") if key in row]
        rows.append(row | {"standing": model.standing(number.names, evidence)})
    present = {
        name: share_of(number_distribution(model.domain[name]), model.marginal(name, evidence)) for name in attributes
    }
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        sure = {} if refitted is None else {"level": level, "replicates": len(refitted.replicates)}
        print_json({"given": dict(evidence), "with_a_number": present, **sure, "rows": rows, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    print_evidence_bins(read_evidence(model.domain, evidence).bins(model.domain), evidence)
    bars = [] if refitted is None else ["low", "high", "standard error"]
    cells = []
    for row in rows:
        error = [f"{row['standard_error']:.6g}"] if bars else []
        cells.append([" x ".join(row["attributes"]), row["statistic"], *row["texts"], *error, row["standing"]])
    print_table(["attribute", "statistic", "value", *bars, "standing"], cells)
    for name, share in present.items():
        if share < 1:
            print_out(f"of {name}, missing and unknown values are left out: {1 - share:.2%}")
    for note in notes:
        print_out(note)
    if bars:
        print_out("the intervals cover sampling and noise, and not what the structure misses")


def _requested_numbers(
    domain: Domain, attributes: Sequence[str], statistics: Sequence[str], evidence: Mapping[str, str]
) -> list[_Number]:
    """What was asked for. Raises OptionError for no statistic."""
    from dpgm_core.errors import OptionError, did_you_mean

    numbers = []
    for statistic in dict.fromkeys(statistics):
        if statistic == "correlation":
            if len(attributes) < 2:
                raise OptionError("a correlation is of two attributes; name both")
            numbers += [_correlation(one, other, evidence) for one, other in itertools.combinations(attributes, 2)]
            continue
        share = 0.5 if statistic == "median" else _share(statistic)
        if share is None and statistic not in STATISTICS:
            raise OptionError(
                f"--statistic is one of {', '.join(STATISTICS)}, or a share from 0 to 1 for a quantile; got "
                f"{statistic!r}{did_you_mean(statistic, STATISTICS)}"
            )
        numbers += [_single(domain[name], statistic, share, evidence) for name in attributes]
    return numbers


def _single(attribute: Attribute, statistic: str, share: float | None, evidence: Mapping[str, str]) -> _Number:
    from dpgm_core.models.numeric import ends_of, number_distribution

    name, ends = attribute.name, ends_of(number_distribution(attribute))
    number = partial(_Number, names=(name,), statistic=statistic)
    if share is not None:
        return number(of=lambda model: model.quantile(name, share, evidence), placed=True, within=ends)
    if statistic == "mean":
        return number(of=lambda model: model.mean(name, evidence), placed=True, within=ends)
    widest = (ends[1] - ends[0]) / 2  # half of the numbers at either end
    return number(of=lambda model: math.sqrt(model.variance(name, evidence)), placed=False, within=(0.0, widest))


def _correlation(one: str, other: str, evidence: Mapping[str, str]) -> _Number:
    return _Number(
        names=(one, other),
        statistic="correlation",
        of=lambda model: model.correlation(one, other, evidence),
        placed=False,
        within=(-1.0, 1.0),
    )


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _text(model: Model, number: _Number, value: float) -> str:
    """A date or time as the column writes it, a number with six digits."""
    values = model.domain[number.names[0]].values
    if number.placed and values.is_temporal:
        return values.text(math.floor(value))
    return f"{value:.6g}"
