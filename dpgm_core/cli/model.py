"""dpgm query, sample, evaluate."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpgm_core.cli.common import json_option, print_json, print_table, say, say_lines, stamp, talk
from dpgm_core.cli.records import check_output, write_records
from dpgm_core.cli.replicates import DEFAULT_REPLICATES, replicates_options, with_replicates
from dpgm_core.components.builtins import INFERENCE

if TYPE_CHECKING:
    from dpgm_core.models.model import Model

__all__ = ["evaluate", "query", "sample"]

_MOST_ROWS = 100_000  # printed without being asked for by --top

_INTERVALS = "Error bars and intervals that hold the truth with this probability, such as 0.9."

_EXACT = "NOT PRIVATE: exact functions of the records"

_file = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("model_file", metavar="MODEL", type=_file)
@click.argument("attributes", nargs=-1, metavar="[ATTRIBUTE]...")
@click.option("-g", "--given", multiple=True, metavar="ATTRIBUTE=LABEL", help="Condition on a label; repeatable.")
@click.option("--map", "most_probable", is_flag=True, help="The most probable record instead of a marginal.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Engine that answers.")
@click.option("--top", type=click.IntRange(1), default=None, help="Only the N most probable rows.")
@click.option("--intervals", "level", type=float, default=None, metavar="LEVEL", help=_INTERVALS)
@replicates_options
@json_option
def query(
    model_file: Path,
    attributes: tuple[str, ...],
    given: tuple[str, ...],
    most_probable: bool,
    inference: str,
    top: int | None,
    level: float | None,
    replicates: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """The probabilities of the ATTRIBUTEs' labels under MODEL; without attributes, what the model is."""
    from dpgm_core.errors import OptionError
    from dpgm_core.models.intervals import checked_level
    from dpgm_core.releases.stamps import caveats_of, stamp_of

    loaded = _load(model_file)
    model = loaded.using(inference)
    caveats, facts = caveats_of(model.releases), stamp_of(model.releases, model.guarantee())
    fixed = _given(given)
    if level is None and (replicates is not None or seed is not None):
        raise OptionError("--replicates and --seed are for --intervals LEVEL, such as --intervals 0.9")
    if level is not None and (most_probable or not attributes):
        raise OptionError("--intervals go with probabilities: name attributes, without --map")
    if most_probable:
        if attributes:
            raise OptionError("--map answers for all attributes; leave the names out and fix labels with --given")
        record = model.map_assignment(fixed)
        if as_json:
            print_json({"record": record, "given": fixed, **facts})
        else:
            stamp(model_file, caveats)
            print_table(["attribute", "label"], list(record.items()))
        return
    if not attributes:
        if fixed:
            raise OptionError("--given needs attributes to ask for, or --map")
        if as_json:
            print_json(model.to_document() | facts)
        else:
            stamp(model_file, caveats)
            _describe(model)
        return
    cells = math.prod(model.domain.shape(attributes))
    if top is None and cells > _MOST_ROWS:
        raise OptionError(f"that table has {cells:,} rows; name fewer attributes, or ask for the largest with --top N")
    table = model.marginal(attributes, given=fixed)  # first: it refuses what cannot be asked
    columns = {"probability": table}
    if level is not None:
        checked_level(level)
        model = with_replicates(loaded, model_file, replicates, seed).using(inference)
        found = model.intervals(attributes, given=fixed, level=level)
        columns |= {"standard error": found.standard_error, "low": found.low, "high": found.high}
    labels = [model.domain[name].labels for name in attributes]
    values = zip(*(column.reshape(-1).tolist() for column in columns.values()), strict=True)
    rows = list(zip(itertools.product(*labels), values, strict=True))
    if top is not None:
        rows = sorted(rows, key=lambda row: -row[1][0])[:top]
    if as_json:
        keys = [name.replace(" ", "_") for name in columns]
        print_json(
            {
                "attributes": list(attributes),
                "given": fixed,
                **facts,
                "converged": model.converged,
                **({} if level is None else {"level": level, "replicates": len(model.replicates)}),
                "rows": [{"labels": list(names), **dict(zip(keys, row, strict=True))} for names, row in rows],
            }
        )
        return
    stamp(model_file, caveats)
    print_table([*attributes, *columns], [[*names, *(f"{value:.6f}" for value in row)] for names, row in rows])


@click.command()
@click.argument("model_file", metavar="MODEL", type=_file)
@click.option("-n", "--count", type=click.IntRange(0), required=True, help="How many records.")
@click.option("-o", "--output", type=_file, required=True, help="The .csv, .parquet or .arrow file to write.")
@click.option("--seed", type=click.IntRange(0), default=None, help="Repeat a draw; sampling is free in privacy.")
@click.option(
    "--datasets",
    type=click.IntRange(2, 1000),
    default=None,
    help="That many files, OUTPUT-1 and so on, that differ as much as the model is uncertain.",
)
@json_option
def sample(model_file: Path, count: int, output: Path, seed: int | None, datasets: int | None, as_json: bool) -> None:
    """Draw synthetic records from MODEL into a file, with their guarantee; only an earlier sample is replaced.

    It is in the schema's metadata `dpgm` of a .parquet or .arrow file, and beside a .csv file in OUTPUT.dpgm.json.
    """
    from dpgm_core.errors import OptionError
    from dpgm_core.randomness import SeededRandomness
    from dpgm_core.releases.stamps import caveats_of, stamp_of

    if output.suffix not in (".csv", ".parquet", ".arrow"):
        raise OptionError(f"cannot write {output.name}: the name must end in .csv, .parquet or .arrow")
    model = _load(model_file)
    randomness = None if seed is None else SeededRandomness(seed)
    texts = [text for one in model.domain for text in (one.name, *one.labels)]
    quoted = any(letter in text for text in texts for letter in ',"\r\n')
    files = [output]
    if datasets is not None:
        files = [output.with_stem(f"{output.stem}-{number}") for number in range(1, datasets + 1)]
    for file in files:
        check_output(file)
    if datasets is None:
        write_records(model.sample(count, randomness=randomness), output, quoted=quoted)
    else:
        if len(model.replicates) < datasets:
            model = with_replicates(model, model_file, max(datasets, DEFAULT_REPLICATES), seed)
        for file, table in zip(files, model.sample_datasets(count, datasets, randomness=randomness), strict=True):
            write_records(table, file, quoted=quoted)
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        named = {"file": str(output)} if datasets is None else {"files": [str(file) for file in files]}
        print_json({"records": count, **named, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    for file in files:
        say(f"{count} synthetic records: {file}")


@click.command()
@click.argument("model_file", metavar="MODEL", type=_file)
@click.option("--against", type=_file, help="Another model file: KL(that || MODEL) and total variation.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Records, or the spec that says how to read them: exact, NOT PRIVATE.",
)
@click.option("--allow-non-private", is_flag=True, help="Say that results from --data may be shown.")
@json_option
def evaluate(model_file: Path, against: Path | None, data: Path | None, allow_non_private: bool, as_json: bool) -> None:
    """Distances of MODEL from another model, from its own noisy tables, or (not private) from records."""
    from dpgm_core.errors import OptionError
    from dpgm_core.evaluate import kl_divergence, total_variation
    from dpgm_core.releases.stamps import caveats_of, stamp_of

    if against is not None and data is not None:
        raise OptionError("give --against or --data, not both")
    model = _load(model_file)
    kl, models = None, {model_file: model}
    if against is not None:
        models[against] = other = _load(against)
        kl = kl_divergence(other, model)  # first: it says when the two are over different domains
        distances = total_variation(model, other)
    elif data is not None:
        distances = total_variation(model, _records_of(data), allow_non_private=allow_non_private)
        talk(f"dpgm: {_EXACT}")
    elif model.releases:
        # the quietest last: of a table that several releases hold, it is the one compared with
        distances = {}
        known = [model.release] if model.pooled and model.release is not None else model.releases
        for one in sorted(known, key=lambda one: -float(max(one.variances)) / one.total**2):
            distances |= total_variation(model, one.tables)
    else:
        raise OptionError("the model carries no release; give --against MODEL or --data FILE")
    caveats = dict.fromkeys(caveat for one in models.values() for caveat in caveats_of(one.releases))
    privacy = "post-processing of releases: private as they are"
    if data is not None:
        privacy = _EXACT
    elif caveats:
        privacy = f"post-processing of releases, and no more private than they are: {'; '.join(caveats)}"
    if as_json:
        rows = [{"clique": list(clique), "total_variation": value} for clique, value in distances.items()]
        facts = {str(path): stamp_of(one.releases, one.guarantee()) for path, one in models.items()}
        print_json({"kl": kl, "tables": rows, "privacy": privacy, "models": facts})
        return
    for path, shown in models.items():
        stamp(path, caveats_of(shown.releases))
    if kl is not None:
        say(f"KL(other || model) = {kl:.6g} nats")
        say()
    print_table(
        ["table", "total variation"], [[" x ".join(clique), f"{value:.4f}"] for clique, value in distances.items()]
    )
    say()
    say(privacy)


def _records_of(data: Path) -> object:
    """Records named by a file, or by the spec that says how to read them."""
    if data.suffix != ".toml":
        return data
    from dpgm_core.components.registry import make
    from dpgm_core.spec import load_spec

    named = load_spec(data).data
    return make("source", named) if isinstance(named, dict) else named


def _load(path: Path) -> Model:
    from dpgm_core.models.reading import load_model

    return load_model(path)


def _given(pairs: tuple[str, ...]) -> dict[str, str]:
    from dpgm_core.errors import OptionError

    fixed = {}
    for pair in pairs:
        name, equals, label = pair.partition("=")
        if not equals or not name:
            raise OptionError(f"--given must look like ATTRIBUTE=LABEL, got {pair!r}")
        if name in fixed:
            raise OptionError(f"--given names {name!r} twice; fix each attribute once")
        fixed[name] = label
    return fixed


def _describe(model: Model) -> None:
    print_table(
        ["attribute", "labels"],
        [[one.name, ", ".join(one.labels[:8]) + (", ..." if one.size > 8 else "")] for one in model.domain],
    )
    say()
    say_lines(model.structure.describe())
    if not model.converged:
        say()
        say("WARNING: the learner did not converge")
    for note in model.provenance.get("notes", ()):
        say(f"note: {note}")
    say()
    say(model.guarantee())
