"""The command `dpgm query`."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpgm.cli.common import (
    FILE,
    evidence_option,
    json_option,
    parse_evidence,
    print_err,
    print_evidence_bins,
    print_json,
    print_left_out,
    print_lines,
    print_out,
    print_table,
    progress_option,
    progress_shown,
    stamp,
    unmeasured_note,
)
from dpgm.cli.show import print_statistics
from dpgm_core.components.builtins import INFERENCE
from dpgm_core.errors import ModelFileError, OptionError

if TYPE_CHECKING:
    from dpgm_core._util.arrays import FloatArray
    from dpgm_core.domain.domain import Domain
    from dpgm_core.inference.contract import Estimates
    from dpgm_core.models.intervals import Interval
    from dpgm_core.models.model import Model
    from dpgm_core.models.queries import Unmeasured

__all__ = ["DEFAULT_REPLICATES", "query", "replicates_options", "with_replicates"]


# --- Replicates ---

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_REPLICATES = 40


def replicates_options(command: F) -> F:
    """`--replicates` and `--seed`."""
    seeded = click.option("--seed", type=click.IntRange(0), default=None, help="Seed, to repeat new replicates.")
    counted = click.option(
        "--replicates",
        type=click.IntRange(2, 1000),
        default=None,
        help=f"Refits for error bars without a formula, by default {DEFAULT_REPLICATES}; they are saved in the file.",
    )
    return counted(seeded(command))


def with_replicates(model: Model, path: Path, count: int | None, seed: int | None) -> Model:
    """The model with as many replicates as asked for: those of its file, or new ones, which the file then keeps.

    A file that cannot be written stays as it is; stderr says so.
    """
    from dpgm_core._util.randomness import SeededRandomness
    from dpgm_core.learning.bootstrap import bootstrap

    have = len(model.replicates)
    if have and seed is None and count in (None, have):
        return model
    with progress_shown() as progress:
        model = bootstrap(
            model,
            count or have or DEFAULT_REPLICATES,
            randomness=None if seed is None else SeededRandomness(seed),
            progress=progress,
        )
    try:
        if not os.access(path, os.W_OK):
            raise ModelFileError(f"{path} is read-only")
        model.save(path.resolve())
    except ModelFileError as error:
        print_err(f"dpgm: the replicates are not kept, so they will be made again: {error}")
    return model


# --- The command ---

_MAX_ROWS = 100_000  # printed without being asked for by --top

_INTERVALS = (
    "Print error bars and intervals of this level, such as 0.9. For measured answers it is their coverage; for answers "
    "by structure only if the structure is right, or a holdout measured its error."
)

#: What the name of a column of another child of the same root begins with.
_SIBLING = "sibling."

#: What a standing means, under the answer.
_STANDINGS = {
    "measured": "one released table holds these attributes",
    "by structure": "right as far as the structure is: no released table tells all of their labels together",
    "not measured": "no release measured some of these attributes: what is said of them is no finding",
    "sampled": "children of a root further apart than two next to each other were counted in sampled roots",
    "by definition": "this is what the model says; no release is behind it",
}


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.argument("attributes", nargs=-1, metavar="[ATTRIBUTE]...")
@evidence_option
@click.option("--map", "most_probable", is_flag=True, help="Print the most probable record instead of a marginal.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference engine.")
@click.option("--top", type=click.IntRange(1), default=None, help="Print only the N most probable rows.")
@click.option("--intervals", "level", type=float, default=None, metavar="LEVEL", help=_INTERVALS)
@click.option(
    "--unmeasured",
    type=click.Choice(["uniform", "omit"]),
    default=None,
    help="Take attributes that no release measured as uniform, or leave them out; by default they are refused.",
)
@click.option(
    "-s",
    "--statistic",
    "statistics",
    multiple=True,
    metavar="NAME",
    help="Print a statistic of numbers: mean, sd, median, correlation, or 0.9 for a quantile; repeatable.",
)
@replicates_options
@json_option
@progress_option
def query(
    model_file: Path,
    attributes: tuple[str, ...],
    evidence: tuple[str, ...],
    most_probable: bool,
    inference: str,
    top: int | None,
    level: float | None,
    unmeasured: Unmeasured | None,
    statistics: tuple[str, ...],
    replicates: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Print the joint probabilities of ATTRIBUTEs under MODEL; without attributes, describe the model.

    The standing of an answer is "measured" if one released table holds all attributes of the question, conditions
    included, and "by structure" if the answer depends on the model's independences.

    Of two related tables probabilities are of children where a column of theirs is named or given, else of roots; of
    pairs of children of one root where the second ATTRIBUTE is sibling.COLUMN: dpgm query MODEL sex sibling.sex.
    """
    from dpgm.related import refuse_related, unanswered
    from dpgm_core.models.intervals import checked_level
    from dpgm_core.models.model_file import load_model
    from dpgm_core.models.queries import quote_names

    loaded = load_model(model_file)
    if loaded.related is not None and (most_probable or statistics):
        refuse_related(loaded, "--map is" if most_probable else "--statistic is")
    model = loaded.using(inference, unmeasured=unmeasured)
    fixed = parse_evidence(evidence, model)
    if level is None and (replicates is not None or seed is not None):
        raise OptionError("--replicates and --seed are for --intervals LEVEL, such as --intervals 0.9")
    if level is not None and (most_probable or not attributes):
        raise OptionError("--intervals go with probabilities: name attributes, without --map")
    if statistics and (most_probable or top is not None or not attributes):
        raise OptionError("--statistic goes with attributes that have numbers, without --map and --top")
    if most_probable:
        if attributes:
            raise OptionError("--map answers for all attributes; leave the names out and fix labels with --given")
        _print_record(model, model_file, fixed, as_json)
        return
    if not attributes:
        _print_model(model, model_file, fixed, unmeasured, as_json)
        return
    left_out = [name for name in attributes if unmeasured == "omit" and name in unanswered(model)]
    attributes = tuple(name for name in attributes if name not in left_out)
    if not attributes:
        raise OptionError(f"no release behind the model measured {quote_names(left_out)}, so nothing is left to answer")

    question = _Question(model, attributes, fixed)

    def refitted() -> Model | None:
        if level is None:
            return None
        checked_level(level)
        if replicates is seed is None and not statistics and not question.ask("needs_replicates", model):
            return None
        return with_replicates(loaded, model_file, replicates, seed).using(inference, unmeasured=unmeasured)

    if statistics:
        model.standing(attributes, fixed)  # first: it refuses what cannot be asked
        print_statistics((model, refitted()), model_file, attributes, statistics, fixed, level, as_json)
        return
    _print_answer((model, refitted), model_file, question, level, top, left_out, as_json)


class _Question:
    """p(attributes | given). siblings: whether the second attribute is of another child of the first one's root."""

    def __init__(self, model: Model, names: tuple[str, ...], given: dict[str, str]) -> None:
        self.names, self.attributes, self.given = names, names, given
        self._answering: tuple[Model, Any] | None = None
        children = () if model.related is None else model.related.children.names
        others = [one for one in names if children and one.startswith(_SIBLING) and one not in children]
        self.siblings = bool(others)
        if others and (len(names) != 2 or others != [names[1]]):
            shown = f"{children[0]} {_SIBLING}{children[0]}"
            raise OptionError(f"of a child and another one of its root ask for two columns, such as: {shown}")
        if others:
            self.attributes = (names[0], names[1].removeprefix(_SIBLING))

    def ask(self, answer: str, model: Model, **options: Any) -> Any:
        """What a method of the model, or of what answers for two related tables, says of the question."""
        from dpgm.related import answering
        from dpgm_core.models.queries import read_evidence

        if model.related is None:
            return getattr(model, answer)(self.attributes, self.given, **options)
        if self._answering is None or self._answering[0] is not model:  # what it has sampled serves every answer
            self._answering = (model, answering(model))
        answers, given = self._answering[1], self.given
        codes = read_evidence(answers.domain, given).codes  # values are looked up in bins
        names: tuple[str, ...] = () if self.siblings else self.attributes
        siblings = self.attributes if self.siblings else None
        return getattr(answers, answer)(names, codes, siblings=siblings, **options)


def _print_answer(
    loaded: tuple[Model, Callable[[], Model | None]],
    model_file: Path,
    question: _Question,
    level: float | None,
    top: int | None,
    left_out: list[str],
    as_json: bool,
) -> None:
    """The answer, row by row. loaded: the model, and what makes replicates, once all has been checked."""
    from dpgm.related import answering
    from dpgm_core.releases.session import caveats_of

    model, refitted = loaded
    attributes, fixed = question.attributes, question.given
    question.ask("standing", model)  # first: it refuses what cannot be asked
    domain = answering(model).domain
    cells = math.prod(domain[name].size for name in attributes)
    if top is None and cells > _MAX_ROWS:
        raise OptionError(f"that table has {cells:,} rows; name fewer attributes, or ask for the largest with --top N")
    estimates = model.estimates_of([attributes], given=fixed) if model.related is None else None
    table = question.ask("marginal", model) if estimates is None else estimates.tables[0]
    interval, columns = None, {"probability": table}
    if level is not None:
        model = refitted() or model
        interval = question.ask("intervals", model, level=level)
        columns |= {"standard error": interval.standard_error, "low": interval.low, "high": interval.high}
    rows = _rows(domain, attributes, list(columns.values()), top)
    standing = question.ask("standing", model)
    inference = str(model.inference)
    if not as_json:
        stamp(model_file, caveats_of(model.releases))
        print_left_out(left_out)
        print_evidence_bins(domain, fixed)
        form = "~{:.2g}" if standing == "by structure" else "{:.6f}"  # weaker answers look weaker
        print_table([*question.names, *columns], [[*names, *map(form.format, row)] for names, row in rows])
        _print_standing(standing, interval)
        if interval is not None:
            for note in filter(None, [interval.note, model.rows_note]):
                print_out(note)
        _print_estimates(inference, estimates)
        return
    keys = [name.replace(" ", "_") for name in columns]
    sure = (
        {} if interval is None else {"level": level, "replicates": len(model.replicates), "widened": interval.widened}
    )
    sure |= {} if interval is None else {"undefined_replicates": interval.undefined}
    print_json(
        {
            "attributes": list(question.names),
            "given": fixed,
            "standing": standing,
            "left_out": left_out,
            **_facts(model),
            "converged": model.converged,
            **sure,
            **_drawn(estimates),
            "rows": [{"labels": list(names), **dict(zip(keys, row, strict=True))} for names, row in rows],
        }
    )


def _print_model(
    model: Model, model_file: Path, fixed: dict[str, str], unmeasured: Unmeasured | None, as_json: bool
) -> None:
    """What the model is."""
    from dpgm_core.releases.session import caveats_of

    if unmeasured is not None:
        raise OptionError("--unmeasured goes with answers: name attributes, or ask for --map")
    if fixed:
        raise OptionError("--given needs attributes to ask for, or --map")
    if as_json:
        print_json(model.to_document() | {"domain": model.domain.to_dict()} | _facts(model))
    else:
        stamp(model_file, caveats_of(model.releases))
        _describe(model)


def _facts(model: Model) -> dict[str, Any]:
    from dpgm_core.releases.session import stamp_of

    return stamp_of(model.releases, model.guarantee())


def _print_record(model: Model, model_file: Path, fixed: dict[str, str], as_json: bool) -> None:
    """The most probable record."""
    from dpgm_core.releases.session import caveats_of

    record = model.map_assignment(fixed)
    standing = model.standing(tuple(record))
    if as_json:
        left_out = list(model.left_out)
        print_json({"record": record, "given": fixed, "standing": standing, "left_out": left_out, **_facts(model)})
        return
    stamp(model_file, caveats_of(model.releases))
    print_left_out(model.left_out)
    print_table(["attribute", "label"], list(record.items()))
    _print_standing(standing)


def _rows(
    domain: Domain, attributes: tuple[str, ...], columns: list[FloatArray], top: int | None
) -> list[tuple[tuple[str, ...], tuple[float, ...]]]:
    """(labels, values) of each cell; the `top` most probable, if asked for."""
    labels = [domain[name].labels for name in attributes]
    values = zip(*(column.reshape(-1).tolist() for column in columns), strict=True)
    rows = list(zip(itertools.product(*labels), values, strict=True))
    return rows if top is None else sorted(rows, key=lambda row: -row[1][0])[:top]


def _print_standing(standing: str, interval: Interval | None = None) -> None:
    """Under an answer: what it rests on, and what its intervals do not hold."""
    print_out()
    print_out(f"standing: {standing} ({_STANDINGS[standing]})")
    if interval is not None and standing == "by structure":
        print_out(
            "the intervals are wider by what the holdout found the structure to miss"
            if interval.widened
            else "the intervals cover sampling and noise, and not what the structure misses"
        )


def _print_estimates(inference: str, estimates: Estimates | None) -> None:
    """Under an answer of an engine that draws: how far it may be off, and what speaks against that."""
    if estimates is None:
        return
    error = float(estimates.errors[0].max())
    print_out(f"approximate: {inference} averages over draws, with a Monte Carlo standard error of up to {error:.2g}")
    for note in estimates.notes:
        print_out(f"{'note' if estimates.converged else 'WARNING'}: {note}")


def _drawn(estimates: Estimates | None) -> dict[str, Any]:
    """The same for `--json`."""
    if estimates is None:
        return {}
    error = float(estimates.errors[0].max())
    facts = {"standard_error": error, "converged": estimates.converged, "notes": list(estimates.notes)}
    return {"monte_carlo": facts}


def _describe(model: Model) -> None:
    from dpgm.related import answering, by_table

    print_table(
        ["attribute", "labels"],
        [[one.name, ", ".join(one.labels[:8]) + (", ..." if one.size > 8 else "")] for one in answering(model).domain],
    )
    print_out()
    if model.related is not None:
        roots, children = by_table(model.related, answering(model).domain.names)
        print_out(f"two related tables, with {model.related.describe()}")
        print_out(f"roots: {', '.join(roots)}; children: {', '.join(children)}")
        print_out()
    print_lines(model.structure.describe())
    blocks = model.structure.domain
    if model.latent:
        print_out(f"latent classes: {', '.join(f'{name} ({blocks[name].size})' for name in model.latent)}")
    merged = [f"{one.name} ({one.size} -> {blocks[one.name].size})" for one in model.domain if one != blocks[one.name]]
    if merged:
        print_out(f"learned over merged codes, answered over all: {', '.join(merged)}")
    if model.unmeasured:
        print_out(unmeasured_note(model.unmeasured))
    if not model.converged:
        print_out()
        print_out("WARNING: the learner did not converge")
    for note in model.provenance.get("notes", ()):
        print_out(f"note: {note}")
    print_out()
    print_out(model.guarantee())
