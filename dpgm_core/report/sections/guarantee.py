"""The guarantee in words: who is protected, how well, on what condition, and what is not covered."""

from __future__ import annotations

import math

from dpgm_core.markup import Html
from dpgm_core.models.standing import quote_names
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.meaning import of_group
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.report.material import Material, Promised
from dpgm_core.report.parts import (
    Section,
    cut,
    data_table,
    facts,
    fold,
    join,
    listing,
    name,
    paragraph,
    per_cent,
    stamp,
)
from dpgm_core.report.wording import CONVERTED_AT, amounts, guess_text, odds_text, rounded_up

__all__ = ["section"]

#: Prior beliefs of an attacker, for which the table bounds the posterior.
_BELIEFS = (0.01, 0.1, 0.5)
_GROUP_SIZES = (1, 2, 5, 10)
#: Letters of the guarantee that are shown unfolded; that of a thousand rounds is longer.
_MAX_LETTERS = 3000
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


def section(material: Material) -> Section:
    """The guarantee."""
    return Section("guarantee", "The guarantee", _body(material))


def _body(material: Material) -> Html:
    model, cost = material.model, material.model.cost
    if cost is None:
        return join([paragraph(model.guarantee()), _reach(material)])
    terms = material.releases[0].terms
    parts = [stamp(condition, condition=True) for condition in material.conditions]
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
    parts += [_conditions(material), _reach(material), _verbatim(model.guarantee())]
    return join(parts)


def _terms(material: Material, terms: Terms) -> Html:
    relation = {
        Neighbours.ADD_REMOVE: "one of them has one protected unit more than the other (add-remove)",
        Neighbours.REPLACE_ONE: "the values of one protected unit differ, and the number of units is the same and "
        "public (replace-one)",
    }[terms.neighbours]
    rows = f", counted with at most {terms.rows_per_person} rows" if terms.rows_per_person > 1 else ""
    key = "none: each row stands for itself" if terms.person is None else name(terms.person)
    pairs = [
        ("Protected unit", join([name(terms.protected), rows])),
        ("Two data sets are neighbours if", relation),
        ("Column that tells persons apart", key),
        ("Privacy loss", amounts(material.model.cost) if material.model.cost is not None else "unknown"),
        ("Number of records", _TOTALS[material.policy]),
    ]
    rules = [rule.name for rule in material.model.domain.constraints]
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
    if promised.budget.kind == "zcdp":
        implied = [(delta, promised.budget.to_approx(delta).epsilon) for delta in CONVERTED_AT]
        table = [[f"δ = {float(delta):g}", f"ε = {float(epsilon) + 5e-4:.3f}"] for delta, epsilon in implied]
        parts.append(data_table("What the ρ implies", ["at", "at most"], table, numbers={1}))
    return join(parts)


def _bound(cost: Budget) -> Html:
    """State the bound between the probabilities of an outcome under two neighbours."""
    if cost.kind == "zcdp":
        words = (
            "How far its probabilities under the two are apart is bounded on average: every Rényi divergence of order "
            f"α is at most αρ, with {amounts(cost)} (zero-concentrated differential privacy, zCDP)."
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
        rows = [[per_cent(belief, 0), _believed(belief, float(cost.epsilon))] for belief in _BELIEFS]
        caption = "How sure such an attacker can become " + ("that the unit is in" if adding else "of one of the two")
        parts.append(data_table(caption, ["sure before", "afterwards at most"], rows, numbers={0, 1}))
    if adding:
        parts.append(paragraph(_known_to_be_in(promised.exchange)))
    return join(parts)


def _known_to_be_in(exchange: Budget | None) -> str:
    """Under add-remove an exchange of values is a removal and an addition. exchange: its loss, None without a bound."""
    words = "Of a unit that is known to be in the data, one set of values can be told from another "
    if exchange is None:
        return f"{words}without a bound."
    words += f"at a loss of at most {_short(exchange)}"
    return f"{words}: a guess between the two is right in at most {guess_text(exchange)} of cases."


def _believed(belief: float, epsilon: float) -> str:
    odds = belief / (1 - belief) * math.exp(epsilon)
    return f"{math.ceil(1000 * odds / (1 + odds) - 1e-9) / 10:g} %"


def _groups(terms: Terms, promised: Promised) -> Html:
    rows = []
    for size in _GROUP_SIZES:
        worth = None if promised.budget is None else of_group(promised.budget, size)
        rows.append(
            [f"{size}", "no bound", "no bound"] if worth is None else [f"{size}", _short(worth), guess_text(worth)]
        )
    whose = "" if terms.person is not None else " A person with several rows is such a group too."
    words = (
        "The promise is about one unit at a time. Facts that several share, as a family does, are covered less: a "
        f"group together has the weaker bound of this table.{whose}"
    )
    caption = "Several units together"
    table = data_table(caption, ["units", "privacy loss", "guess right at most"], rows, numbers={0, 1, 2})
    return join([Html("<h3>Families and other groups</h3>"), paragraph(words), table])


def _short(budget: Budget) -> str:
    if budget.kind == "approx":
        return f"ε = {rounded_up(budget.epsilon, 4)}, δ = {rounded_up(budget.delta)}"
    return amounts(budget)


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
    """The sentence of the guarantee that says what is public."""
    text = material.model.guarantee()
    start = text.find("Assumed public: ")
    if start < 0:
        return "the domain, the structure and every setting of the run."
    return text[start + len("Assumed public: ") :].split(". ")[0].rstrip(".") + "."


def _reach(material: Material) -> Html:
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
            "protected less."
        )
    return join([Html("<h3>What is not covered</h3>"), listing(items)])


def _verbatim(guarantee: str) -> Html:
    quoted = Html(f"<blockquote>{paragraph(guarantee)}</blockquote>")
    heading = Html("<h3>The guarantee, word for word</h3>")
    return join([heading, quoted if len(guarantee) < _MAX_LETTERS else fold("Show all of it", quoted)])
