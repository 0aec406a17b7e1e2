"""What an earlier run of a spec came to, and the command that goes on from there."""

from __future__ import annotations

import math
import os
import shlex
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve

from dpgm_core.errors import DpgmError, Overspent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpgm.spec import Spec
    from dpgm_core.privacy.ledger import Ledger

__all__ = ["explain_labels", "explain_run", "explain_rest", "repeated_command"]

_ANOTHER = "name another folder, -o, whose costs come on top"
_DIGITS = 3  # of an amount that a message proposes


def repeated_command(more: Sequence[str], spec: Path | None = None) -> str:
    """Return the command that is running, with more options; that of a spec, if one is named."""
    from dpgm_core.domain.domain_files import is_data

    words = ["dpgm", "fit", str(spec)]
    if spec is None:
        context = click.get_current_context(silent=True)
        named = {} if context is None else context.params
        if context is None or "again" not in named or is_data(named["spec"]):
            return f"the same command and {shlex.join(more)}"
        words = ["dpgm", str(context.info_name), str(named["spec"])]
        words += [word for setting in named["settings"] for word in ("--set", setting)]
        words += [] if named["validated"] is None else ["--validated", str(named["validated"])]
        words += ["--again"] if named["again"] else []
    return shlex.join([*words, *more])


def explain_run(run: Spec, spec: Path) -> str:
    """Return what an earlier run of this spec came to, by its files and its ledger, and how to go on."""
    from dpgm.cli.show import is_under_way, unfinished_runs, unfinished_text
    from dpgm_core.privacy.ledger import Ledger

    if is_under_way(run):
        return f"its run is under way; wait for it, or {_ANOTHER}"
    if os.path.lexists(model := run.output / f"{run.name}.dpgm"):
        return f"its run is finished, and its model is {model}, which is free to use; to spend again, {_ANOTHER}"
    left = unfinished_runs(run)
    if left:
        return unfinished_text(run, left, spec)
    ledger = None if run.ledger is None or not run.ledger.path.exists() else Ledger.open(run.ledger.path)
    if ledger is None or not ledger.history():
        return f"nothing is charged yet; go on with: dpgm fit {shlex.quote(str(spec))}"
    try:
        ledger.check(run.budget)
    except DpgmError:
        rest = explain_rest(run, ledger, spec)
        return f"its run was charged and did not finish; {rest or 'too little is left for another one in this folder'}"
    return f"go on with: dpgm fit {shlex.quote(str(spec))}"


def explain_rest(run: Spec, ledger: Ledger, spec: Path | None = None) -> str:
    """Return where the model of a spec is, and the command that spends what its ledger has left; "" for neither."""
    model = run.output / f"{run.name}.dpgm"
    parts = [f"an earlier run finished, and its model is {model}"] if os.path.lexists(model) else []
    settings = _affordable(run, ledger)
    if settings:
        more = [word for setting in settings for word in ("--set", setting)]
        parts.append(f"what is left can be spent with: {repeated_command(more, spec)}")
    return "; ".join(parts)


def explain_labels(run: Spec, labels: Path) -> str | None:
    """Return why a run cannot go on from saved labels, as its ledger has too little left for tables; None if it can."""
    from dpgm_core.privacy.ledger import Ledger
    from dpgm_core.releases.labels import load_discovery

    if run.ledger is None or not run.ledger.path.exists():
        return None
    ledger = Ledger.open(run.ledger.path)
    if ledger.terms.account == "gaussian":  # which has a part of its own for labels
        return None
    try:
        ledger.check(run.budget - load_discovery(labels).cost)
    except Overspent:
        return (
            f"the labels in {labels} are paid for, and tables were charged that their run did not save; "
            f"{ledger.path} has {ledger.remaining()} left, too little for them; another run needs another folder and "
            "ledger, whose costs come on top"
        )
    except DpgmError:  # which the run says
        return None
    return None


def _affordable(run: Spec, ledger: Ledger) -> list[str]:
    """Return settings for what is left, rounded down; none where a run of it would be refused."""
    left = ledger.remaining()
    if left.kind != run.budget.kind or left.kind == "gdp":
        return []
    amounts = {
        key: _rounded_down(getattr(left, key)) for key in ("epsilon", "delta", "rho") if getattr(run.budget, key)
    }
    try:
        trial = evolve(run, budget=type(left).parse(amounts))
        ledger.check(trial.to_run(ledger=ledger).charged.budget)
        trial.to_run().check()
    except DpgmError:
        return []
    return [f"budget.{key}={amount}" for key, amount in amounts.items()]


def _rounded_down(amount: Fraction) -> str:
    """Return the amount with a few digits, as a setting is written."""
    if not amount:
        return "0"
    places = _DIGITS - 1 - math.floor(math.log10(amount))
    return f"{Decimal(math.floor(amount * Fraction(10) ** places)).scaleb(-places).normalize()}".lower()
