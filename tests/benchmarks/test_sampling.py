"""The benchmark of sampling runs and says what it measured."""

from __future__ import annotations

from benchmarks import sampling


def test_rounded_samples_are_nearer_than_independent_ones(capsys):
    """A row per method; inside cliques 500 rounded rows are nearer."""
    sampling.main(counts=(500,), samples=1)
    head, independent, rounded = capsys.readouterr().out.splitlines()
    assert head.startswith("rows") and independent.split()[:2] == ["500", "independent"]
    assert float(rounded.split()[3]) < 0.6 * float(independent.split()[3])
