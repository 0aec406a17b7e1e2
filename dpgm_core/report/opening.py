"""The first screen: the model in a sentence, stamps, and the guarantee in numbers."""

from __future__ import annotations

from dpgm_core.markup import Html, tag
from dpgm_core.report.material import Material, Promised
from dpgm_core.report.parts import join, name, number, several, stamp
from dpgm_core.report.wording import CONVERTED_AT, amounts, guess_text, odds_text

__all__ = ["opening"]


def opening(material: Material) -> Html:
    """The sentence, the stamps and the numbers."""
    marks = [stamp(flaw) for flaw in material.flaws]
    marks += [stamp(condition, condition=True) for condition in material.conditions]
    figures = [tag("div", tag("dt", what), tag("dd", value)) for value, what in _figures(material)]
    return join([tag("p", _sentence(material), class_="lead"), *marks, tag("dl", *figures, class_="figures")])


def _sentence(material: Material) -> Html:
    model = material.model
    sentence = f"A statistical model of {several(len(material.names), 'attribute')}"
    if material.counted is None:
        return join([f"{sentence}, written down and not learned from a release."])
    tables = sum(len(one.structure.groups) for one in material.releases)
    learner = dict(model.provenance.get("learner") or {}).get("name")
    of = f" about {number(material.counted[0])} {material.counted_as}"
    sentence = sentence.replace("attributes", "attributes of") if sentence.endswith("s") else f"{sentence} of"
    releases = "" if len(material.releases) == 1 else f" of {several(len(material.releases), 'release')}"
    besides = ["from private choices about them"] * material.chose
    besides += ["from their exact number"] * (material.policy == "public")
    also = " and ".join(besides) or "from nothing else"
    by = "" if learner is None else f" by {learner}"
    sentence = f"{sentence}{of}, learned{by} from {several(tables, 'noisy table')}{releases} and {also}."
    unit = join([" The protected unit is ", name(material.releases[0].unit), "."])
    return join([sentence, unit if material.promises else " It is a simulation: its noise protects nobody."])


def _figures(material: Material) -> list[tuple[str, object]]:
    """Values and what they are."""
    figures: list[tuple[str, object]] = []
    cost = material.model.cost
    if cost is not None and not material.promises:
        figures.append((amounts(cost), "the budget of the simulation, which promises nothing"))
    elif cost is not None:
        promised = material.promised
        but = ", were the noise exact" if material.flaws else ""
        figures.append((amounts(cost), f"the privacy loss of all releases together: {_KINDS[cost.kind]}{but}"))
        odds = None if promised.budget is None else odds_text(promised.budget)
        if odds is not None:
            figures.append((f"× {odds}", f"is the most by which the odds can change that {_about(promised)}{but}"))
        elif promised.budget is not None and cost.kind == "zcdp":
            converted = promised.budget.to_approx(CONVERTED_AT[0])
            of = "which the ρ implies" + ("" if promised.budget == cost else " of an exchange of values")
            figures.append((f"ε ≤ {float(converted.epsilon) + 5e-3:.2f}", f"at δ = {CONVERTED_AT[0]}, {of}"))
        guess = (
            f"is how often at most an attacker who knows all other records guesses right whether {_about(promised)}, "
            f"both being equally likely before{but}; a coin does in 50 %"
        )
        if promised.budget is not None:
            figures.append((guess_text(promised.budget), guess))
    if material.counted is not None and material.surest is not None:
        total, error = material.counted
        how = _POLICIES[material.surest.total_policy]
        spread = f", give or take {number(error, 2)}" if error else ""
        figures.append((number(total, 4), f"{material.counted_as}, {how}{spread}"))
    else:
        figures.append((f"{len(material.model.structure.cliques):,}", "cliques in its structure"))
    return figures


def _about(promised: Promised) -> str:
    """Return what an attacker tries to learn."""
    if promised.presence:
        return "a certain unit is in the data"
    return "a certain unit has one set of values rather than another" + (" in as many rows" if promised.by_rows else "")


_KINDS = {
    "pure": "pure differential privacy",
    "zcdp": "zero-concentrated differential privacy",
    "approx": "approximate differential privacy",
}
_POLICIES = {
    "estimated": "estimated from the noisy tables",
    "public": "published exactly",
    "declared": "stated by the owner as public knowledge",
}
