"""Labels that were found: what is published of noisy counts, files, and claims that a file cannot make."""

import json
from fractions import Fraction

import pytest

from dpgm_core import Budget, Domain, DomainError, ModelFileError, Terms
from dpgm_core.privacy.labels import LabelsPlan, threshold_noise
from dpgm_core.releases.labels import Discovery, FoundLabels, load_discovery, read_discovery

BUDGET = Budget.approx("0.1", "1e-7")
TERMS = Terms(neighbours="add-remove", unit="one person")
ASKED = LabelsPlan(column="job", keep=3, budget=BUDGET, noise=threshold_noise(BUDGET, 1, "add-remove"))
FOUND = FoundLabels.of(ASKED, {"c": 200, "b": 155, "a": 156, "d": 900, "e": 200})
DISCOVERY = Discovery(columns=(FOUND,), terms=TERMS, private=True, provenance={"ledger": "x", "entry": 1})


def test_the_largest_at_or_above_the_threshold_are_kept():
    """Ties go by text, which is public; what is below is not told from what is not there."""
    assert ASKED.noise.threshold == 156
    assert (FOUND.labels, FOUND.counts) == (("d", "c", "e"), (900, 200, 200))
    assert FoundLabels.of(ASKED, {"b": 155}).labels == FoundLabels.of(ASKED, {}).labels == ()


def test_files_round_trip(tmp_path):
    """What is read is what was saved; a file that stands there is never overwritten by another."""
    DISCOVERY.save(tmp_path / "x.labels.json")
    assert load_discovery(tmp_path / "x.labels.json") == DISCOVERY
    with pytest.raises(ModelFileError, match="exists"):
        Discovery(columns=(FOUND,), terms=TERMS, private=False).save(tmp_path / "x.labels.json")
    for content in (
        "",
        "{}",
        "[" * 9999,
        '{"format": "dpgm-labels", "schema": 2}',
        '{"format": "dpgm-labels", "schema": 1}',
    ):
        (tmp_path / "y").write_text(content)
        with pytest.raises(ModelFileError):
            load_discovery(tmp_path / "y")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("threshold", 155),
        ("threshold", 1),
        ("threshold", 156.0),
        ("threshold", True),
        ("scale", "9"),
        ("scale", "-1"),
        ("scale", 10),
        ("budget", {"epsilon": "1/100", "delta": "1/10000000"}),
        ("budget", {"epsilon": "1/10", "delta": "1/20000000"}),
        ("budget", {"epsilon": "1/10"}),
        ("budget", None),
        ("keep", 2),
        ("keep", "3"),
        ("labels", ["d", "e", "c"]),
        ("labels", ["d", "c", "c"]),
        ("labels", ["d", "c"]),
        ("labels", ["d", "c", "e" * 201]),
        ("labels", ["d", "c", "\ud800"]),
        ("labels", "dce"),
        ("counts", [900, 200, 155]),
        ("counts", [900, 200, 200.0]),
        ("column", 3),
        ("more", 3),
    ],
)
def test_claims_that_the_noise_refutes_are_refused(tmp_path, key, value):
    """Thresholds and costs below what was paid for, and labels that no release can have published."""
    document = json.loads(json.dumps(DISCOVERY.to_dict()))
    document["columns"][0][key] = value
    path = tmp_path / "x"
    path.write_text(
        json.dumps(
            {
                "format": "dpgm-labels",
                "schema": 1,
                "cost": BUDGET.to_dict(),
                "terms": TERMS.to_dict(),
                "discovery": document,
            }
        )
    )
    with pytest.raises(ModelFileError):
        load_discovery(path)


def test_claims_depend_on_the_terms():
    """The same noise costs twice as much where a person is exchanged, or has two rows."""
    for terms in (Terms(neighbours="replace-one"), Terms(neighbours="add-remove", person="id", rows_per_person=2)):
        with pytest.raises(ModelFileError, match="said to cost"):
            read_discovery(DISCOVERY.to_dict(), terms)
    assert read_discovery(DISCOVERY.to_dict(), TERMS) == DISCOVERY
    for wrong in ({}, {**DISCOVERY.to_dict(), "columns": []}, {**DISCOVERY.to_dict(), "private": "yes"}):
        with pytest.raises((ModelFileError, ValueError, TypeError)):
            read_discovery(wrong, TERMS)
    with pytest.raises(ModelFileError, match="twice"):
        read_discovery({**DISCOVERY.to_dict(), "columns": DISCOVERY.to_dict()["columns"] * 2}, TERMS)


def test_it_gives_a_public_domain():
    """Of the domain that it was found for, and of no other."""
    plain = {"job": {"labels": {"private": True, "keep": 3}}, "sex": {"size": 2}}
    found = DISCOVERY.domain(Domain.from_dict({"attributes": plain}))
    assert found["job"].labels == ("d", "c", "e", "other", "missing") and found.undetermined == ()
    with pytest.raises(DomainError, match="leaves those of no column to be found"):
        DISCOVERY.domain(found)
    assert DISCOVERY.cost == Budget.approx(Fraction(1, 10), Fraction(1, 10**7))
