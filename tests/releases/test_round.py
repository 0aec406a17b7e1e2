"""What a release says of being one of many subsampled ones."""

from fractions import Fraction

from dpgm_core import ClippedScore
from dpgm_core.releases.release import Round


def test_a_round_says_its_number_rate_and_what_its_tables_hold():
    """In its guarantee and in its file; the rate is exact, and scores are told from counts."""
    plain = Round(number=2, of=8, sampling_rate=Fraction(1, 3))
    assert "round 2 of 8" in plain.sentence() and "scores" not in plain.sentence()
    assert plain.to_dict()["sampling_rate"] == "1/3" and plain.to_dict()["clip_norm"] is None
    clipped = Round(number=1, of=1, sampling_rate=Fraction(1), clip=ClippedScore(norm=Fraction(1, 2), grid=64))
    assert "clipped scores in units of 1/64, no counts" in clipped.sentence()
    assert (clipped.to_dict()["clip_norm"], clipped.to_dict()["grid"]) == ("1/2", 64)
