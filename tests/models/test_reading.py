"""Model files: of schema 2 with any number of releases, and, for ever, of schema 1 with one at most."""

import json
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Fit, Model, ModelFileError, Structure, Tables, load_model, load_release

DOMAIN = Domain.from_sizes({"a": 2, "b": 3})
STRUCTURE = Structure(DOMAIN, [("a", "b")])
CODES = np.array([[0, 1], [1, 2]] * 20)


@frozen(kw_only=True)
class Halves:
    """Takes a half of the budget, and then the rest."""

    def check(self, structure, inference):
        pass

    def learn(self, curator, inference, *, randomness, progress):
        curator.release(budget=curator.remaining * dpgm.plugin.Fraction(1, 2))
        curator.release()
        return Fit(model=Model(curator.structure, Tables.zeros(curator.structure)))
