"""Sections on privacy: guarantee, charges, measurements and choices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpgm.report.inputs import Material, Promised
from dpgm.report.noise import Measured, drawn_steps, measured_tables, noise_matrix
from dpgm.report.parts import (
    CONVERTED_AT,
    amounts,
    cut,
    data_table,
    facts,
    fold,
    guess_text,
    join,
    listing,
    long_table,
    name,
    number,
    odds_text,
    paragraph,
    per_cent,
    rounded_up,
    section,
    several,
    stamp,
)
from dpgm_core._util.html import Html, tag
from dpgm_core.errors import BudgetError
from dpgm_core.models.queries import quote_names
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_terms import part_text
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms, change_factor, grow_budget, grow_text
from dpgm_core.releases.release import NoisyTables, discoveries
from dpgm_core.releases.session import bins_of, merges_of, sessions_of, step_facts

__all__ = ["charges_section", "check_ledger", "chosen_section", "guarantee_section", "measured_section"]


# --- Guarantee ---

#: Prior beliefs of an attacker, for which the table bounds the posterior.
_BELIEFS = (0.01, 0.1, 0.5)
_GROUP_SIZES = (1, 2, 5, 10)
#: Letters of the guarantee that are shown unfolded; that of a thousand rounds is longer.
_MAX_GUARANTEE_LETTERS = 3000
_INEXACT_NOISE = (
    "The noise is not drawn as it is described, as the red stamp says. What follows would hold if it were, and is "
    "proven of nothing that was published here."
)
_TOTALS = {
    "estimated": "estimated from the noisy tables, within the guarantee",
    "public": "published exactly",
    "declared": "stated by the owner as public knowledge",
}
#: The add-remove relation once the number of records is published.
_PRESENCE_PUBLIC = (
    "The exact number of records was published, and whoever knows all other records sees from it whether one more is "
    "there. So that a unit is in the data is not hidden at all. What is promised is about the values of a unit that is "
    "known to be in: to exchange them is to remove one unit and to add another, and the loss of that is what follows."
)


@section("guarantee", "The guarantee")
def guarantee_section(material: Material) -> list[object]:
    """Return the section on the guarantee."""
    model, cost = material.model, material.model.cost
    if cost is None:
        return [paragraph(model.guarantee()), _not_covered(material)]
    terms = material.releases[0].terms
    parts: list[object] = [stamp(condition, condition=True) for condition in material.conditions]
    if not material.promises:
        parts.append(
            paragraph(
                "The noise behind this model was drawn from a seed, as in a simulation. Whoever knows the seed can "
                "take the noise away and read the counts, so nothing of what follows is promised: it says what the "
                "same run would promise with noise that nobody can repeat."
            )
        )
    elif material.flaws:
        parts.append(paragraph(_INEXACT_NOISE))
    promised = material.promised
    parts += [_terms(material, terms), _promise(promised, cost), _attacker(promised), _groups(terms, promised)]
    guarantee = model.guarantee()
    quoted = Html(f"<blockquote>{paragraph(guarantee)}</blockquote>")
    parts += [_conditions(material), _not_covered(material), Html("<h3>The guarantee, word for word</h3>")]
    return [*parts, quoted if len(guarantee) < _MAX_GUARANTEE_LETTERS else fold("Show all of it", quoted)]


def _terms(material: Material, terms: Terms) -> Html:
    relation = {
        Neighbours.ADD_REMOVE: "one of them has one protected unit more than the other (add-remove)",
        Neighbours.REPLACE_ONE: "the values of one protected unit differ, and the number of units is the same and "
        "public (replace-one)",
    }[terms.neighbours]
    rows = f", counted with at most {terms.rows_per_person} rows" if terms.rows_per_person > 1 else ""
    key = "none: each row stands for itself" if terms.key is None else name(terms.key)
    pairs = [
        ("Protected unit", join([name(terms.protected), rows])),
        ("Two data sets are neighbours if", relation),
        ("Column that tells persons apart", key),
        ("Privacy loss", amounts(material.model.cost) if material.model.cost is not None else "unknown"),
        ("Number of records", _TOTALS[material.policy]),
    ]
    stated = material.model.domain.constraints if terms.related is None else terms.related.stated
    rules = [rule.name for rule in stated]
    if rules:
        pairs.append(("Rules assumed public", cut(quote_names(rules, most=20))))
    return facts(pairs)


def _promise(promised: Promised, cost: Budget) -> Html:
    parts = [Html("<h3>What is promised</h3>")]
    if cost != promised.budget:
        parts.append(paragraph(_PRESENCE_PUBLIC))
    if promised.budget is None:
        return join([*parts, paragraph("At such a loss nothing is bounded.")])
    differ = "with one protected unit in the first that is not in the second"
    if not promised.presence:
        rows = " in as many rows" if promised.by_rows else ""
        differ = f"equal but for the values of one protected unit{rows}"
    start = f"Take two data sets, {differ}. Whatever was published here could have come from either. "
    end = " Models, queries and samples computed from the release cost nothing more."
    parts.append(paragraph(start, _bound(promised.budget), end))
    if promised.budget.kind in ("zcdp", "gdp"):
        implied = [(delta, promised.budget.to_approx(delta).epsilon) for delta in CONVERTED_AT]
        table = [[f"δ = {float(delta):g}", f"ε = {float(epsilon) + 5e-4:.3f}"] for delta, epsilon in implied]
        parts.append(
            data_table(
                f"What the {'ρ' if promised.budget.kind == 'zcdp' else 'μ'} implies",
                ["at", "at most"],
                table,
                number_columns={1},
            )
        )
    return join(parts)


def _bound(cost: Budget) -> Html:
    """State the bound between the probabilities of an outcome under two neighbours."""
    if cost.kind == "zcdp":
        words = (
            "How far its probabilities under the two are apart is bounded on average: every Rényi divergence of order "
            f"α is at most αρ, with {_budget_text(cost)} (zero-concentrated differential privacy, zCDP)."
        )
        return join([words])
    if cost.kind == "gdp":
        words = (
            "Whoever sees it can tell the two apart no better than one draw of a normal number from one of a normal "
            f"number whose mean is {_budget_text(cost)} standard deviations away (Gaussian differential privacy, GDP)."
        )
        return join([words])
    factor = odds_text(Budget("pure", epsilon=cost.epsilon))
    start = join(
        ["Its probability under the one is at most ", Html("e<sup>ε</sup>"), f" = {factor} times that under the "]
    )
    whatever = "whatever “it” is: a table, the whole model, or any conclusion drawn from it."
    if cost.kind == "pure":
        return join([start, f"other, {whatever}"])
    rare = " δ is room for rare outcomes that the factor does not bound."
    return join([start, f"other, plus δ = {rounded_up(cost.delta)}, {whatever}{rare}"])


def _attacker(promised: Promised) -> Html:
    """State the bound on the best-informed attacker's success."""
    cost, adding = promised.budget, promised.presence
    if cost is None:
        return Html("")
    which = (
        "whether a certain unit is in the data or not" if adding else "which of two sets of values a certain unit has"
    ) + (" in as many rows" if promised.by_rows else "")
    words = (
        "Think of somebody who knows the data of everybody else, every setting of the run and all that was published, "
        f"and who has to tell {which}. If the two are equally likely to begin with, even the best guess is right in at "
        f"most {guess_text(cost)} of cases, and a coin is right in 50 %."
    )
    parts = [Html("<h3>What it means for an attacker</h3>"), paragraph(words)]
    if guess_text(cost) == "100 %":
        parts.append(
            paragraph("The bound is so weak that it promises next to nothing: it lets an attacker be nearly sure.")
        )
    if cost.kind == "pure" and cost.epsilon <= 20:
        rows = [[per_cent(belief, 0), _posterior(belief, float(cost.epsilon))] for belief in _BELIEFS]
        caption = "How sure such an attacker can become " + ("that the unit is in" if adding else "of one of the two")
        parts.append(data_table(caption, ["sure before", "afterwards at most"], rows, number_columns={0, 1}))
    if adding:
        parts.append(paragraph(_known_to_be_in(promised.exchange)))
    return join(parts)


def _known_to_be_in(exchange: Budget | None) -> str:
    """Return a sentence on units known to be in the data: under add-remove an exchange is a removal and an addition.

    exchange: its loss; None without a bound.
    """
    words = "Of a unit that is known to be in the data, one set of values can be told from another "
    if exchange is None:
        return f"{words}without a bound."
    words += f"at a loss of at most {_budget_text(exchange)}"
    return f"{words}: a guess between the two is right in at most {guess_text(exchange)} of cases."


def _posterior(belief: float, epsilon: float) -> str:
    odds = belief / (1 - belief) * math.exp(epsilon)
    return f"{math.ceil(1000 * odds / (1 + odds) - 1e-9) / 10:g} %"


def _groups(terms: Terms, promised: Promised) -> Html:
    rows = []
    for size in _GROUP_SIZES:
        cost = promised.budget
        worth = None if cost is None else grow_budget(cost, change_factor(cost.kind, size))
        rows.append(
            [f"{size}", "no bound", "no bound"]
            if worth is None
            else [f"{size}", _budget_text(worth), guess_text(worth)]
        )
    whose = "" if terms.person is not None else " A person with several rows is such a group too."
    if terms.related is not None:  # a child may be listed under several keys, which nothing can tell
        whose = " A person with rows under several keys is such a group of roots too."
    formula = "" if promised.budget is None else f", of r units {_in_letters(grow_text(promised.budget.kind, 'r'))}"
    words = (
        "The promise is about one unit at a time. Facts that several share, as a family does, are covered less: a "
        f"group together has the weaker bound of this table{formula}.{whose}"
    )
    caption = "Several units together"
    table = data_table(caption, ["units", "privacy loss", "guess right at most"], rows, number_columns={0, 1, 2})
    return join([Html("<h3>Families and other groups</h3>"), paragraph(words), table])


def _in_letters(text: str) -> str:
    """Return a text of `grow_text` in Greek letters."""
    for word, letter in (
        (" epsilon", "ε"),
        ("epsilon", "ε"),
        (" rho", "ρ"),
        (" mu", "μ"),
        ("delta ", "δ"),
        ("delta", "δ"),
        ("^2", "²"),
    ):
        text = text.replace(word, letter)
    return text


def _budget_text(budget: Budget) -> str:
    if budget.kind == "approx":
        return f"ε = {rounded_up(budget.epsilon, 4)}, δ = {rounded_up(budget.delta)}"
    if budget.kind == "gdp":
        return f"μ{part_text(budget, up=True).removeprefix('mu').removesuffix(' (GDP)')}"
    return f"ρ = {rounded_up(budget.rho, 6)}" if budget.kind == "zcdp" else f"ε = {rounded_up(budget.epsilon, 6)}"


def _conditions(material: Material) -> Html:
    conditions = material.model.stamp()["conditions"]
    listed = listing(conditions[:12])
    more = paragraph(f"and {len(conditions) - 12} more, in the guarantee below") if len(conditions) > 12 else ""
    assumed = paragraph(
        "Public, and therefore not protected: ",
        _assumed(material),
        " A thing does not become public by being written down: what was read off the records is a release that nobody "
        "paid for.",
    )
    author = paragraph(
        "What of this the file proves: its cost was computed again from its noise when it was read, and a file that "
        "claims a stronger guarantee is refused. The unit, the relation, that no seed was used and that the noise was "
        "drawn as stated are the word of whoever made the file."
    )
    return join([Html("<h3>On what it rests</h3>"), listed if conditions else "", more, assumed, author])


def _assumed(material: Material) -> str:
    """Return the sentence of the guarantee that lists what is public."""
    text = material.model.guarantee()
    start = text.find("Assumed public: ")
    if start < 0:
        return "the domain, the structure and every setting of the run."
    return text[start + len("Assumed public: ") :].split(". ")[0].rstrip(".") + "."


def _not_covered(material: Material) -> Html:
    own = "" if len(material.releases) < 2 else f" besides the {len(material.releases)} of this model"
    items = [
        "What the population tells: that smokers fall ill more often is a finding about smokers who are not in the "
        "data as much as about those who are.",
        "Facts about groups and about persons whose data follow from one another, such as families and households, "
        "beyond the bounds for groups.",
        "Choices made by looking at the records: labels, ranges, cliques or budgets that somebody picked after seeing "
        "the data are a release that nobody paid for.",
        f"Other releases about the same people{own}, by other tools or outside of the ledger; costs add up.",
        "What those see who run the machines: running time, memory, logs, and the rows themselves.",
        "Plugins, which run with the owner's rights.",
    ]
    if any(one.terms.person is not None for one in material.releases):
        items.append(
            "Rows without a key for their person: they count together as one person, and somebody hidden among them is "
            f"protected less{_without_a_key(material)}."
        )
    if any(one.terms.related is not None for one in material.releases):
        items.append(
            "Rows without a key: in both tables they count together as one root, and a unit hidden among them is "
            f"protected less{_without_a_key(material)}."
        )
    return join([Html("<h3>What is not covered</h3>"), listing(items)])


def _without_a_key(material: Material) -> str:
    """Return the loss of a person of whose rows some have no key: when they leave, others without one may count."""
    cost, relation = material.model.cost, material.releases[0].terms.neighbours
    if cost is None:
        return ""
    alone = all(one.tables_alone for one in material.releases)
    removed = 1 if relation is Neighbours.ADD_REMOVE else 2
    factor = change_factor(cost.kind, 2, removed, tables_alone=alone, neighbours=relation)
    return f": one with such rows, and others with the key, loses up to {_in_letters(grow_text(cost.kind, factor))}"


# --- Costs and ledger ---

_MAX_CHARGES_SHOWN = 40


@section("cost", "What it cost")
def charges_section(material: Material) -> list[object]:
    """Return the section on costs."""
    return [_releases_part(material), _ledger_part(material)]


def check_ledger(material: Material) -> None:
    """Refuse, with BudgetError, a ledger that does not hold the charges of the model's releases."""
    ledger = material.ledger
    if ledger is None:
        return
    if not material.releases:
        raise BudgetError(f"the model carries no release, so nothing of it is in a ledger; leave {ledger.path} out")
    wrong = f"{ledger.path} is not the ledger of this model"
    for provenance, cost in _paid(material):
        named, number = _text_or_none(provenance.get("ledger")), provenance.get("entry")
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
    """Return provenance and cost of each payment."""
    return [
        *((one.provenance, one.cost) for one in discoveries(material.releases)),
        *((one.provenance, one.cost) for one in material.releases if one.round is None),
    ]


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _releases_part(material: Material) -> Html:
    if not material.releases:
        return paragraph("The model carries no release, so nothing is known of what it cost.")
    cost = material.model.cost
    together = "" if cost is None or len(material.releases) < 2 else f" Together they cost {amounts(cost)}."
    rows = [
        [
            f"labels of {cut(', '.join(one.names))}",
            amounts(one.cost),
            _entry_text(one.provenance),
            _privacy_state(one.private, None),
        ]
        for one in discoveries(material.releases)
    ]
    rows += [_release_row(number, one) for number, one in enumerate(material.releases, start=1)]
    header = ["release", "cost", "charged to", "state"]
    most = _MAX_CHARGES_SHOWN, 10 * _MAX_CHARGES_SHOWN
    table = long_table("What was released", header, rows, "release", most=most)
    words = (
        f"The model was made from {several(len(material.releases), 'release')}.{together} Learning, queries, samples "
        "and this page cost nothing."
    )
    return join([paragraph(words), table])


def _release_row(number: int, release: NoisyTables) -> list[object]:
    what = f"{number}: {several(len(release.structure.groups), 'table')}"
    if release.holdout:
        what += ", a holdout"
    if release.session is not None:
        what += f", a session of {several(len(release.steps), 'step')}"
    cost = amounts(release.cost)
    if release.round is not None:
        what += f", round {release.round.number} of {release.round.of}"
    return [what, cost, _entry_text(release.provenance), _privacy_state(release.private, release.unsafe)]


def _entry_text(provenance: object) -> object:
    record = dict(provenance) if isinstance(provenance, dict) else {}
    if "ledger" not in record:
        return "no ledger"
    return join([name(record["ledger"]), f", entry {record.get('entry')}"])


def _privacy_state(private: bool, unsafe: str | None) -> object:
    if not private:
        return tag("span", "seeded: not private", class_="over")
    return "private" if unsafe is None else tag("span", f"unsafe: {unsafe}", class_="over")


def _ledger_part(material: Material) -> Html:
    heading = Html("<h3>The ledger</h3>")
    if material.ledger is None:
        stated = (_text_or_none(provenance.get("ledger")) for provenance, _ in _paid(material))
        ledgers = dict.fromkeys(named for named in stated if named is not None)
        note = "The releases name no ledger: nobody adds up what these people's data have cost in all."
        if ledgers:
            note = (
                "This page was made without the ledger's file, so it does not say what else was charged nor what is "
                f"left. The owner can add it: dpgm report {material.file} --ledger LEDGER."
            )
        return join([heading, paragraph(note)])
    return join([heading, _ledger_facts(material.ledger), _ledger_history(material, material.ledger)])


def _ledger_facts(ledger: Ledger) -> Html:
    terms, entries = ledger.terms, ledger.history()
    spent, account = amounts(ledger.spent()), []
    if terms.account == "gaussian":
        if terms.budget.kind == "approx":
            spent = _budget_text(terms.total([entry.cost for entry in entries]))
        account = [("Adds up", "squares of μ, under an exact Gaussian account")]
    return facts(
        [
            ("Data set", name(terms.name)),
            ("May ever be spent", amounts(terms.budget)),
            ("Spent", f"{spent} in {several(len(entries), 'charge')}"),
            ("Left", amounts(ledger.remaining())),
            *account,
            ("Under", f"{terms.neighbours.value} neighbours, the unit being {cut(terms.unit)}"),
        ]
    )


def _ledger_history(material: Material, ledger: Ledger) -> Html:
    """Return every charge, without the owner's notes."""
    own = {number for one, _ in _paid(material) if isinstance(number := one.get("entry"), int)}
    entries = ledger.history()
    rows = [
        [
            f"{entry.id}",
            entry.when,
            amounts(entry.cost),
            entry.status,
            "; ".join(entry.conditions) or "none",
            "yes" if entry.id in own else "no",
        ]
        for entry in entries
    ]
    header = ["entry", "when (UTC)", "cost", "state", "conditions", "of this model"]
    parts = [data_table("All charges", header, rows[-_MAX_CHARGES_SHOWN:])]
    if len(rows) > _MAX_CHARGES_SHOWN:
        parts.append(
            paragraph(f"The last {_MAX_CHARGES_SHOWN} of {len(rows)}; dpgm ledger show has all.", class_="note")
        )
    if any(entry.conditions for entry in entries):
        parts.append(paragraph("Some charges are conditional: the total is no unconditional guarantee."))
    parts.append(
        paragraph(
            "A ledger adds up what is charged to it and nothing else. The owner's notes in it are left out here.",
            class_="note",
        )
    )
    return join(parts)


# --- Measured tables ---

_MAX_TABLES_SHOWN, _MAX_TABLES_LISTED = 40, 400

_NOISE_NAMES = {
    "discrete-laplace": "discrete Laplace",
    "laplace": "Laplace in floating point",
    "discrete-gaussian": "discrete Gaussian",
    "gaussian": "Gaussian in floating point",
    "truncated-discrete-laplace": "truncated discrete Laplace",
    "tabulated": "tabulated",
}


@section("measured", "What was measured")
def measured_section(material: Material) -> list[object]:
    """Return the section on measured tables."""
    if not material.releases:
        return [paragraph("The model carries no release.")]
    tables = measured_tables(material.releases)
    swamped = sum(one.relative > 1 for one in tables)
    noises = dict.fromkeys(_noise_name(one) for one in drawn_steps(material.releases))
    besides = ["the private choices of the next section"] * material.chose
    besides += ["their exact number"] * (material.policy == "public")
    also = " and ".join(besides) or "nothing else"
    words = (
        f"From the records came {several(len(tables), 'noisy table')} and {also}. Each cell is a count with "
        f"independent noise ({'; '.join(list(noises)[:5])}). The last column is the noise of a cell, one standard "
        "deviation, over the records in the average cell of its table: small tables are known well, large ones roughly."
    )
    parts: list[object] = [paragraph(words)]
    if swamped:
        parts.append(
            paragraph(
                f"In {swamped} of {several(len(tables), 'table')}, as they were measured, the noise is larger than the "
                "average cell, so finer detail there is noise.",
                class_="over",
            )
        )
    if merges_of(sessions_of(material.releases)):
        words = "Cells are those of the measurement: in later steps labels that were taken together count as one."
        parts.append(paragraph(words, class_="note"))
    if any(one.contrasts for one in material.releases):
        parts.append(paragraph("Measured were sums of products of attributes coded +1 and -1, and no cells."))
    parts += _tables_of_noise(tables)
    picture = noise_matrix(material.names, tables)
    if picture is not None:
        parts += [Html("<h3>Which pairs a table holds</h3>"), picture]
    parts += [Html("<h3>Number of records</h3>"), _records_counted(material)]
    if material.model.unmeasured:
        names = [name(one) for one in material.model.unmeasured[:200]]
        parts += [Html("<h3>Not measured</h3>"), _unmeasured(names, len(material.model.unmeasured))]
    return parts


def _noise_name(release: NoisyTables) -> str:
    kinds = dict.fromkeys(_NOISE_NAMES[one.noise.event.kind] for one in release.measurement.calibrations)
    several_widths = " of several widths" if len(set(release.variances.tolist())) > 1 else ""
    return f"{' and '.join(kinds)}{several_widths}"


def _tables_of_noise(tables: Sequence[Measured]) -> list[Html]:
    again = any(one.times > 1 for one in tables)
    header = ["table", "cells", "average cell", "noise (sd)", "noise / average", *(["measured"] if again else [])]
    rows = [_table_row(one, again) for one in tables]
    most = _MAX_TABLES_SHOWN, _MAX_TABLES_LISTED
    caption = "Tables and their noise, in records"
    parts = [long_table(caption, header, rows, "table", most=most, number_columns={1, 2, 3, 4, 5})]
    if len(rows) > _MAX_TABLES_LISTED:
        parts.append(paragraph(f"The first {_MAX_TABLES_LISTED} of {len(rows):,} are listed.", class_="note"))
    return parts


def _table_row(one: Measured, again: bool) -> list[object]:
    first = " × ".join(map(cut, one.group[0])) or "all records"
    tied = "" if len(one.group) == 1 else f" and {len(one.group) - 1} more as one sum"
    holdout = " (holdout)" if one.holdout else ""
    cells = [f"{one.cells:,}", number(one.average), number(one.deviation), per_cent(one.relative)]
    return [f"{first}{tied}{holdout}", *cells, *([f"{one.times} times"] if again else [])]


def _records_counted(material: Material) -> Html:
    counted, surest = material.counted, material.surest
    if counted is None or surest is None:
        return paragraph("It was not measured.")
    total, error = counted
    what = f"{number(total, 4)} {material.counted_as}"
    if surest.total_policy == "estimated":
        return paragraph(
            f"About {what}, estimated from the noisy tables; the noise of the estimate is {number(error, 2)} (one "
            "standard deviation)."
        )
    if surest.total_policy == "public":
        return paragraph(f"{what}, published exactly.")
    return paragraph(f"{what}, which the owner stated as public knowledge.")


def _unmeasured(names: Sequence[Html], count: int) -> Html:
    listed = join(part for one in names for part in (one, ", "))[:-2]
    more = f", and {count - len(names)} more" if count > len(names) else ""
    return paragraph(
        f"Of {several(count, 'attribute')} no table tells anything, and the model leaves them out: ", Html(listed), more
    )


# --- Private choices ---

_MAX_CHOICES_SHOWN, _MAX_CHOICES_LISTED, _MAX_NOTE_LETTERS = 20, 300, 400

_STEP_NAMES = {
    "measure": "measure tables",
    "check": "measure tables, to check the structure",
    "select": "choose among candidates",
    "score": "score candidates",
    "mean": "measure the mean error of a model",
    "vote": "vote on the structure",
    "descend": "choose directions of regressions",
}


@section("chosen", "What was chosen privately")
def chosen_section(material: Material) -> list[Html]:
    """Return the section on private choices."""
    sessions = sessions_of(material.releases)
    parts = [*_labels_part(material), *_bins_part(material), *_chosen_structure(material), *_merged_labels(material)]
    if not parts:
        parts = [
            paragraph(
                "No private choice is part of the releases: cliques, labels and bins were named beforehand. The "
                "guarantee assumes that they were known from elsewhere and not read off these records."
            )
        ]
    steps = [step_facts(step) for one in sessions for step in one.steps]
    if steps:
        parts.append(_steps_table(steps))
    return parts


def _labels_part(material: Material) -> list[Html]:
    rows = []
    for discovery in discoveries(material.releases):
        for one in discovery.columns:
            shown = ", ".join(map(cut, one.labels[:_MAX_CHOICES_SHOWN])) + (
                ", ..." if len(one.labels) > _MAX_CHOICES_SHOWN else ""
            )
            rows.append(
                [cut(one.column), f"{len(one.labels):,}", f"{one.noise.threshold:,}", amounts(one.budget), shown]
            )
    parts = []
    if rows:
        header = ["column", "labels found", "persons needed, about", "cost", "the commonest"]
        words = "Which labels occur in these columns was found from the records, for a share of the budget."
        table = data_table("Labels found privately", header, rows, number_columns={1, 2})
        parts += [Html("<h3>Labels</h3>"), paragraph(words), table]
    for discovery in discoveries(material.releases):
        if discovery.described is None:
            continue
        needed = discovery.described.noise
        columns = [
            [cut(name), one.values.kind, f"{one.size:,}", ", ".join(map(cut, one.labels[:_MAX_CHOICES_SHOWN]))]
            for name, one in discovery.attributes.items()
        ]
        words = (
            f"Types, ranges and labels of these columns were found from the records, for {discovery.described.budget} "
            f"together: what about {needed.edge:,} persons have of a range, or {needed.threshold:,} of a label. They "
            "are no knowledge from outside."
        )
        header = ["column", "type", "labels or bins", "the first"]
        parts += [
            Html("<h3>Columns</h3>"),
            paragraph(words),
            data_table("Columns found", header, columns, number_columns={2}),
        ]
    return parts


def _bins_part(material: Material) -> list[Html]:
    rows = [
        [
            cut(one.name),
            f"{len(one.edges) - 1}",
            amounts(one.cost),
            ", ".join(map(cut, one.attribute.labels[: len(one.edges) - 1])),
        ]
        for one in bins_of(sessions_of(material.releases))
    ]
    if not rows:
        return []
    words = "The edges of these bins were chosen from the records, for a share of the budget."
    table = data_table("Bins found privately", ["column", "bins", "cost", "they are"], rows, number_columns={1})
    return [Html("<h3>Bins</h3>"), paragraph(words), table]


def _chosen_structure(material: Material) -> list[Html]:
    sessions = [one for one in sessions_of(material.releases) if one.session is not None and not one.session.named]
    if not sessions:
        return []
    provenance = material.model.provenance
    chooser = dict(provenance.get("selector") or {}).get("name")
    notes = list(dict(provenance.get("selection") or {}).get("notes", []))
    cliques = material.model.observed.cliques
    of = len(sessions[0].session.workload.candidates) if sessions[0].session is not None else 0
    by = "" if chooser is None else f" by the selector {chooser}"
    steps = several(sum(len(one.steps) for one in sessions), "step")
    words = (
        f"The structure was chosen{by} within the stated budget, in {steps}: {several(len(cliques), 'clique')} out of "
        f"{several(of, 'candidate')}. Those that lie inside no other:"
    )
    whole = [set(clique) for clique in cliques]
    listed = [" × ".join(map(cut, clique)) for clique in cliques if not any(set(clique) < one for one in whole)]
    shown = paragraph(", ".join(listed[:_MAX_CHOICES_SHOWN]) + (", ..." if len(listed) > _MAX_CHOICES_SHOWN else ""))
    more = (
        fold(f"All {len(listed)} of them", paragraph(", ".join(listed[:1000])))
        if len(listed) > _MAX_CHOICES_SHOWN
        else ""
    )
    remarks = listing([cut(note, _MAX_NOTE_LETTERS) for note in notes[:_MAX_CHOICES_SHOWN]]) if notes else ""
    return [Html("<h3>Structure</h3>"), join([paragraph(words), shown, more, remarks])]


def _merged_labels(material: Material) -> list[Html]:
    merged = merges_of(sessions_of(material.releases))
    if not merged:
        return []
    items = [
        join([name(one), f": {len(codes)} labels as {max(codes) + 1} in larger tables"])
        for one, codes in list(merged.items())[:200]
    ]
    words = (
        "Labels too rare, and bins too fine, for the noise were taken together, as released tables told; the model "
        "tells them apart again."
    )
    return [Html("<h3>Merged labels</h3>"), paragraph(words), listing(items)]


def _steps_table(steps: list[dict[str, Any]]) -> Html:
    rows = [_step_row(number, step) for number, step in enumerate(steps, start=1)]
    header = ["step", "what", "candidates", "cost", "tables"]
    most = _MAX_CHOICES_SHOWN, _MAX_CHOICES_LISTED
    caption = "Each step could depend on what came out of those before it"
    table = long_table(caption, header, rows, "step", most=most, number_columns={0, 2})
    return join([Html("<h3>Step by step</h3>"), table])


def _step_row(number: int, step: Mapping[str, Any]) -> list[object]:
    tables = [" × ".join(map(cut, clique)) or "all records" for clique in step["cliques"]]
    more = f", and {len(tables) - 4} more" if len(tables) > 4 else ""
    if step["kind"] == "vote" and not step["stable"]:
        tables, more = ["not stable enough to tell"], ""
    candidates = f"{step['candidates']:,}" if "candidates" in step else "-"
    cost = amounts(Budget.parse(step["cost"]))
    return [f"{number}", _STEP_NAMES[step["kind"]], candidates, cost, ", ".join(tables[:4]) + more]
