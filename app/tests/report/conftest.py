"""What tests of pages share: small models, and a page taken apart."""

from html.parser import HTMLParser

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of

_EMPTY = {"br", "col", "hr", "img", "input", "link", "meta"}


class Parsed(HTMLParser):
    """A page as its reader sees it: elements with their attributes, and the text of each section."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {"": ""}
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self._open: list[str] = []
        self._section = ""
        self.feed(page)
        assert self._open == [], "elements left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _EMPTY:
            self._open.append(tag)
        if tag in self.inside:
            self.inside[tag].append("")
        if tag == "section":
            self._section = str(dict(attrs)["id"])
            self.texts[self._section] = ""

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in self.inside:
            self.inside[self._open[-1]][-1] += data
        else:
            self.texts[self._section] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def sections(self) -> list[str]:
        return [key for key in self.texts if key]


@pytest.fixture(scope="session")
def parsed() -> type[Parsed]:
    return Parsed


DOMAIN = domain_of(sex="F M", town="A B", age="young old", job="y n")
CODES = np.array([[0, 0, 0, 0], [1, 0, 1, 1], [1, 0, 1, 0], [0, 0, 1, 1]] * 100)
STRUCTURE = dpgm.Structure(DOMAIN, [("sex", "age"), ("age", "job")])


@pytest.fixture(scope="session")
def model() -> dpgm.Model:
    fitted = dpgm.fit(CODES, STRUCTURE, dpgm.Budget.pure(1), neighbours="add-remove").model
    theta = fitted.potentials.values + 0.1 * np.random.default_rng(0).normal(size=(5, STRUCTURE.cells))
    return fitted.with_replicates(theta.astype(np.float32))


@pytest.fixture(scope="session")
def codes() -> np.ndarray:
    return CODES
