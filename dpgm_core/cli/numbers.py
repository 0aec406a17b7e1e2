"""What `dpgm query --statistic` says: means, spreads, quantiles and correlations, with error bars if asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from dpgm_core.cli.common import print_json, print_table, say, say_bins, stamp

if TYPE_CHECKING:
    from dpgm_core.models.model import Model

__all__ = ["STATISTICS", "say_statistics"]

#: What may be asked for besides a share from 0 to 1, which is a quantile.
STATISTICS = ("mean", "sd", "median", "correlation")


@frozen(kw_only=True)
class _Asked:
    """One number. of: the model it is computed from -> the number. placed: whether it is a place on the axis."""

    names: tuple[str, ...]
    statistic: str
    of: Callable[[Model], float]
    placed: bool


def say_statistics(
    loaded: tuple[Model, Model | None],
    model_file: Path,
    attributes: Sequence[str],
    wanted: Sequence[str],
    given: Mapping[str, str],
    level: float | None,
    as_json: bool,
) -> None:
    """A row for each statistic of each attribute, or pair of them. loaded: the model, and one with replicates."""
    from dpgm_core.models.given import given_of
    from dpgm_core.models.numeric import law_of_numbers, share_of
    from dpgm_core.releases.stamps import caveats_of, stamp_of

    model, refitted = loaded
    rows = []
    for asked in _asked(attributes, wanted, given):
        row: dict[str, Any] = {"attributes": list(asked.names), "statistic": asked.statistic, "value": asked.of(model)}
        if refitted is not None and level is not None:
            found = refitted.interval_of(asked.of, level=level)
            row |= {"standard_error": float(found.standard_error), "low": float(found.low), "high": float(found.high)}
        row["texts"] = [_text(model, asked, row[key]) for key in ("value", "low", "high") if key in row]
        rows.append(row | {"standing": model.standing(asked.names, given)})
    present = {name: share_of(law_of_numbers(model.domain[name]), model.marginal(name, given)) for name in attributes}
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        sure = {} if refitted is None else {"level": level, "replicates": len(refitted.replicates)}
        print_json({"given": dict(given), "with_a_number": present, **sure, "rows": rows, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    say_bins(given_of(model.domain, given).bins(model.domain), given)
    bars = [] if refitted is None else ["low", "high", "standard error"]
    cells = []
    for row in rows:
        error = [f"{row['standard_error']:.6g}"] if bars else []
        cells.append([" x ".join(row["attributes"]), row["statistic"], *row["texts"], *error, row["standing"]])
    print_table(["attribute", "statistic", "value", *bars, "standing"], cells)
    for name, share in present.items():
        if share < 1:
            say(f"of {name}, missing and unknown values are left out: {1 - share:.2%}")
    if bars:
        say("the intervals cover sampling and noise, and not what the structure misses")


def _asked(attributes: Sequence[str], wanted: Sequence[str], given: Mapping[str, str]) -> list[_Asked]:
    """What was asked for. Raises OptionError for no statistic."""
    from dpgm_core.errors import OptionError, did_you_mean

    found = []
    for statistic in dict.fromkeys(wanted):
        if statistic == "correlation":
            if len(attributes) < 2:
                raise OptionError("a correlation is of two attributes; name both")
            found += [_correlation(one, other, given) for one, other in itertools.combinations(attributes, 2)]
            continue
        share = 0.5 if statistic == "median" else _share(statistic)
        if share is None and statistic not in STATISTICS:
            raise OptionError(
                f"--statistic is one of {', '.join(STATISTICS)}, or a share from 0 to 1 for a quantile; got "
                f"{statistic!r}{did_you_mean(statistic, STATISTICS)}"
            )
        found += [_single(name, statistic, share, given) for name in attributes]
    return found


def _single(name: str, statistic: str, share: float | None, given: Mapping[str, str]) -> _Asked:
    if share is not None:
        return _Asked(names=(name,), statistic=statistic, of=lambda one: one.quantile(name, share, given), placed=True)
    if statistic == "mean":
        return _Asked(names=(name,), statistic=statistic, of=lambda one: one.mean(name, given), placed=True)
    return _Asked(names=(name,), statistic="sd", of=lambda one: math.sqrt(one.variance(name, given)), placed=False)


def _correlation(one: str, other: str, given: Mapping[str, str]) -> _Asked:
    return _Asked(
        names=(one, other),
        statistic="correlation",
        of=lambda model: model.correlation(one, other, given),
        placed=False,
    )


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _text(model: Model, asked: _Asked, value: float) -> str:
    """A date or time as the column writes it, a number with six digits."""
    values = model.domain[asked.names[0]].values
    if asked.placed and values.is_temporal:
        return values.text(math.floor(value))
    return f"{value:.6g}"
