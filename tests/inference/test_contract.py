"""What an inference call gives back."""

import pickle

import numpy as np
import pytest
from attrs import evolve
from attrs.exceptions import FrozenInstanceError

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.contract import Beliefs
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_beliefs_are_values():
    """Nobody changes them; they are copied with changes, sent to other processes, and named in full."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    beliefs = Beliefs(marginals=Tables(structure, np.array([1.0, 2.0])), log_partition=0.5)
    for name in ("log_partition", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(beliefs, name, 1.0)
    assert evolve(beliefs, iterations=3).iterations == 3 and beliefs.iterations == 1
    there = pickle.loads(pickle.dumps(beliefs))
    assert (there.log_partition, there.converged, there.errors) == (0.5, True, None)
    assert there.marginals["a"].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError):
        Beliefs(beliefs.marginals, 0.5)  # type: ignore[misc]
