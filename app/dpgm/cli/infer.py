"""The command `dpgm infer`, for tasks of the UAI competition."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from dpgm.cli.common import FILE, json_option, print_err, print_json, print_lines, print_out, settings_option
from dpgm_core.components.builtins import INFERENCE
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from dpgm.interop.uai_tasks import Task
    from dpgm_core.inference.contract import Beliefs

__all__ = ["infer"]

_MORE = "inference.max_iterations or inference.damping"
_MORE_DRAWS = "inference.burn_in and inference.thinning, or inference.annealing"


@click.command()
@click.argument("model", type=FILE)
@click.option("--evidence", type=FILE, help="An evidence file: n variable state ...")
@click.option("--task", type=click.Choice(["PR", "MAR", "MPE"]), required=True, help="What to compute.")
@click.option("--bounds", is_flag=True, help="With PR: also print certain bounds, from an engine that has them.")
@click.option("-o", "--output", type=FILE, help="The result file to write; by default stdout.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference engine.")
@settings_option
@json_option
def infer(
    model: Path,
    evidence: Path | None,
    task: str,
    bounds: bool,
    output: Path | None,
    inference: str,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Answer one task of the UAI competition on MODEL, a .uai file, in its result format.

    PR is log10 of the partition function, MAR every variable's marginal, MPE a most probable assignment. If an
    approximate engine does not converge, its answer is printed with a warning on stderr. --bounds prints certain bounds
    on PR to stderr, whether the engine converges or not (loopy-bp; this takes longer than the answer).
    """
    from dpgm.interop.uai_tasks import bounds_uai, infer_uai
    from dpgm_core._util.files import atomic_write, check_writable
    from dpgm_core.components.registry import make

    if bounds and task != "PR":
        raise OptionError(f"--bounds are of the partition function: use it with --task PR, not {task}")
    if output is not None:
        check_writable(output, "a UAI result")
    engine = make("inference", inference, **_options(settings))
    text, beliefs = infer_uai(model, evidence, cast("Task", task), engine)
    log10_bounds = None
    if bounds:
        bounds_found = bounds_uai(model, evidence, engine)
        log10_bounds = [bounds_found.low / math.log(10), bounds_found.high / math.log(10)]
        notes = "".join(f"; {note}" for note in bounds_found.notes)
        print_err(f"dpgm: PR is certainly between {log10_bounds[0]:.17g} and {log10_bounds[1]:.17g}{notes}")
    converged = beliefs is None or beliefs.converged
    errors = None if beliefs is None else _errors(beliefs)
    if not converged and beliefs is not None:
        print_err(
            f"dpgm: {inference} did not converge in {beliefs.iterations} iterations, so the answer is only where it "
            f"stopped; raise {_MORE if errors is None else _MORE_DRAWS}"
        )
    if errors is not None:
        print_err(f"dpgm: {inference} averages over draws: Monte Carlo standard errors are up to {errors}")
    if output is not None:
        atomic_write(output, text.encode("ascii"), "a UAI result")
    if as_json:
        print_json(
            {
                "task": task,
                "inference": inference,
                "converged": converged,
                "monte_carlo": errors,
                "bounds": None
                if log10_bounds is None
                else [bound if math.isfinite(bound) else None for bound in log10_bounds],
                "iterations": None if beliefs is None else beliefs.iterations,
                "file": None if output is None else str(output),
                "result": text if output is None else None,
            }
        )
    elif output is None:
        print_lines(text.removesuffix("\n"))
    else:
        print_out(f"{task}: {output}")


def _errors(beliefs: Beliefs) -> str | None:
    """Monte Carlo errors, in words; None of an engine that states none."""
    if beliefs.errors is None or beliefs.log_partition_error is None:
        return None
    return (
        f"{float(beliefs.errors.values.max()):.2g} of probabilities and {beliefs.log_partition_error:.2g} nats of log Z"
    )


def _options(settings: tuple[str, ...]) -> dict[str, object]:
    """`inference.KEY=VALUE` as options of the engine."""
    from dpgm.spec import parse_setting

    options: dict[str, object] = {}
    for setting in settings:
        keys, value = parse_setting(setting)
        if len(keys) != 2 or keys[0] != "inference":
            raise OptionError(f"dpgm infer takes --set inference.KEY=VALUE only, got {setting!r}")
        options[keys[1]] = value
    return options
