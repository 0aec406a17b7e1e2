"""Components that core itself offers, through the hook of all plugins; no numpy here."""

from __future__ import annotations

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["INFERENCE", "LEARNER", "MECHANISM", "dpgm_components"]

#: What is used where nothing was said.
MECHANISM = "laplace"
#: The one that wins the study untouched (benchmarks/selftuning.py, docs/which-learner.md).
LEARNER = "eb-map"
INFERENCE = "junction-tree"


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """The built-in engines, selector and sources."""
    return (
        Component(
            kind="inference",
            name="junction-tree",
            target="dpgm_core.inference.junction_tree.engine:JunctionTree",
            summary="exact marginals by planned contractions and their adjoint",
        ),
        Component(
            kind="inference",
            name="loopy-bp",
            target="dpgm_core.inference.loopy.bp:LoopyBP",
            summary="damped sum-product on the factor graph; exact on trees, approximate elsewhere",
        ),
        Component(
            kind="collective",
            name="collective-dual",
            target="dpgm_core.inference.collective.dual:CollectiveDual",
            summary="exact E-step through its smooth dual, with a duality-gap certificate",
        ),
        Component(
            kind="collective",
            name="nlbp",
            target="dpgm_core.inference.collective.nlbp:Nlbp",
            summary="non-linear belief propagation, the papers' fixed point; as printed or convergent",
        ),
        Component(
            kind="collective",
            name="soft-sign",
            target="dpgm_core.inference.collective.soft_sign:SoftSign",
            summary="posterior-mean E-step: a soft sign as wide as the sampling error",
        ),
        Component(
            kind="selector",
            name="research",
            target="dpgm_core.learning.research:Targeted",
            summary="named tables first, as [research] plans them for regressions; then another selector",
        ),
        Component(
            kind="source",
            name="csv",
            target="dpgm_core.sources.csv:CsvSource",
            summary="a CSV file of any dialect, plain or gzipped; every line is one record, however broken",
            records="dpgm_testing.sources:csv",
        ),
        Component(
            kind="source",
            name="parquet",
            target="dpgm_core.sources.parquet:ParquetSource",
            summary="a Parquet file, or a folder of them, partitioned or not",
            records="dpgm_testing.sources:parquet",
        ),
        Component(
            kind="source",
            name="arrow-ipc",
            target="dpgm_core.sources.arrow:ArrowIpcSource",
            summary="an Arrow IPC (Feather) file",
            records="dpgm_testing.sources:arrow_ipc",
        ),
        Component(
            kind="source",
            name="arrow",
            target="dpgm_core.sources.arrow:ArrowSource",
            summary="any object with __arrow_c_stream__: pandas, polars, pyarrow, DuckDB",
            records="dpgm_testing.sources:arrow",
        ),
        Component(
            kind="source",
            name="codes",
            target="dpgm_core.sources.codes:CodesSource",
            summary="arrays of integer codes",
            records="dpgm_testing.sources:codes",
        ),
    )
