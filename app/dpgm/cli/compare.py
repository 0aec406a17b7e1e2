"""The command `dpgm compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from dpgm.cli.common import (
    FILE,
    RECORDS,
    json_option,
    print_err,
    print_json,
    print_out,
    print_table,
    progress_option,
    progress_shown,
    stamp,
)
from dpgm.cli.records import records_of
from dpgm.cli.show import print_comparison
from dpgm.cli.task import TaskOptions, print_task, task_options
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpgm_core.models.model import Model
    from dpgm_core.structure.graphs import Clique

__all__ = ["compare"]

_EXACT = "NOT PRIVATE: exact functions of the records"


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--against", type=FILE, hidden=True)  # of dpgm evaluate
@click.option(
    "--domain", "domain_file", type=FILE, help="Domain file for synthetic files, if no FILE is a model or a release."
)
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="SPEC|KEY=VALUE",
    help="Format of CSV files, if neither stamp nor first line shows it: as in dpgm complete.",
)
@click.option(
    "--data", type=RECORDS, help="Records, or the spec that says how to read them. The result is exact and NOT PRIVATE."
)
@click.option("--allow-non-private", is_flag=True, help="Allow results from --data to be shown.")
@task_options
@click.option("-o", "--output", type=FILE, help="Also write a self-contained .html page.")
@json_option
@progress_option
def compare(
    files: tuple[Path, ...],
    against: Path | None,
    domain_file: Path | None,
    dialects: tuple[str, ...],
    data: Path | str | None,
    allow_non_private: bool,
    task: TaskOptions,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare models, releases and synthetic files with the first of them.

    This costs no budget: no records are read, and a table of records counts as synthetic only with the stamp of `dpgm
    sample`; the two tables of a sample of related ones are named by their folder. A single model is compared with the
    noisy tables that it was learned from, or with --data.

    With --task COLUMN classifiers of COLUMN are trained on rows that each model draws, and tested on real rows: those
    of --data exactly, NOT PRIVATE, beside classifiers that are trained on real rows; or those of --spec by one noisy
    table, which the ledger in the spec is charged for.
    """
    from dpgm.comparison.comparison import compare as compare_files
    from dpgm.comparison.page import make_page
    from dpgm_core._util.files import COMPARISON_FILE, atomic_write
    from dpgm_core.domain.domain import Domain

    task.check(data, files)
    if task.column is not None:
        if output is not None or against is not None or domain_file is not None or dialects:
            raise OptionError("--task takes models and real rows; leave --output, --domain and --dialect out")
        print_task(task, files, data, allow_non_private, as_json)
        return
    if output is not None and len(files) == 1:
        raise OptionError("-o needs several files; dpgm report MODEL makes a page about one model")
    if data is not None and (against is not None or len(files) > 1):
        raise OptionError("--data compares one model with records; leave it or the other files out")
    if len(files) == 1:
        _print_distances(files[0], against, data, allow_non_private, as_json)
        return
    if output is not None:
        _check_page(output)
    with progress_shown() as progress:
        progress("comparing", 0, None)
        domain = None if domain_file is None else Domain.load(domain_file)
        comparison = compare_files(*_subjects(files, dialects), names=list(map(str, files)), domain=domain)
    if output is not None:
        atomic_write(output, make_page(comparison).encode(), COMPARISON_FILE)
        print_err(f"dpgm: page: {output}")
    if as_json:
        print_json(comparison.to_dict())
        return
    print_comparison(comparison)


def _subjects(files: Sequence[Path], dialects: Sequence[str]) -> list[Any]:
    """The files, or of CSV files what they are in the dialect that is said."""
    from dpgm.cli.records import is_csv, written
    from dpgm.comparison.subjects import Synthetic, read_subject

    how = written(dialects)
    said = {"delimiter": how.delimiter, "encoding": how.encoding}

    def subject(path: Path) -> Any:
        content = read_subject(path) if dialects and (is_csv(path) or path.is_dir()) else None
        return evolve(content, dialect=said) if isinstance(content, Synthetic) else path

    return [subject(path) for path in files]


def _check_page(path: Path) -> None:
    """Refuse, before anything is computed, a file that is no page or that would replace something else."""
    from dpgm_core._util.files import COMPARISON_FILE, check_writable

    if path.suffix not in (".html", ".htm"):
        raise OptionError(f"cannot write {path.name}: a comparison is a page, so the name must end in .html")
    check_writable(path, COMPARISON_FILE)


def _print_distances(
    path: Path, against: Path | None, data: Path | str | None, allow_non_private: bool, as_json: bool
) -> None:
    """One model against its own noisy tables, records, or, as `dpgm evaluate` had it, another model."""
    from dpgm.comparison.comparison import privacy_of
    from dpgm_core.models.model_file import load_model
    from dpgm_core.pipeline.evaluation import kl_divergence, total_variation
    from dpgm_core.releases.session import caveats_of, stamp_of

    model = load_model(path)
    kl, models = None, {path: model}
    if against is not None:
        models[against] = other = load_model(against)
        kl = kl_divergence(other, model)  # first: it says when the two are over different domains
        distances = total_variation(model, other)
    elif data is not None:
        distances = total_variation(model, records_of(data), allow_non_private=allow_non_private)
        print_err(f"dpgm: {_EXACT}")
    else:
        distances = _own_tables(model)
    unmeasured = list(dict.fromkeys(name for one in models.values() for name in one.unmeasured))
    privacy = _EXACT if data is not None else privacy_of([caveats_of(one.releases) for one in models.values()])
    if as_json:
        rows = [{"clique": list(clique), "total_variation": value} for clique, value in distances.items()]
        facts = {str(name): stamp_of(one.releases, one.guarantee()) for name, one in models.items()}
        print_json({"kl": kl, "tables": rows, "unmeasured": unmeasured, "privacy": privacy, "models": facts})
        return
    for name, shown in models.items():
        stamp(name, caveats_of(shown.releases))
    if unmeasured:
        print_err(
            f"dpgm: no release measured {', '.join(unmeasured)}: tables with them are left out"
            + ("" if kl is None else ", and the KL takes them as the model has them, uniform")
        )
    if kl is not None:
        print_out(f"KL(other || model) = {kl:.6g} nats")
        print_out()
    print_table(
        ["table", "total variation"], [[" x ".join(clique), f"{value:.4f}"] for clique, value in distances.items()]
    )
    print_out()
    print_out(privacy)


def _own_tables(model: Model) -> dict[Clique, float]:
    """Total variation from the noisy tables that it was learned from. Raises OptionError where there are none."""
    from dpgm_core.pipeline.evaluation import total_variation

    if not model.learned:
        raise OptionError("the model carries no release; give another FILE to compare it with, or --data FILE")
    distances: dict[Clique, float] = {}
    # the quietest last: of a table that several releases hold, it is the one compared with; what it was not learned
    # from tells another thing
    for one in sorted(model.seen, key=lambda one: -float(max(one.variances)) / one.total**2):
        distances |= total_variation(model, one.tables)
    return distances
