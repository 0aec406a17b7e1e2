"""Kernels of exact inference: instructions against einsum, exponentials and bits against numpy's."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.inference.junction_tree import compiled
from dpgm_core.inference.junction_tree.compiled import arrangement
from dpgm_core.inference.kernels import format as layout
from dpgm_core.inference.kernels.contractions import LOWEST, exponentials, run
from dpgm_core.inference.kernels.loading import jit, power_of_two, read_bits, resolve_executor


def _instruction(r, p, q, sizes, places, cells):
    found = arrangement(r, p, q, sizes)
    one, two = places[1:][:: -1 if found.swap else 1]
    numbers = [number for loop in (*found.inner, *found.outer) for number in loop]
    clear = cells if found.clear else 0
    head = [
        layout.HEADER + len(numbers),
        found.kind,
        int(not found.clear),
        clear,
        places[0],
        one,
        two,
        len(found.outer),
    ]
    return found.kind, np.array([*head, *numbers], dtype=np.int64)


def _contracted(r, p, q, sizes, seed):
    """(kind, what the interpreter gives, what einsum gives)."""
    pytest.importorskip("numba")
    rng = np.random.default_rng(seed)
    shapes = [tuple(sizes[letter] for letter in table) for table in (r, p, q)]
    left, right = rng.uniform(0.5, 2, shapes[1]), rng.uniform(0.5, 2, shapes[2])
    wanted = np.einsum(left, p, right, q, r)
    # Guards of NaN between the tables, and garbage where r is to be.
    memory = np.concatenate([[np.nan], np.full(wanted.size, 7.0), [np.nan], left.ravel(), [np.nan], right.ravel()])
    places = (1, wanted.size + 2, wanted.size + left.size + 3)
    kind, code = _instruction(r, p, q, sizes, places, wanted.size)
    run(memory, np.zeros(1), code, np.zeros(layout.LOOPS, dtype=np.int64), 0, len(code), False, False)
    assert np.isnan(memory[[0, wanted.size + 1]]).all(), "cells outside were written"
    return kind, memory[1 : 1 + wanted.size].reshape(wanted.shape), wanted


@st.composite
def _contractions(draw):
    """Three orders of letters, each letter in two of the tables or in all three."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 7, 9, 13]), min_size=1, max_size=5))
    tables = [[], [], []]
    for letter in range(len(sizes)):
        for table in draw(st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 1, 2)])):
            tables[table].append(letter)
    return (*(tuple(draw(st.permutations(table))) for table in tables), sizes)


@settings(max_examples=150, deadline=None)
@given(_contractions(), st.integers(0, 99))
def test_any_contraction_is_einsum(case, seed):
    _, found, wanted = _contracted(*case, seed)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize(
    ("kind", "r", "p", "q", "sizes"),
    [
        # each kind of inner loop, with rests of its blocks of four and of its runs
        (layout.PRODUCTS, (0, 2), (0, 1), (1, 2), (6, 7, 600)),
        (layout.PRODUCTS, (2, 0), (1, 0), (2, 1), (9, 5, 13)),
        (layout.DOTS, (0, 2), (0, 1), (2, 1), (6, 600, 7)),
        (layout.ELEMENTWISE, (0, 2), (1, 0, 2), (1, 0, 2), (3, 5, 600)),
        (layout.STRIDED, (0, 1), (1, 0), (1, 0), (7, 9)),
        (layout.PRODUCTS, (0,), (0,), (), (5,)),
        (layout.PRODUCTS, (0, 2), (0, 1), (1, 2), (60, 70, 80)),
    ],
)
def test_each_kind_of_inner_loop(kind, r, p, q, sizes):
    met, found, wanted = _contracted(r, p, q, sizes, 0)
    assert met == kind
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.fixture
def _blas_is_sure(monkeypatch):
    """Matrices go to BLAS from the least sizes on, as they do where tiles are narrow."""
    monkeypatch.setattr(compiled, "_least_for_blas", lambda: 0)
    compiled._known.cache_clear()
    yield
    compiled._known.cache_clear()


@pytest.mark.usefixtures("_blas_is_sure")
@pytest.mark.parametrize(
    ("kind", "r", "p", "q", "sizes"),
    [
        # as matrices, each way they may lie, alone and in a stack
        (layout.MATRIX, (0, 2), (0, 1), (1, 2), (60, 70, 80)),
        (layout.MATRIX, (0, 2), (1, 0), (1, 2), (60, 70, 80)),
        (layout.MATRIX, (0, 2), (0, 1), (2, 1), (60, 70, 80)),
        (layout.MATRIX, (3, 0, 2), (3, 0, 1), (3, 1, 2), (60, 70, 80, 2)),
    ],
)
def test_each_way_that_matrices_may_lie(kind, r, p, q, sizes):
    met, found, wanted = _contracted(r, p, q, sizes, 0)
    assert met == kind
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_large_matrices_go_to_blas():
    kinds = [arrangement((0, 2), (0, 1), (1, 2), (size,) * 3).kind for size in (15, 512)]
    assert kinds == [layout.PRODUCTS, layout.MATRIX]


# --- Tiles of every size


@pytest.mark.parametrize("fresh", [True, False])
def test_tiles_of_every_size_write_their_cells_and_no_other(fresh):
    pytest.importorskip("numba")
    from dpgm_core.inference.kernels import tiles

    @jit
    def product_tile(memory, r, p, q, size, fresh):
        tiles.product_tile(memory, r, p, q, size, fresh)

    @jit
    def dot_tile(memory, r, p, q, size, fresh):
        tiles.dot_tile(memory, r, p, q, size, fresh)

    rng = np.random.default_rng(0)
    for rows in range(tiles.MAX_ROWS + 1):
        for lanes in range(1, tiles.MAX_VECTORS * layout.LANES + 1):
            p, q = rng.normal(size=(rows or lanes, 3)), rng.normal(size=(3, lanes))
            wanted = p @ q if rows else (p.T * q).sum(axis=0, keepdims=True)
            # Rows of r lie two cells apart, and guards lie there; p is read by columns.
            r = np.full((max(rows, 1), lanes + 2), 7.0)
            memory = np.concatenate([[7.0], r.ravel(), p.ravel(order="F"), q.ravel(), [np.nan]])
            at = 1 + r.size
            steps = (at, 1 if rows else 0, len(p)), (at + p.size, lanes)
            product_tile(memory, (1, lanes + 2), *steps, (rows, 3, lanes), fresh)
            r[:, :lanes] = wanted + (0.0 if fresh else 7.0)
            np.testing.assert_allclose(memory[: 1 + r.size], [7.0, *r.ravel()], rtol=1e-13, atol=1e-13)
    for rows in range(1, tiles.MAX_ROWS + 1):
        for columns in range(1, tiles.MAX_ROWS + 1):
            for cells in (*range(1, 18), 40):
                p, q = rng.normal(size=(rows, cells)), rng.normal(size=(columns, cells))
                memory = np.concatenate([np.full(2 * rows * columns, 7.0), p.ravel(), q.ravel(), [np.nan]])
                at = 2 * rows * columns
                places = (0, 2 * columns, 2), (at, cells, 0), (at + p.size, cells)
                dot_tile(memory, *places, (rows, columns, cells), fresh)
                r = np.full((rows, columns, 2), 7.0)
                r[:, :, 0] = p @ q.T + (0.0 if fresh else 7.0)
                np.testing.assert_allclose(memory[:at], r.ravel(), rtol=1e-13, atol=1e-13)


@pytest.mark.landing
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of x86-64")
@pytest.mark.parametrize("processor", ["haswell", "x86-64"])
def test_tiles_on_processors_with_shorter_vectors(tmp_path, processor):
    pytest.importorskip("numba")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "tiles_of_every",
    ]
    variables = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run(command, env=os.environ | variables, check=True)


@pytest.mark.parametrize("among", [[], [-np.inf], [np.nan], [np.inf], [-np.inf, np.nan]])
def test_extremes_are_numpys(among):
    pytest.importorskip("numba")
    from dpgm_core.inference.kernels.contractions import _bounds

    rng = np.random.default_rng(0)
    for size in range(1, 80):
        for share in (0.05, 1.0):
            theta = rng.normal(size=size) + 5.0 * rng.integers(-1, 2)
            some = rng.random(size) < share
            if among:
                theta[some] = rng.choice(among, some.sum())
            finite, bad = theta[np.isfinite(theta)], np.isnan(theta).any() or (theta == np.inf).any()
            wanted = (0.0, np.inf, False)
            if len(finite) and not bad:
                wanted = (finite.min(), finite.max(), bool((theta == -np.inf).any()))
            assert _bounds(np.concatenate([[np.nan], theta, [np.inf]]), 1, size + 1) == wanted


# --- exp in vectors against numpy's


def _of(theta, above=0.0):
    pytest.importorskip("numba")
    out = np.full(theta.size + 2, np.nan)
    exponentials(np.concatenate([[9.0], theta, [9.0]]), 1, theta.size + 1, above, out)
    assert np.isnan(out[[0, -1]]).all(), "cells outside were written"
    return out[1:-1]


@pytest.mark.parametrize("size", [1, 7, 64, 773])
def test_it_is_right_to_two_units_in_the_last_place(size):
    theta = np.random.default_rng(size).uniform(LOWEST + 14, 700, size)
    np.testing.assert_allclose(_of(theta), np.exp(theta), rtol=5e-16)
    np.testing.assert_allclose(_of(theta - 10, 3.0), np.exp(theta - 13), rtol=5e-16 * 700)


def test_zeros_are_exact_and_one_is_one():
    assert _of(np.array([-np.inf, 0.0, LOWEST - 1, -1e300])).tolist() == [0.0, 1.0, 0.0, 0.0]


# --- Powers of two, and bits, with numba


@jit
def _power(values):
    return power_of_two(values[0])


@jit
def _first_bits(values, start):
    return read_bits(values, start)[0]


@pytest.mark.skipif(resolve_executor("auto") == "numpy", reason="intrinsics are numba's")
def test_intrinsics_read_bits():
    for k in (-1022, -1, 0, 3, 1023):
        assert _power(np.array([k + 1.5 * 2.0**52])) == 2.0**k
    for value in (0.0, 1.0, -1.5, 5e-324, np.inf):
        bits = int(np.float64(value).view(np.int64))
        assert _first_bits(np.array([7.0, value]), 1) == bits
        assert _first_bits(np.array([bits]), 0) == value
