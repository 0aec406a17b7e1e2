"""The command `dpgm study`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm.cli.common import (
    json_option,
    print_err,
    print_json,
    print_lines,
    print_out,
    progress_option,
    progress_shown,
    settings_option,
)

if TYPE_CHECKING:
    from dpgm.study.result import StudyResult

__all__ = ["study"]

_KINDS = ("learner", "inference", "mechanism", "selector")


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--truth", type=click.Path(dir_okay=False, path_type=Path), help="Model to draw records from.")
@click.option("--learner", multiple=True, metavar="NAME", help="Learner to compare; repeatable, as are the next five.")
@click.option("--inference", multiple=True, metavar="NAME", help="Inference to compare.")
@click.option("--mechanism", multiple=True, metavar="NAME", help="Mechanism to compare.")
@click.option(
    "--selector",
    "--select",
    "selector",
    multiple=True,
    metavar="NAME",
    help="Selector to compare; 'named' stands for the named cliques.",
)
@click.option(
    "--budget", multiple=True, metavar="KEY=AMOUNT", help="Budget, such as epsilon=1 or epsilon=1,delta=1e-6."
)
@click.option("--records", multiple=True, type=int, metavar="N", help="Number of records drawn in each run.")
@click.option("--repeat", type=int, help="Number of runs of each combination; 20 if the spec has none.")
@click.option("--seed", type=int, help="Seed of all records and noise.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Number of processes; more than one needs joblib.")
@click.option("--limit", type=float, metavar="SECONDS", help="Time limit of a run, after which it has failed.")
@click.option("--retry", is_flag=True, help="Repeat runs that failed before.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the runs. An existing study is continued.",
)
@settings_option
@json_option
@progress_option
def study(spec: Path, truth: Path | None, output: Path | None, as_json: bool, **options: Any) -> None:
    """Compare errors, seconds and failures of components on records drawn from a model. Reads no data, charges nothing.

    SPEC is the file of a study, or with --truth that of a run. NAME may have options: "{name = 'cgm-em', tau = 2}". The
    same command continues a stopped study, and adds further repeats and combinations.
    """
    from dpgm.study.runs import run
    from dpgm.study.spec import load_study

    loaded = load_study(spec, options["settings"], truth=truth, instead=_instead(options))
    for note in loaded.remarks:
        print_err(f"dpgm: {note}")
    folder = output or loaded.output
    assert folder is not None  # a file always has one
    try:
        with progress_shown() as progress:
            done = run(
                loaded, folder, jobs=options["jobs"], limit=options["limit"], retry=options["retry"], progress=progress
            )
    except KeyboardInterrupt:
        print_err(f"dpgm: what is finished is in {folder}; the same command goes on")
        raise
    _write(done, folder)
    if as_json:
        print_json({**done.to_dict(), "folder": str(folder)})
        return
    print_lines(done.text())
    print_out(f"runs, table and picture: {folder}")


def _write(done: StudyResult, folder: Path) -> None:
    """The table and the picture, beside the runs that they are made of."""
    from dpgm_core._util.files import PICTURE_FILE, atomic_write

    for name, content, kind in (("study.csv", done.csv(), "another file"), ("study.svg", done.svg(), PICTURE_FILE)):
        atomic_write(folder / name, content.encode(), replaces=kind)  # its own, of the time before


def _instead(options: dict[str, Any]) -> dict[str, Any]:
    """Keys of the spec, from the options that were given."""
    from dpgm.spec import parse_setting

    def component(text: str) -> Any:
        return parse_setting(f"name={text}")[1] if text.lstrip().startswith("{") else text

    changes: dict[str, Any] = {key: [component(text) for text in options[key]] for key in _KINDS if options[key]}
    if options["budget"]:
        changes["budget"] = [_budget(text) for text in options["budget"]]
    if options["records"]:
        changes["records"] = list(options["records"])
    return changes | {key: options[key] for key in ("repeat", "seed") if options[key] is not None}


def _budget(text: str) -> dict[str, str]:
    """epsilon=1,delta=1e-6 as a table; amounts stay texts, which are exact."""
    from dpgm_core.errors import OptionError

    budget = {}
    for part in text.split(","):
        key, equals, amount = part.partition("=")
        if not equals or not key.strip() or not amount.strip():
            raise OptionError(f"--budget must look like epsilon=1, rho=0.1 or epsilon=1,delta=1e-6; got {text!r}")
        budget[key.strip()] = amount.strip()
    return budget
