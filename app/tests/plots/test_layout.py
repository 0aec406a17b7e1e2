"""Layouts: no box on another, the same each time, and as large as they need to be."""

import itertools

import numpy as np
import pytest

from dpgm.plots.network import place_nodes


def graph(kind: str, count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(count)
    return {
        "nothing": [],
        "star": [(0, at) for at in range(1, count)],
        "chain": [(at - 1, at) for at in range(1, count)],
        "ring": [(at, (at + 1) % count) for at in range(count)],
        "tree": [(int(rng.integers(at)), at) for at in range(1, count)],
        "parts": [(at - 1, at) for at in range(1, count) if at % 4],
        "all": list(itertools.combinations(range(count), 2)),
    }[kind]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["nothing", "star", "chain", "ring", "tree", "parts", "all"])
@pytest.mark.parametrize("count", [2, 5, 40])
def test_boxes_lie_apart_inside_and_where_they_were(kind, count):
    """Of any graph and any sizes; twice the same; a page of a few times the boxes' area."""
    boxes = np.random.default_rng(0).uniform((30, 20), (110, 60), size=(count, 2))
    centres, width, height = place_nodes(boxes, graph(kind, count))
    apart = np.abs(centres[:, None] - centres[None]) - (boxes[:, None] + boxes[None]) / 2
    assert all(apart[one, two].max() > 5 for one, two in itertools.combinations(range(count), 2))
    assert (centres - boxes / 2).min() >= 0
    assert (centres + boxes / 2 <= (width, height)).all()
    again, *_ = place_nodes(boxes, graph(kind, count))
    assert np.array_equal(centres, again)
    assert width * height < 40 * boxes.prod(axis=1).sum() + 40_000


def test_neighbours_are_nearer_than_others():
    """In a chain of twenty those joined are nearest on average, and the ends are far apart."""
    boxes = np.full((20, 2), (40.0, 20.0))
    centres, *_ = place_nodes(boxes, graph("chain", 20))
    distances = np.hypot(*(centres[:, None] - centres[None]).transpose(2, 0, 1))
    joined = np.diagonal(distances, 1)
    assert joined.max() < 0.3 * distances[0, 19] and joined.mean() < 0.35 * distances.mean() * 20 / 19


def test_one_box_alone():
    """No component has less than one."""
    centres, width, height = place_nodes(np.array([[40.0, 20.0]]), [])
    assert centres.shape == (1, 2) and width > 40 and height > 20


@pytest.mark.landing
def test_two_hundred_fit_a_page():
    """Letters of 12 pixels stay legible on a page of 1280: the whole is less than 2000 wide."""
    boxes = np.full((200, 2), (60.0, 22.0))
    _, width, height = place_nodes(boxes, graph("tree", 200))
    assert width < 2000 and height < 2000
