"""Exact inference in logarithms: nothing underflows, whatever the potentials; slower than in probabilities."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.exact import logspace
from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.log_curvature import LogCurvature, Means, means_of
from dpgm_core.inference.exact.potentials import refuse_infinite
from dpgm_core.structure import Structure

__all__ = ["Logarithms"]


class Logarithms:
    """Walks of one contraction in logarithms; no state between calls. theta: nats, laid out like `Tables.values`."""

    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        self._contraction, self._structure = contraction, structure

    def infer(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Marginals of one record, (cells,), and log Z besides attributes in no clique, which may be infinite."""
        values, log_partition = self._walked(theta, logspace.log_contract)
        marginals = np.zeros(theta.size)
        if log_partition == -math.inf:
            return marginals, log_partition
        adjoints = logspace.backward(self._contraction, values, keep=False)
        for node, group in enumerate(self._contraction.groups):
            part = marginals[self._structure.slices[group]]
            part += np.exp(values[node] + adjoints[node]).reshape(-1)
        return marginals, log_partition

    def forward(self, theta: FloatArray, contract: logspace.Contract) -> tuple[list[FloatArray], float]:
        """The logarithm of every node and the total. Raises InferenceError where that is infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            values, total = self._walked(theta, contract)
        refuse_infinite(total)
        return values, total

    def curvature(self, theta: FloatArray) -> LogCurvature:
        """Cov(T) at these potentials. Raises InferenceError as `forward` does."""
        values, _ = self.forward(theta, logspace.log_contract)
        adjoints = logspace.backward(self._contraction, values)
        return LogCurvature(self._contraction, self._structure, self._means, values, adjoints)

    @cached_property
    def _means(self) -> Means:
        return means_of(self._contraction)

    def _walked(self, theta: FloatArray, contract: logspace.Contract) -> tuple[list[FloatArray], float]:
        contraction = self._contraction
        inputs = logspace.inputs_of(contraction, self._structure, theta)
        values = logspace.forward(contraction, inputs, contract)
        # the total is that of components and of tables without letters
        scalars = [float(values[node]) for node in range(len(contraction.groups)) if not contraction.nodes[node]]
        return values, sum(scalars) + sum(float(values[root]) for root in contraction.roots)
