"""The page on pictures: its code runs, and what it shows is what that code draws, but for the numbers."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpgm_core import Budget, Domain, Model, Structure, Tables, release
from dpgm_core._util.toml import parse_toml
from tests.pages import DOCS, run_here

HEALTH = DOCS / "examples/health"
SHOWN = {"marginal": "visits.svg", "dependence": "dependence.svg", "graph": "graph.svg"}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The folder where the page ran, with a model of other numbers in the place of the tutorial's."""
    spec = parse_toml((HEALTH / "health.toml").read_text(encoding="utf-8"))
    domain = Domain.from_dict(parse_toml((HEALTH / "domain.toml").read_text(encoding="utf-8")))
    structure = Structure.from_dict(domain, spec["structure"])
    rng = np.random.default_rng(0)
    records = np.stack([rng.integers(one.size, size=200) for one in domain], axis=1)
    noisy = release(records, structure, Budget.pure(1), neighbours="add-remove")
    values = 0.5 * rng.normal(size=structure.cells)
    refits = (values + 0.01 * rng.normal(size=(40, structure.cells))).astype(np.float32)
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        model = Model(structure, Tables(structure, values), releases=[noisy], replicates=refits)
        place = Path("docs/examples/health/out/health.dpgm")
        place.parent.mkdir(parents=True)
        model.save(place)
        run_here(DOCS / "plots.md")
    return folder


def drawing(path: Path) -> Counter[tuple[str, str]]:
    """The elements of a picture with their texts, numbers left out, and how many there are of each."""
    root = ET.parse(path).getroot()
    shown = (one for one in root.iter() if not one.tag.endswith("desc"))
    return Counter((one.tag, re.sub(r"[\d.]+(e-\d+)?", "#", one.text or "")) for one in shown)


@pytest.mark.landing
@pytest.mark.parametrize("kind", SHOWN)
def test_the_pictures_of_the_page_are_what_its_code_draws(drawn, kind):
    """The committed ones have the numbers of one run of the tutorial."""
    assert drawing(DOCS / f"plots/shown-{kind}.svg") == drawing(drawn / SHOWN[kind])


def test_what_the_page_says_of_its_files(drawn):
    assert {path.name for path in drawn.glob("*.svg")} == {*SHOWN.values(), "pair.svg"}
