"""The benchmark of competition instances: its answers are the published ones."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases.zeros import beside, instance
from dpgm.interop.uai import write_uai
from dpgm.interop.uai_tasks import infer_uai, read_mar, read_pr, variable_marginals
from dpgm_core import Domain, Structure, Tables
from dpgm_core.inference.junction_tree.engine import JunctionTree

FOLDER = os.environ.get("DPGM_UAI")
INSTANCES = sorted(Path(FOLDER).glob("*.uai")) if FOLDER else []


def test_an_instance_is_answered_with_its_evidence(tmp_path):
    """What a row says of a file is what the engine says of the model."""
    model, evidence = tmp_path / "small.uai", tmp_path / "small.uai.evid"
    structure = Structure.chain(Domain.from_sizes({f"x{number}": 3 for number in range(6)}))
    rng = np.random.default_rng(0)
    theta = np.where(rng.random(structure.cells) < 0.2, -np.inf, rng.normal(size=structure.cells))
    potentials = Tables(structure, theta)
    write_uai(model, structure, potentials)
    possible, _ = JunctionTree().compile(structure).maximize(potentials)
    evidence.write_text(f"1 2 {possible['x2']}")
    found = instance(str(model), calls=1)
    text, beliefs = infer_uai(model, evidence, "PR", JunctionTree())
    assert found["log10 Z"] == pytest.approx(float(text.split()[1]), rel=1e-12)
    for mine, other in zip(found["marginals"], variable_marginals(beliefs.marginals), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert found["MB"] > 0 and found["ms"] > 0 and found["treewidth"] >= 1


@pytest.mark.skipif(not INSTANCES, reason="DPGM_UAI names no folder of competition instances")
@pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.stem)
def test_published_answers(path):
    """log10 Z and every marginal, to the six digits that are published."""
    evidence = beside(path, ".evid")
    _, beliefs = infer_uai(path, evidence if evidence.is_file() else None, "PR", JunctionTree())
    if beside(path, ".PR").is_file():
        published = read_pr(beside(path, ".PR"))
        assert beliefs.log_partition / math.log(10) == pytest.approx(published, rel=5.1e-6)
    if beside(path, ".MAR").is_file():
        for found, published in zip(variable_marginals(beliefs.marginals), read_mar(beside(path, ".MAR")), strict=True):
            np.testing.assert_allclose(found, published, atol=5.1e-7)
