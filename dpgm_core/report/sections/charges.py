"""Costs: the charge of each release, and the state of the ledger where its file is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpgm_core.errors import BudgetError
from dpgm_core.ledger.entries import LedgerEntry
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.markup import Html, tag
from dpgm_core.privacy.budget import Budget
from dpgm_core.releases.release import NoisyTables, discoveries
from dpgm_core.report.material import Material
from dpgm_core.report.parts import Section, cut, data_table, facts, fold, join, name, paragraph, several
from dpgm_core.report.wording import amounts

__all__ = ["check_ledger", "section"]

_MAX_ROWS = 40


def section(material: Material) -> Section:
    """Return the section on costs."""
    return Section("cost", "What it cost", join([_releases(material), _ledger(material)]))


def check_ledger(material: Material) -> None:
    """Refuse, with BudgetError, a ledger that does not hold the charges of the model's releases."""
    ledger = material.ledger
    if ledger is None:
        return
    if not material.releases:
        raise BudgetError(f"the model carries no release, so nothing of it is in a ledger; leave {ledger.path} out")
    wrong = f"{ledger.path} is not the ledger of this model"
    for provenance, cost in _paid(material):
        named, number = _text(provenance.get("ledger")), provenance.get("entry")
        if named is None:
            raise BudgetError(f"{wrong}: a release of the model was charged to no ledger; leave the ledger out")
        if named != ledger.name:
            raise BudgetError(f"{wrong}: its releases were charged to {named!r}, and this is {ledger.name!r}")
        if provenance.get("ledger_identity") not in (None, ledger.identity):
            raise BudgetError(f"{wrong}: its releases were charged to another ledger that is named {named!r} too")
        paid = ledger.entry_of(provenance)
        if paid is None or (paid.cost.kind == cost.kind and not cost <= paid.cost):
            raise BudgetError(
                f"{wrong}: its release of {cost} is entry {number} of {named!r}, and here that is "
                + ("missing" if paid is None else f"a charge of {paid.cost}")
            )
    try:
        ledger.check_terms(material.releases[0].terms)
    except BudgetError as error:
        raise BudgetError(f"{wrong}: {error}") from None


def _paid(material: Material) -> list[tuple[Mapping[str, Any], Budget]]:
    """Provenance and cost of each payment."""
    return [
        *((one.provenance, one.cost) for one in discoveries(material.releases)),
        *((one.provenance, one.cost) for one in material.releases if one.round is None),
    ]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _releases(material: Material) -> Html:
    if not material.releases:
        return paragraph("The model carries no release, so nothing is known of what it cost.")
    cost = material.model.cost
    together = "" if cost is None or len(material.releases) < 2 else f" Together they cost {amounts(cost)}."
    rows = [
        [f"labels of {cut(', '.join(one.names))}", amounts(one.cost), _entry(one.provenance), _state(one.private, None)]
        for one in discoveries(material.releases)
    ]
    rows += [_row(number, one) for number, one in enumerate(material.releases, start=1)]
    header = ["release", "cost", "charged to", "state"]
    table = data_table("What was released", header, rows[:_MAX_ROWS])
    more = (
        ""
        if len(rows) <= _MAX_ROWS
        else fold(
            f"The other {several(len(rows) - _MAX_ROWS, 'release')}",
            data_table("Further releases", header, rows[_MAX_ROWS : 10 * _MAX_ROWS]),
        )
    )
    words = (
        f"The model was made from {several(len(material.releases), 'release')}.{together} Learning, queries, samples "
        "and this page cost nothing."
    )
    return join([paragraph(words), table, more])


def _row(number: int, release: NoisyTables) -> list[object]:
    what = f"{number}: {several(len(release.structure.groups), 'table')}"
    if release.holdout:
        what += ", a holdout"
    if release.session is not None:
        what += f", a session of {several(len(release.steps), 'step')}"
    cost = amounts(release.cost)
    if release.round is not None:
        what += f", round {release.round.number} of {release.round.of}"
    return [what, cost, _entry(release.provenance), _state(release.private, release.unsafe)]


def _entry(provenance: object) -> object:
    record = dict(provenance) if isinstance(provenance, dict) else {}
    if "ledger" not in record:
        return "no ledger"
    return join([name(record["ledger"]), f", entry {record.get('entry')}"])


def _state(private: bool, unsafe: str | None) -> object:
    if not private:
        return tag("span", "seeded: not private", class_="over")
    return "private" if unsafe is None else tag("span", f"unsafe: {unsafe}", class_="over")


def _ledger(material: Material) -> Html:
    heading = Html("<h3>The ledger</h3>")
    if material.ledger is None:
        stated = (_text(provenance.get("ledger")) for provenance, _ in _paid(material))
        ledgers = dict.fromkeys(named for named in stated if named is not None)
        note = "The releases name no ledger: nobody adds up what these people's data have cost in all."
        if ledgers:
            note = (
                "This page was made without the ledger's file, so it does not say what else was charged nor what is "
                f"left. The owner can add it: dpgm report {material.file} --ledger LEDGER."
            )
        return join([heading, paragraph(note)])
    return join([heading, _state_of(material.ledger), _history(material, material.ledger)])


def _state_of(ledger: Ledger) -> Html:
    terms, entries = ledger.terms, ledger.history()
    return facts(
        [
            ("Data set", name(terms.name)),
            ("May ever be spent", amounts(terms.budget)),
            ("Spent", f"{amounts(ledger.spent())} in {several(len(entries), 'charge')}"),
            ("Left", amounts(ledger.remaining())),
            ("Under", f"{terms.neighbours.value} neighbours, the unit being {cut(terms.unit)}"),
        ]
    )


def _history(material: Material, ledger: Ledger) -> Html:
    """Every charge, without the owner's notes."""
    own = {number for one, _ in _paid(material) if isinstance(number := one.get("entry"), int)}
    entries = ledger.history()
    rows = [_charge(entry, entry.id in own) for entry in entries]
    header = ["entry", "when (UTC)", "cost", "state", "conditions", "of this model"]
    parts = [data_table("All charges", header, rows[-_MAX_ROWS:])]
    if len(rows) > _MAX_ROWS:
        parts.append(paragraph(f"The last {_MAX_ROWS} of {len(rows)}; dpgm ledger show has all.", class_="note"))
    if any(entry.conditions for entry in entries):
        parts.append(paragraph("Some charges are conditional: the total is no unconditional guarantee."))
    parts.append(
        paragraph(
            "A ledger adds up what is charged to it and nothing else. The owner's notes in it are left out here.",
            class_="note",
        )
    )
    return join(parts)


def _charge(entry: LedgerEntry, own: bool) -> list[object]:
    conditions = "; ".join(entry.conditions) or "none"
    return [f"{entry.id}", entry.when, amounts(entry.cost), entry.status, conditions, "yes" if own else "no"]
