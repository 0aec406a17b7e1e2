"""Wrong learners of binary attributes, of pairs and from contrasts, each killed by the check meant for it."""

import attrs
import numpy as np

from dpgm_core import Fit, Model, StructureError, Tables

from .family import Family
from .learners import Plain

learner = Family("learner")


def refuse(structure):
    """Other than two labels, cliques of three and ties."""
    if set(structure.domain.sizes.values()) != {2} or max(structure.multiplicities) > 1:
        raise StructureError("two labels each and no ties; leave the others out")
    if max(map(len, structure.cliques)) > 2:
        raise StructureError("pairs alone; name the pairs of larger cliques")


class Wide(Plain):
    """Any structure, from tables or contrasts."""

    takes_contrasts = True

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        potentials = self.potentials(release, inference.compile(release.structure), randomness, progress)
        return Fit(model=Model(curator.structure, potentials.embed(curator.structure)))


class Narrow(Wide):
    """Binary attributes and pairs alone."""

    def check(self, structure, inference):
        refuse(structure)
        super().check(structure, inference)

    def learn(self, curator, inference, *, randomness, progress):
        refuse(curator.structure)
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@learner("what-it-does-not-take-is-refused-unpaid", "It looks at the structure when it has its release.")
class RefusesAfterPaying(Narrow):
    def learn(self, curator, inference, *, randomness, progress):
        fit = Wide.learn(self, curator, inference, randomness=randomness, progress=progress)
        refuse(curator.structure)
        return fit


@learner("what-it-does-not-take-is-refused-unpaid", "What `check` refuses is learned all the same.")
class TakesAnythingToo(Narrow):
    def learn(self, curator, inference, *, randomness, progress):
        return Wide.learn(self, curator, inference, randomness=randomness, progress=progress)


@learner("contrasts-are-learned", "It takes contrasts, as a number says.")
class SaysYes(Wide):
    takes_contrasts = 1


@learner("contrasts-are-learned", "Takes the tables of contrasts for half as far from even as they are.")
class Halves(Wide):
    def target(self, release):
        even = release.tables.like(release.tables.values.astype(float))
        middle = even.repeat(even.sums() / np.array(release.structure.sizes))
        return super().target(attrs.evolve(release, tables=even.like(middle + (even.values - middle) / 2)))


@learner("contrasts-are-learned", "Potentials of single attributes alone.")
class AttributesOnly(Wide):
    largest = 1

    def potentials(self, release, engine, randomness, progress):
        found = super().potentials(release, engine, randomness, progress)
        values = found.values.copy()
        for clique, where in zip(release.structure.cliques, release.structure.slices, strict=True):
            if len(clique) > self.largest:
                values[where] = 0.0
        return Tables(release.structure, values)


@learner("contrasts-are-learned", "Numbers of three attributes are not looked at.")
class PairsOnly(AttributesOnly):
    largest = 2
