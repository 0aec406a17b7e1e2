"""The benchmark of merged codes runs and says what it measured."""

from __future__ import annotations

from benchmarks import merged


def test_intervals_of_merged_codes_hold_most_shares(capsys):
    """A line per width of noise; shrunk splits are nearer than raw counts."""
    merged.main(draws=10)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["noise 8.7", "noise 30"]
    for line in lines:
        shrunk, _, raw = map(float, line.split()[-3:])
        assert shrunk < raw and float(line.split("held ")[1].split()[0]) > 0.8
