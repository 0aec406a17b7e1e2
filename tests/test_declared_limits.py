"""What a component declares about itself is respected by the host, and held to it by the conformance kit."""

from typing import ClassVar

import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Budget, Domain, Ledger, OptionError, SeededRandomness, Structure, StructureError, make, release
from dpgm_testing import Profile, ReferenceLaplace, check_component

SMALL = Profile(name="small", examples=3, draws=20_000, shrink=False)
JUNCTION_TREE = make("inference", "junction-tree")


@frozen(kw_only=True)
class PairsOnly:
    """An engine for pairs that says so and refuses the rest."""

    max_order: ClassVar[int] = 2

    def compile(self, structure):
        if any(sum(structure.domain[name].size > 1 for name in clique) > 2 for clique in structure.cliques):
            raise StructureError("pairs only")
        return JUNCTION_TREE.compile(structure)


@frozen(kw_only=True)
class PairsSilently:
    """The same, but it does not say so."""

    max_order: ClassVar[None] = None

    def compile(self, structure):
        return PairsOnly().compile(structure)


@frozen(kw_only=True)
class SaysPairs:
    """It says pairs only, and serves anything."""

    max_order: ClassVar[int] = 2

    def compile(self, structure):
        return JUNCTION_TREE.compile(structure)


@pytest.mark.landing
def test_an_engine_is_held_to_the_order_it_declares():
    """Declared and refused: passed. Refused but not declared, or declared but not refused: failed."""
    assert check_component(PairsOnly, "inference", profile=SMALL).ok
    assert "tables-are-distributions" in check_component(PairsSilently, "inference", profile=SMALL).failures
    assert "tables-are-distributions" in check_component(SaysPairs, "inference", profile=SMALL).failures


@frozen(kw_only=True)
class Elsewhere:
    """A mechanism with randomness of its own."""

    own_randomness: ClassVar[str] = "a device draws this noise"
    asked: ClassVar[list[bool]] = []

    def noise(self, sensitivity, budget):
        self.asked.append(True)
        return ReferenceLaplace().noise(sensitivity, budget)


def test_a_mechanism_with_randomness_of_its_own_is_not_held_to_a_stream():
    """The check that repeats a stream is skipped; all others run."""
    report = check_component(Elsewhere, profile=SMALL)
    skipped = [one.check for one in report.outcomes if one.status == "skipped"]
    assert report.ok and "randomness-comes-from-the-argument" in skipped


def test_a_seeded_simulation_with_it_is_refused_before_the_charge(tmp_path):
    """The refusal says why; nothing was calibrated, and the ledger keeps all it had."""
    structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    codes = {"a": np.array([0, 1, 1]), "b": np.array([1, 0, 1])}
    ledger = Ledger.create(tmp_path / "l.ledger", name="l", budget=Budget.pure(1), neighbours="add-remove")
    terms = {"neighbours": "add-remove", "ledger": ledger}
    Elsewhere.asked.clear()
    with pytest.raises(OptionError, match="a device draws this noise"):
        release(codes, structure, Budget.pure(1), Elsewhere(), **terms, randomness=SeededRandomness(1))
    assert ledger.remaining() == Budget.pure(1) and not Elsewhere.asked
    made = release(codes, structure, Budget.pure(1), Elsewhere(), **terms)
    assert made.private and ledger.remaining().is_zero
