"""The places that values of a type can have."""

from __future__ import annotations

import numpy as np
import pytest

from dpgm_core.domain.values import Values, lattice_of

KINDS = [
    Values(kind="integer"),
    Values(kind="number", decimals=0),
    Values(kind="number", decimals=3),
    Values(kind="date"),
    Values(kind="datetime"),
    Values(kind="datetime", format="%d.%m.%Y %H:%M"),
    Values(kind="time", format="%H:%M"),
]


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_first_and_last_are_the_nearest_places(values):
    """Of places on and off the lattice: nothing lies between, and its own place is both."""
    lattice = lattice_of(values)
    places = np.random.default_rng(0).normal(size=2000) * 1e5
    first, last = lattice.first(places), lattice.last(places)
    assert (lattice.place(first) >= places).all() and (lattice.place(first - 1) < places).all()
    assert (lattice.place(last) <= places).all() and (lattice.place(last + 1) > places).all()
    on = lattice.place(first)
    np.testing.assert_array_equal(lattice.first(on), first)
    np.testing.assert_array_equal(lattice.last(on), first)


def test_whole_numbers_beyond_doubles_stay_in_their_bins():
    """What is at or above 2^60 reads back as that or more; what is below as less."""
    lattice = lattice_of(Values(kind="integer"))
    edge = np.array([2.0**60])
    assert float(lattice.first(edge)[0]) >= edge[0] > float(lattice.last(np.nextafter(edge, 0))[0])


def test_some_columns_have_any_number():
    """Numbers without decimals, texts, booleans."""
    assert [lattice_of(Values(kind=kind)) for kind in ("number", "text", "boolean")] == [None] * 3


def test_places_beyond_all_numbers_have_none() -> None:
    whole = lattice_of(Values(kind="integer"))
    assert whole is not None
    far = np.array([2.0**63, -(2.0**64)])
    assert (whole.first(far) > whole.last(far)).tolist() == [True, True]
    assert whole.first(far)[0] > 2**62 and whole.last(far)[1] < -(2**62)
