"""Checks of the ledger; the subject is its class. No plugin offers one: these checks hold core's own."""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from dpgm_core.errors import BudgetError, DpgmError, ModelFileError, Overspent
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_testing.check import Checklist, require, require_refusal
from dpgm_testing.subjects import ClassSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("ledger")


@contextmanager
def _new(subject: ClassSubject, budget: Budget | None = None, **terms: Any) -> Iterator[tuple[Any, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger"
        settings = {"name": "x", "budget": budget or Budget.pure(1), "neighbours": "add-remove"} | terms
        yield subject.component.create(path, **settings), path


def _on_disk(path: Path) -> list[Budget]:
    """The charges as another program reads them from the file."""
    with closing(sqlite3.connect(path)) as connection:
        return [Budget.parse(json.loads(cost)) for (cost,) in connection.execute("SELECT cost FROM charges")]


@CHECKS.add()
def charges_are_on_disk_when_charge_returns(subject: ClassSubject) -> None:
    """Another connection sees the charge as soon as `charge` has returned. Cannot show: what a power cut undoes."""
    with _new(subject) as (ledger, path):
        for number in range(1, 4):
            ledger.charge(Budget.pure("1/10"))
            seen = len(_on_disk(path))
            require(seen == number, f"{number} charges were made, {seen} are in the file")
        require(subject.component.open(path).spent() == Budget.pure("3/10"), "reopened, the ledger forgot a charge")


@CHECKS.add()
def sums_are_exact(subject: ClassSubject) -> None:
    """Ten charges of 0.1 fill 1, and nothing more goes in, not even 10^-30; thirds fill it too. Cannot show: sums of
    more than a few charges."""
    for part, count in (("0.1", 10), ("1/3", 3), ("1/7", 7)):
        with _new(subject) as (ledger, _):
            for _ in range(count):
                ledger.charge(Budget.pure(part))
            require(ledger.remaining().is_zero, f"after {count} charges of {part} {ledger.remaining()} remains")
            more = f"{count} charges of {part} fill the ledger, and 1e-30 more"
            require_refusal(more, partial(ledger.charge, Budget.pure("1e-30")), Overspent, answered="was charged")


@CHECKS.add()
def refused_charges_leave_no_trace(subject: ClassSubject) -> None:
    """A charge beyond the budget raises Overspent and changes nothing; `check` never charges. Cannot show: other
    refusals."""
    with _new(subject) as (ledger, path):
        ledger.charge(Budget.pure("0.5"))
        for asked in ("0.6", "100"):
            for call in (ledger.charge, ledger.check):
                what = f"{asked}, of a ledger that has 0.5 left,"
                require_refusal(what, partial(call, Budget.pure(asked)), Overspent, answered="was not refused")
        ledger.check(Budget.pure("0.5"))
        require(_on_disk(path) == [Budget.pure("0.5")], f"the file holds {_on_disk(path)} after refusals")


@CHECKS.add()
def races_do_not_overspend(subject: ClassSubject) -> None:
    """Eight threads that charge 0.3 of 1 at once, five times over: three get in, never four. Cannot show: processes on
    a network disk."""
    for _ in range(5):
        with _new(subject) as (ledger, path):
            barrier = threading.Barrier(8)
            won: list[int] = []

            def charge(ledger: Any = ledger, barrier: threading.Barrier = barrier, won: list[int] = won) -> None:
                barrier.wait()
                with suppress(BudgetError):
                    won.append(ledger.charge(Budget.pure("0.3")))

            threads = [threading.Thread(target=charge) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            require(len(won) <= 3, f"{len(won)} charges of 0.3 went into a budget of 1")
            require(
                len(_on_disk(path)) == len(won), f"{len(won)} charges succeeded, {len(_on_disk(path))} are in the file"
            )
            require(len(won) == 3, f"only {len(won)} of three charges that fit went in")


@CHECKS.add()
def kinds_add_up_by_their_rules(subject: ClassSubject) -> None:
    """Pure charges to a zCDP ledger count eps^2 / 2, zCDP charges to an (epsilon, delta) ledger are converted at its
    delta', and kinds that do not add up are refused. Cannot show: better composition theorems."""
    with _new(subject, Budget.zcdp("1/2")) as (ledger, _):
        ledger.charge(Budget.pure("1/2"))
        ledger.charge(Budget.zcdp("1/8"))
        require(
            ledger.spent() == Budget.zcdp("1/4"), f"eps = 1/2 and rho = 1/8 come to {ledger.spent()}, not rho = 1/4"
        )
    with _new(subject, Budget.approx(5, "1e-6"), conversion_delta="1e-7") as (ledger, _):
        ledger.charge(Budget.approx(1, "1e-7"))
        ledger.charge(Budget.zcdp("1/100"))
        # the least over all orders 1 + a (Canonne, Kamath, Steinke 2020, Corollary 13)
        rho, a = 0.01, np.geomspace(1, 1000, 400_001)
        at_order = (1 + a) * rho + (math.log(1e7) - np.log1p(a)) / a - np.log1p(1 / a)
        expected = 1 + float(np.min(at_order))
        spent = ledger.spent()
        require(
            abs(float(spent.epsilon) - expected) < 1e-9,
            f"epsilon comes to {float(spent.epsilon):.9g}, not {expected:.9g}",
        )
        require(spent.delta == Budget.approx(1, "2e-7").delta, f"delta comes to {spent.delta}, not 2e-7")
    with _new(subject, Budget.gdp("1/2")) as (ledger, _):
        ledger.charge(Budget.gdp("3/10"))
        ledger.charge(Budget.pure("1/10"))
        spent = ledger.spent().mu_squared
        require(
            0 < spent - Fraction(9, 100) - Fraction(math.pi) / 200 < 1e-8,
            f"mu = 3/10 and eps = 1/10 come to mu^2 = {float(spent):.9g}, not to 9/100 + pi / 200",
        )
    with _new(subject, Budget.approx(1, "1e-6"), account="gaussian") as (ledger, _):
        for _ in range(10):
            ledger.charge(Budget.approx("1/10", "1e-7").gdp_within())
        epsilon = float(Budget.parse(ledger.to_dict()["spent_in_all"]).epsilon)
        require(abs(epsilon - 0.2981) < 1e-4, f"ten charges of (.1, 1e-7) come to epsilon {epsilon:.5g}, not to .2981")
    for whole, part in (
        (Budget.gdp(1), Budget.zcdp("1e-9")),
        (Budget.pure(1), Budget.zcdp("0.1")),
        (Budget.zcdp(1), Budget.approx("0.1", "1e-9")),
    ):
        with _new(subject, whole) as (ledger, _):
            charge = partial(ledger.charge, part)
            require_refusal(f"{part}", charge, BudgetError, answered=f"was charged to a ledger of {whole}")


@CHECKS.add()
def terms_are_fixed(subject: ClassSubject) -> None:
    """Another relation, unit, person key or rows per person is refused; an existing file is not overwritten. Cannot
    show: an old copy put back, which is a stated limit."""
    with _new(subject, unit="one visit", person="id", rows_per_person=3) as (ledger, path):
        good = Terms(neighbours="add-remove", unit="one visit", person="id", rows_per_person=3)
        ledger.check_terms(good)
        for other in (
            evolve(good, neighbours="replace-one"),
            evolve(good, unit="one person"),
            evolve(good, person="ward"),
            evolve(good, person=None, rows_per_person=1),
            evolve(good, rows_per_person=1),
        ):
            check = partial(ledger.check_terms, other)
            require_refusal(f"a release under {other}", check, BudgetError, answered="was let in")
        create = partial(subject.component.create, path, name="y", budget=Budget.pure(100), neighbours="add-remove")
        require_refusal("an existing ledger", create, BudgetError, answered="was overwritten")


@CHECKS.add()
def nonsense_is_refused(subject: ClassSubject) -> None:
    """What is no positive Budget raises BudgetError; a missing or damaged file raises ModelFileError. Cannot show:
    every way of damaging a file."""
    with _new(subject) as (ledger, path):
        for bad in (None, 1, 0.1, True, math.nan, "0.1", Budget.zero("pure")):
            require_refusal(f"charge({bad!r})", partial(ledger.charge, bad), BudgetError, answered="is accepted")
        require(not _on_disk(path), "a refused charge is in the file")
        content = path.read_bytes()
        broken = {"cut short": content[: len(content) // 2], "foreign": b"hello" * 100}

        def opened() -> object:
            return subject.component.open(path).spent()

        for what, replacement in broken.items():
            path.write_bytes(replacement)
            require_refusal(f"a ledger {what}", opened, ModelFileError, answered="is opened")
        missing = path.with_name("missing.ledger")
        require_refusal("a missing ledger", partial(subject.component.open, missing), DpgmError, answered="is opened")
        require(not missing.exists(), "opening a missing ledger creates it")
