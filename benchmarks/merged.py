"""What intervals of merged codes hold: the split of a block alone, without a learner.

`python -m benchmarks.merged`: 3,000 records of 30 labels with shares falling as k^-1.6; codes with a noisy count below
three standard deviations are merged. The model's shares of blocks stand in from better tables. 400 draws of records and
noise, 40 replicates each: the share of true probabilities of merged codes that 90 % intervals hold, in all and of those
with an expected count above the noise; and the total variation of the shrunk split, of an even one, and of raw counts.
"""

from __future__ import annotations

import numpy as np

from dpgm_core import Domain, FloatArray, IntArray
from dpgm_core._util.arrays import Array
from dpgm_core.models.intervals import interval
from dpgm_core.models.merged_codes import MergedAttribute, MergedCodes, block_weights

LABELS, RECORDS, REPLICATES = 30, 3_000, 40


def main(draws: int = 400) -> None:
    """Print a line per width of noise, records."""
    rng = np.random.default_rng(0)
    truth = _shares(np.arange(1.0, LABELS + 1) ** -1.6)
    for deviation in (8.7, 30.0):
        held, codes = np.zeros(2), np.zeros(2)
        errors: list[tuple[float, ...]] = []
        for _ in range(draws):
            counts = rng.multinomial(RECORDS, truth)
            noisy = counts + rng.normal(0, deviation, LABELS).round()
            rare = noisy < 3 * deviation
            if rare.sum() > 1:
                inside, apart = _draw(rng, truth, counts, noisy, rare, deviation)
                often = rare & (truth * RECORDS > deviation)
                held += [inside[rare].sum(), inside[often].sum()]
                codes += [rare.sum(), often.sum()]
                errors.append(apart)
        shares = " and ".join(f"{one:.3f}" for one in held / codes)
        means = " ".join(f"{one:.4f}" for one in np.mean(errors, axis=0))
        print(f"noise {deviation:g}: held {shares} (above the noise); distance shrunk, even, raw: {means}")


def _draw(
    rng: np.random.Generator, truth: FloatArray, counts: IntArray, noisy: FloatArray, rare: Array, deviation: float
) -> tuple[Array, tuple[float, ...]]:
    """Which shares the intervals hold, and how far three ways to split are off."""
    alone = int((~rare).sum())
    codes = np.full(LABELS, alone)
    codes[~rare] = np.arange(alone)
    sizes = np.bincount(codes)
    blocks = _shares(np.bincount(codes, weights=counts + rng.normal(0, deviation / 2, LABELS)) / RECORDS)
    weights = block_weights(noisy, deviation**2, codes)
    level = MergedAttribute(codes=codes, weights=weights, counts=noisy, variance=deviation**2)
    levels = MergedCodes(fine=Domain.from_sizes({"a": LABELS}), of={"a": level})
    found = blocks[codes] * weights
    refits = []
    for number in range(REPLICATES):
        spread = np.sqrt(blocks / RECORDS + sizes * (deviation / 2 / RECORDS) ** 2)
        redrawn = levels.redraw({"a": found}, RECORDS, np.random.default_rng(number)).of["a"].weights
        refits.append(_shares(blocks + rng.normal(size=len(blocks)) * spread)[codes] * redrawn)
    told = interval(found, np.stack(refits), level=0.9, within=(0, 1))
    ways = (found, blocks[codes] / sizes[codes], np.maximum(noisy, 0) / RECORDS)
    return (told.low <= truth) & (truth <= told.high), tuple(float(np.abs(w - truth)[rare].sum()) / 2 for w in ways)


def _shares(values: FloatArray) -> FloatArray:
    above = np.maximum(values, 1e-6)
    return np.asarray(above / above.sum())


if __name__ == "__main__":
    main()
