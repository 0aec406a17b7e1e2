"""What releases tell of how they came about; sessions are told in app/tests/cli/test_outcome.py step by step."""

from __future__ import annotations

import numpy as np

import dpgm_core as dpgm
from dpgm_core.releases.session import bins_of, labels_facts, merges_of, session_facts, sessions_of, step_facts


def test_a_release_of_named_cliques_tells_nothing_of_choices():
    """No session, no labels, no bins; as a step it is a measurement of its cliques."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    one = dpgm.release(np.array([[0], [1]] * 9), structure, dpgm.Budget.pure(1), neighbours="add-remove")
    assert (session_facts([one]), labels_facts([one]), sessions_of([one])) == ({}, {}, [])
    assert (bins_of([one]), merges_of([one])) == ([], {})
    assert step_facts(one) == {"kind": "measure", "cliques": [["a"]], "cost": {"epsilon": "1"}}
