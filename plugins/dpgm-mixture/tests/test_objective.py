"""The objective of a mixture against enumeration, and its gradient against central differences."""

import numpy as np
import pytest
from dpgm_mixture.objective import Objective, split_parameters

from dpgm_core import Budget, Domain, SeededRandomness, Structure, release

DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 4, "d": 3})
CLASSES = 3
CODES = np.stack([np.random.default_rng(1).integers(0, size, 400) for size in DOMAIN.sizes.values()], axis=1)

STRUCTURES = {
    "pairs": Structure(DOMAIN, [("a", "b"), ("d", "a"), ("b", "c")]),
    "all pairs": Structure.complete(DOMAIN),
    "one": Structure(DOMAIN, [("a",), ("c",)]),
    "three and four": Structure(DOMAIN, [("c", "a", "b"), ("a", "b", "c", "d"), ("d",), ()]),
    "tied": Structure(DOMAIN, [("b", "c")], tied=[[("a", "b"), ("d", "b")], [("a",), ("d",)]]),
}


def noisy(structure):
    """With noise of its own in each table where none is tied."""
    randomness = SeededRandomness(1)
    split = "optimal" if max(structure.multiplicities) == 1 else "even"
    return release(CODES, structure, Budget.pure(1), neighbours="add-remove", split=split, randomness=randomness)


def parameters_of(objective):
    return np.random.default_rng(2).normal(size=CLASSES * (1 + objective.rows))


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_objective_is_that_of_the_enumerated_mixture(name):
    """Each table from the sum over all records and classes, with the variances of noise and sampling, and the prior."""
    release = noisy(STRUCTURES[name])
    objective = Objective(release)
    parameters = parameters_of(objective)
    log_shares, logs = objective.logs(parameters, CLASSES)
    shares, tables = np.exp(log_shares), {one: np.exp(logs[at]) for one, at in objective.at.items()}
    assert abs(shares.sum() - 1) < 1e-12
    assert all(np.allclose(table.sum(axis=0), 1) for table in tables.values())
    expected = cells = 0.0
    for number, group in enumerate(release.structure.groups):
        if group == ((),):
            continue
        model = 0.0
        for clique in group:
            one = np.zeros(DOMAIN.shape(clique))
            for cell in np.ndindex(one.shape):
                one[cell] = sum(
                    shares[h] * np.prod([tables[name][code, h] for name, code in zip(clique, cell, strict=True)])
                    for h in range(CLASSES)
                )
            model = model + one
        residual = release.tables.group(number) - release.total * model
        variance = release.variances[number] + release.total * len(group) / residual.size
        expected += float((residual**2).sum() / variance)
        cells += residual.size
    theta = split_parameters(parameters, CLASSES)[1]
    prior = float(((theta - theta.mean(axis=1, keepdims=True)) ** 2).sum())
    assert objective(parameters, CLASSES)[0] == pytest.approx((expected + prior) / 2, rel=1e-10)
    assert objective.misfit(parameters, CLASSES) == pytest.approx(expected / cells, rel=1e-10)


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_gradient_is_that_of_central_differences(name):
    """To a millionth of the largest derivative, in every parameter."""
    objective = Objective(noisy(STRUCTURES[name]))
    parameters = parameters_of(objective)
    gradient, step = objective(parameters, CLASSES)[1], 1e-5
    differences = np.empty_like(parameters)
    for place in range(len(parameters)):
        moved = np.zeros_like(parameters)
        moved[place] = step
        above, below = (objective(parameters + sign * moved, CLASSES)[0] for sign in (1, -1))
        differences[place] = (above - below) / (2 * step)
    assert np.abs(gradient - differences).max() <= 1e-6 * np.abs(gradient).max()


@pytest.mark.parametrize("name", ["pairs", "three and four", "tied"])
def test_tables_are_followed_as_far_as_noise_does_not_explain(name):
    """Each table by the formula, from the model's own; the prior is wider, and the gradient that of differences."""
    release = noisy(STRUCTURES[name])
    first = Objective(release)
    parameters = parameters_of(first)
    moved, part = first.following(parameters, CLASSES)
    shares, tables = np.exp(first.logs(parameters, CLASSES)[0]), np.exp(first.logs(parameters, CLASSES)[1])
    expected = distance = cells = 0.0
    for number, group in enumerate(release.structure.groups):
        if group == ((),):
            continue
        model = sum(
            np.einsum("h," + ",".join(f"{place}h" for place in "ijkl"[: len(clique)]) + "->" + "ijkl"[: len(clique)],
                      shares, *(tables[first.at[one]] for one in clique))
            for clique in group
        )  # fmt: skip
        apart = release.tables.group(number) / release.total - model
        noise = release.variances[number] / release.total**2
        t = max(0.0, 1 - apart.size * noise / (apart**2).sum())
        expected += float((t**2 * apart**2 / noise).sum()) / 2
        distance, cells = distance + float((apart**2 / noise).sum()), cells + apart.size
    theta = split_parameters(parameters, CLASSES)[1]
    prior = 0.03 * float(((theta - theta.mean(axis=1, keepdims=True)) ** 2).sum()) / 2
    value, gradient = moved(parameters, CLASSES)
    assert 0 < part == pytest.approx(1 - cells / distance, rel=1e-10)
    assert value == pytest.approx(expected + prior, rel=1e-10) and value > 2 * prior
    for place in (0, CLASSES + 1, len(parameters) - 1):
        step = np.zeros_like(parameters)
        step[place] = 1e-5
        difference = (moved(parameters + step, CLASSES)[0] - moved(parameters - step, CLASSES)[0]) / 2e-5
        assert abs(gradient[place] - difference) <= 1e-6 * np.abs(gradient).max()


def test_shares_are_means_of_all_margins_by_precision():
    """Of the table alone and of both of its pairs: the noise of a margin is that of as many cells as are summed."""
    release = noisy(Structure(DOMAIN, [("a",), ("a", "b"), ("c", "a")]))
    objective = Objective(release)
    tops = np.zeros(3)
    for number, axis in ((0, ()), (1, (1,)), (2, (0,))):
        table = release.tables.group(number)
        summed = table.size // 3
        tops += table.sum(axis=axis) / (release.variances[number] + release.total / table.size) / summed
    expected = tops / tops.sum()
    np.testing.assert_allclose(objective.shares[objective.at["a"]], expected, atol=1e-12)
