"""A comparison as plain values."""

import json

from dpgm.comparison import compare
from dpgm_core._util.files import plain


def test_the_plain_values_are_json(folder):
    """All kinds; the privacy sentence says what the stamps say."""
    found = compare(folder / "m.dpgm", folder / "n.dpgm", folder / "s.parquet", folder / "m.release.dpgm")
    told = json.loads(json.dumps(plain(found.to_dict())))
    assert [one["kind"] for one in told["subjects"]] == ["model", "model", "synthetic", "release"]
    assert [one["private"] for one in told["subjects"]] == [False] * 4  # all come from a seed
    assert "no more private than they are: NOT PRIVATE (private = false)" in told["privacy"]
    assert [bool(pair["kl"]) for pair in told["pairs"]] == [True, False, False]
