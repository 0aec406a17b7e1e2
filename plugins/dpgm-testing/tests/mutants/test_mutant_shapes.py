"""Wrong learners of binary attributes, of pairs and from contrasts, each killed by the check meant for it."""

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Fit, Model, StructureError, Tables
from dpgm_testing import checks_of

from .test_mutant_learners import Plain


def refuse(structure):
    """Other than two labels, cliques of three and ties."""
    if set(structure.domain.sizes.values()) != {2} or max(structure.multiplicities) > 1:
        raise StructureError("two labels each and no ties; leave the others out")
    if max(map(len, structure.cliques)) > 2:
        raise StructureError("pairs alone; name the pairs of larger cliques")


@frozen(kw_only=True)
class Wide(Plain):
    """Any structure, from tables or contrasts."""

    takes_contrasts = True

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        potentials = self.potentials(release, inference.compile(release.structure), randomness, progress)
        return Fit(model=Model(curator.structure, potentials.embed(curator.structure)))


@frozen(kw_only=True)
class Narrow(Wide):
    """Binary attributes and pairs alone."""

    def check(self, structure, inference):
        refuse(structure)
        super().check(structure, inference)

    def learn(self, curator, inference, *, randomness, progress):
        refuse(curator.structure)
        return super().learn(curator, inference, randomness=randomness, progress=progress)


class RefusesAfterPaying(Narrow):
    """It looks at the structure when it has its release."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = Wide.learn(self, curator, inference, randomness=randomness, progress=progress)
        refuse(curator.structure)
        return fit


class TakesAnythingToo(Narrow):
    """What `check` refuses is learned all the same."""

    def learn(self, curator, inference, *, randomness, progress):
        return Wide.learn(self, curator, inference, randomness=randomness, progress=progress)


class SaysYes(Wide):
    """It takes contrasts, as a number says."""

    takes_contrasts = 1


class Halves(Wide):
    """Takes the tables of contrasts for half as far from even as they are."""

    def target(self, release):
        even = release.tables.like(release.tables.values.astype(float))
        middle = even.repeat(even.sums() / np.array(release.structure.sizes))
        return super().target(attrs.evolve(release, tables=even.like(middle + (even.values - middle) / 2)))


class AttributesOnly(Wide):
    """Potentials of single attributes alone."""

    def potentials(self, release, engine, randomness, progress):
        found = super().potentials(release, engine, randomness, progress)
        values = found.values.copy()
        for clique, where in zip(release.structure.cliques, release.structure.slices, strict=True):
            if len(clique) > 1:
                values[where] = 0.0
        return Tables(release.structure, values)


class PairsOnly(Wide):
    """Numbers of three attributes are not looked at."""

    def potentials(self, release, engine, randomness, progress):
        found = super().potentials(release, engine, randomness, progress)
        values = found.values.copy()
        for clique, where in zip(release.structure.cliques, release.structure.slices, strict=True):
            if len(clique) > 2:
                values[where] = 0.0
        return Tables(release.structure, values)


MUTANTS = [
    (RefusesAfterPaying, "what-it-does-not-take-is-refused-unpaid"),
    (TakesAnythingToo, "what-it-does-not-take-is-refused-unpaid"),
    (SaysYes, "contrasts-are-learned"),
    (Halves, "contrasts-are-learned"),
    (AttributesOnly, "contrasts-are-learned"),
    (PairsOnly, "contrasts-are-learned"),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[one.__name__ for one, _ in MUTANTS])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    assert verdict(mutant, "learner", check).startswith("CheckFailed")


@pytest.mark.parametrize(
    ("original", "check"),
    [
        *((Narrow, check) for _, check in MUTANTS[1:3]),
        (Wide, "contrasts-are-learned"),
        (Narrow, "survives-awkward-structures"),
        (Narrow, "fit-is-usable"),
        (Narrow, "many-records-are-followed"),
    ],
)
def test_the_originals_pass(verdict, original, check):
    """As do other checks, on attributes of two labels and pairs."""
    assert verdict(original, "learner", check) is None


def test_every_check_of_shapes_kills_a_mutant():
    """No check is there for show."""
    needed = {check.name for check in checks_of("learner") if check.needs in ("contrasts", "restricted")}
    assert needed == {name for _, name in MUTANTS}
