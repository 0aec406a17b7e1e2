"""The frame of a page: one HTML file that needs nothing else and may load nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from dpgm_core.markup import Html, tag, text
from dpgm_core.report.parts import Section

__all__ = ["page"]


def page(
    *, kind: str, title: str, opening: Html, sections: Sequence[Section], mark: Html | None, footer: object
) -> Html:
    """A page. kind: what it is, which its first line tells other programs too, such as "dpgm report".

    opening: what stands under the title. mark: a stamp for each section, None where nothing is wrong.
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
    contents = tag(
        "nav",
        tag("ol", *(tag("li", _link(number, one)) for number, one in enumerate(sections, start=1))),
        class_="contents",
        aria_label="Contents",
    )
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


def _link(number: int, section: Section) -> Html:
    return tag("a", tag("span", f"{number}", class_="of"), section.title, href=f"#{section.key}")


def _section(number: int, section: Section, mark: Html | None) -> Html:
    heading = tag("h2", tag("span", f"{number}", class_="of"), section.title, id=f"{section.key}-title")
    return tag("section", heading, mark or "", section.body, id=section.key, aria_labelledby=f"{section.key}-title")


def _asset(name: str) -> str:
    return files("dpgm_core.report").joinpath(name).read_text(encoding="utf-8")
