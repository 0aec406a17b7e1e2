"""What sections are written from."""

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.report.inputs import Material


def material_of(model: dpgm.Model) -> Material:
    return Material(model, file="m.dpgm", digest=None, ledger=None, level=0.9)


def test_the_number_of_records_is_told_by_the_release_that_knows_it_best(codes, model):
    """The one with the least noise, and its standard error."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [dpgm.release(codes, structure, dpgm.Budget.pure(one), neighbours="add-remove") for one in (1, 9)]
    held = uniform(structure, releases=parts)
    assert material_of(held).counted == pytest.approx((parts[1].total, parts[1].total_variance ** 0.5))


def test_shares_have_ends_where_tables_tell_them(model):
    """Of measured attributes, with replicates or not; without a release only the estimate."""
    found = material_of(model).shares
    assert found is not None
    assert list(found) == ["sex", "age", "job"]
    assert np.all(found["sex"].low <= found["sex"].estimate)
    alone = material_of(dpgm.Model(model.structure, model.potentials, releases=model.releases)).shares
    assert alone is not None
    np.testing.assert_allclose(alone["sex"].low, found["sex"].low, atol=1e-12)
    bare = material_of(dpgm.Model(model.structure, model.potentials)).shares
    assert bare is not None
    assert bare["sex"].low is None
    np.testing.assert_allclose(bare["sex"].estimate, found["sex"].estimate, atol=1e-12)
