"""Potentials as an engine takes them: checked, and ready for an executor of probabilities."""

import numpy as np
import pytest

from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.junction_tree.engine import Potentials, plan_inference
from dpgm_core.inference.junction_tree.logspace import refuse_infinite
from dpgm_core.inference.kernels.format import FLOOR, REACH
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def potentials_of(structure):
    contraction = plan_inference(structure, 2**30).contraction
    return Potentials(contraction, structure)


@pytest.mark.parametrize("scale", [1, 1000])
def test_what_was_taken_from_the_tables_is_in_the_shift(awkward, scale):
    """Whatever the size: log-probability of every record = that of the tables written + the shift - log of the free."""
    made, rng = potentials_of(awkward), np.random.default_rng(0)
    theta = Tables(awkward, scale * rng.normal(size=awkward.cells))
    values, top = made.checked(theta)
    ready = made.ready(values, top)
    out = np.empty(awkward.cells)
    ready.fill(out)
    taken = np.zeros(awkward.cells) if ready.above is None else ready.above
    with np.errstate(divide="ignore"):
        found = np.log(out)
    seen = found > -REACH + 1e-9
    assert found.min() >= -REACH - 1e-9  # what lies deeper is raised
    assert (values - taken)[~seen].max(initial=-np.inf) <= -REACH + 1e-9
    np.testing.assert_allclose(found[seen], (values - taken)[seen], rtol=1e-9, atol=1e-9)
    for number, part in enumerate(awkward.slices):
        assert ready.lows[number] == pytest.approx((values - taken)[part].min())
        assert ready.highs[number] == pytest.approx((values - taken)[part].max())
    blank = made.ready(*made.checked(Tables.zeros(awkward))).shift  # of attributes in no clique
    free = [awkward.domain[name].size for name in awkward.uncovered]
    assert blank == pytest.approx(np.log(free).sum() if free else 0.0)
    shift = sum(count * taken[part][0] for count, part in zip(awkward.multiplicities, awkward.slices, strict=True))
    assert ready.shift - blank == pytest.approx(shift)
    assert scale == 1 or ready.above is not None


def test_zeros_are_said_and_have_no_part_in_the_bounds(lab):
    """-inf is legal in a table that has another value."""
    structure = lab.awkward["single"]
    made = potentials_of(structure)
    ready = made.ready(*made.checked(Tables(structure, np.array([-np.inf, 2.0]))))
    assert ready.zeros and ready.lows == ready.highs == [2.0]
    deep = Structure(lab.domain, [("b",)])
    made, out = potentials_of(deep), np.empty(3)
    made.ready(*made.checked(Tables(deep, np.array([-np.inf, 0.0, -1e4])))).fill(out)
    assert out[0] == 0.0 and out[2] == pytest.approx(FLOOR)


@pytest.mark.parametrize(
    ("values", "words"),
    [([-np.inf, -np.inf], "every record has probability 0"), ([np.nan, 0], "NaN or"), ([np.inf, 0], "NaN or")],
)
def test_what_is_no_potential_is_refused(lab, values, words):
    """As is another structure's, and a log-partition that is not finite."""
    structure = lab.awkward["single"]
    with pytest.raises(InferenceError, match=words):
        potentials_of(structure).checked(Tables(structure, np.array(values)))
    other = Structure(lab.domain, [("a",)])
    with pytest.raises(StructureError, match="do not fit"):
        potentials_of(structure).checked(Tables.zeros(other))
    with pytest.raises(InferenceError, match="probability 0"):
        refuse_infinite(-np.inf)
    with pytest.raises(InferenceError, match="too large"):
        refuse_infinite(np.nan)
