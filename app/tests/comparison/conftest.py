"""What tests of comparisons share: two models of the same people, and a folder with their files, made once."""

from pathlib import Path

import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from app.tests.made import CODES, LABELS, domain_of, release_of
from dpgm_core import Domain, Model


@pytest.fixture(scope="session")
def people() -> Domain:
    return domain_of(**LABELS)


@pytest.fixture(scope="session")
def fitted(people) -> tuple[Model, Model]:
    """Two models of the same people with replicates, from noise of different seeds."""
    made = []
    for seed in (1, 2):
        model = dpgm.learn(release_of(people, CODES, ("sex", "job"), ("age",), seed=seed), "naive-mle").model
        made.append(dpgm.bootstrap(model, 10, randomness=dpgm.SeededRandomness(seed)))
    return made[0], made[1]


@pytest.fixture(scope="session")
def folder(tmp_path_factory, fitted) -> Path:
    """m.dpgm and n.dpgm, their releases, and records that were drawn from m in two formats."""
    where = tmp_path_factory.mktemp("compared")
    for name, model in zip("mn", fitted, strict=True):
        model.save(where / f"{name}.dpgm")
        model.release.save(where / f"{name}.release.dpgm")
    drawn = fitted[0].sample(2000, randomness=dpgm.SeededRandomness(1))
    pyarrow.parquet.write_table(drawn, where / "s.parquet")
    with pyarrow.ipc.new_file(where / "s.arrow", drawn.schema) as file:
        file.write_table(drawn)
    return where
