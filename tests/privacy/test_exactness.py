"""What exact mechanisms share: unsafe noise has to be allowed by name, and a residual is a number."""

import numpy as np
import pytest
from attrs import frozen

from dpgm_core import InferenceError, OptionError
from dpgm_core.components.options import describe
from dpgm_core.privacy import Exactness, residuals


@frozen(kw_only=True)
class Wide(Exactness):
    """A mechanism of one's own."""


def test_unsafe_noise_has_to_be_allowed():
    """Exact by default; textbook floats are refused unless allowed, by the mechanism's name and with what to say."""
    assert Wide().exact and Wide(allow_unsafe=True).exact
    assert not Wide(exact=False, allow_unsafe=True).exact
    with pytest.raises(OptionError, match=r"^mechanism 'wide' .* say allow_unsafe = true"):
        Wide(exact=False)


@pytest.mark.parametrize("name", ["exact", "allow_unsafe"])
def test_a_number_is_no_flag(name):
    """1 and "true" are refused, so that no truthy value allows unsafe noise."""
    for wrong in (1, "true", None, np.True_):
        with pytest.raises(OptionError, match=f"option '{name}' of mechanism 'wide' must be true or false"):
            Wide(**{name: wrong})


def test_both_are_options_of_the_mechanism():
    """`dpgm plugins NAME` lists them with their help."""
    assert [(one.name, one.default) for one in describe(Wide)] == [("exact", "true"), ("allow_unsafe", "false")]
    assert all(one.help for one in describe(Wide))


def test_a_residual_is_a_number():
    """Whole numbers become doubles of the same shape; NaN is refused."""
    found = residuals(np.array([[1, -2]]))
    assert found.dtype == np.float64 and found.tolist() == [[1.0, -2.0]]
    with pytest.raises(InferenceError, match="a residual is NaN"):
        residuals(np.array([0.0, np.nan]))
