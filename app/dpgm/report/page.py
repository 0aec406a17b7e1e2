"""The report: one page about a model."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.resources import files
from pathlib import Path

from dpgm.report.analyses_section import analyses_section
from dpgm.report.inputs import Material, Promised
from dpgm.report.model_sections import attributes_section, fit_section, graph_section, pairs_section
from dpgm.report.parts import (
    CONVERTED_AT,
    Section,
    amounts,
    cut,
    facts,
    guess_text,
    join,
    listing,
    name,
    number,
    odds_text,
    paragraph,
    several,
    stamp,
)
from dpgm.report.privacy_sections import (
    charges_section,
    check_ledger,
    chosen_section,
    guarantee_section,
    measured_section,
)
from dpgm.report.related_section import related_section
from dpgm.report.use_sections import origin_section, use_section
from dpgm_core._util.html import Html, tag, text
from dpgm_core._util.locations import open_regular
from dpgm_core._util.version import __version__
from dpgm_core.models.intervals import checked_level
from dpgm_core.models.model import Model
from dpgm_core.privacy.ledger import Ledger

__all__ = ["make_report", "opening", "page"]


# --- Frame ---


def page(
    *, kind: str, title: str, opening: Html, sections: Sequence[Section], mark: Html | None, footer: object
) -> Html:
    """Return a page.

    kind: what it is, such as "dpgm report"; its first line tells other programs too. opening: content under the title.
    mark: a stamp for each section, None if nothing is wrong.
    """
    style, script = _asset("page.css"), _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"{policy}; form-action 'none'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Html(style)),
    )
    links = (
        tag("a", tag("span", f"{number}", class_="of"), one.title, href=f"#{one.key}")
        for number, one in enumerate(sections, start=1)
    )
    listed = tag("ol", *(tag("li", one) for one in links))
    contents = tag("nav", listed, class_="contents", aria_label="Contents")
    main = tag("main", *(_section(at, one, mark) for at, one in enumerate(sections, start=1)), id="main")
    body = tag(
        "body",
        tag("a", "Skip to the sections", href="#main", class_="skip"),
        tag(
            "div",
            tag("header", tag("p", kind, class_="kind"), tag("h1", title), opening),
            tag("div", contents, main, class_="columns"),
            tag("footer", footer),
            class_="sheet",
        ),
        tag("script", Html(script)),
    )
    return Html(f"<!doctype html>\n<!-- {text(kind)} -->\n{tag('html', head, body, lang='en')}\n")


def _section(number: int, section: Section, mark: Html | None) -> Html:
    heading = tag("h2", tag("span", f"{number}", class_="of"), section.title, id=f"{section.key}-title")
    return tag("section", heading, mark or "", section.body, id=section.key, aria_labelledby=f"{section.key}-title")


def _asset(name: str) -> str:
    return files("dpgm.report").joinpath(name).read_text(encoding="utf-8")


# --- First screen ---


def opening(material: Material) -> Html:
    """Return the first screen: the sentence, the stamps and the numbers."""
    marks = [stamp(flaw) for flaw in material.flaws]
    marks += [stamp(condition, condition=True) for condition in material.conditions]
    figures = [tag("div", tag("dt", what), tag("dd", value)) for value, what in _figures(material)]
    lead = [tag("p", _sentence(material), class_="lead"), *marks, _verdict(material)]
    return join([*lead, tag("dl", *figures, class_="figures"), _decision(material)])


def _decision(material: Material) -> Html:
    """Return what a review board fills in and signs, on the first page of the printed report."""
    if not material.promises:
        return Html("")
    lines = ("Purpose of the release", "Privacy loss decided by", "Date", "Signature")
    blanks = facts((line, Html("&nbsp;")) for line in lines)
    return tag("div", paragraph(material.model.guarantee()), blanks, class_="decision", aria_hidden="true")


def _verdict(material: Material) -> Html:
    """Return what was found, in the colour of the verdict."""
    findings = material.findings
    if findings is None:
        return Html("")
    first = paragraph(tag("strong", f"{findings.verdict[0].upper()}{findings.verdict[1:]}."))
    found = listing(f"{cut(one[0].upper() + one[1:], 2000)}." for one in findings.sentences())
    return tag("div", first, found, class_=f"verdict {findings.colour}")


def _sentence(material: Material) -> Html:
    model = material.model
    sentence = f"A statistical model of {several(len(material.columns), 'attribute')}"
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
    """Return values and their descriptions."""
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
        elif promised.budget is not None and cost.kind in ("zcdp", "gdp"):
            converted = promised.budget.to_approx(CONVERTED_AT[0])
            of = f"which the {'ρ' if cost.kind == 'zcdp' else 'μ'} implies" + (
                "" if promised.budget == cost else " of an exchange of values"
            )
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
    "gdp": "Gaussian differential privacy",
}
_POLICIES = {
    "estimated": "estimated from the noisy tables",
    "public": "published exactly",
    "declared": "stated by the owner as public knowledge",
}


# --- Report ---

#: Sections in the order of the page; one without a body is left out.
_SECTIONS = (
    guarantee_section,
    related_section,
    charges_section,
    measured_section,
    chosen_section,
    attributes_section,
    pairs_section,
    graph_section,
    fit_section,
    analyses_section,
    use_section,
    origin_section,
)


def make_report(
    model: Model, *, file: str | Path | None = None, ledger: Ledger | None = None, level: float = 0.9
) -> str:
    """Return an HTML page about a model: its guarantee in words, its measurements, its answers and their errors.

    The page is post-processing of the model's releases: free in privacy, and as private as they are. It loads nothing,
    and equal models, files and ledgers give equal pages.

    Parameters
    ----------
    model : Model
    file : path, optional
        Where the model is saved; its name is in the page's commands, and its SHA-256 in the page.
    ledger : Ledger, optional
        The ledger that the releases were charged to; the page shows its terms and charges, without the owner's notes.
    level : float
        Of the intervals, which a model with replicates has.

    Raises
    ------
    BudgetError
        The ledger is of other releases.
    OptionError
        `level` is not between 0 and 1.

    Examples
    --------
    >>> from dpgm_core import Domain, Model, Structure, Tables
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> page = make_report(Model(structure, Tables.zeros(structure)))
    >>> page.startswith("<!doctype html>"), "NO GUARANTEE" in page
    (True, True)
    """
    path = None if file is None else Path(file)
    with nullcontext() if path is None else open_regular(path) as content:
        digest = None if content is None else hashlib.sha256(content.read()).hexdigest()
    material = Material(
        model,
        file="model.dpgm" if path is None else path.name,
        digest=digest,
        ledger=ledger,
        level=checked_level(level),
    )
    check_ledger(material)
    what = "the model" if path is None else path.stem
    return page(
        kind="dpgm report",
        title=f"Report on {cut(what)}",
        opening=opening(material),
        sections=[made for section in _SECTIONS if (made := section(material)).body],
        mark=marks(material.flaws),
        footer=f"Made by dpgm {__version__} from {_made_from(material)}.",
    )


def _made_from(material: Material) -> str:
    """Return what the page was made from."""
    if not material.releases:
        return f"{cut(material.file)} alone, which carries no release"
    ledger = "" if material.ledger is None else " and the ledger's own entries"
    return f"{cut(material.file)}{ledger or ' alone'}: post-processing of what was released"


def marks(flaws: Sequence[str]) -> Html | None:
    """A stamp for each flaw; None without flaws."""
    return join(stamp(flaw) for flaw in flaws) if flaws else None
