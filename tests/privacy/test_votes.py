"""Voters: what is refused, and plain values back and forth."""

import pytest

from dpgm_core import Domain, ModelFileError, OptionError, Structure, StructureError, Terms
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, voter_of

DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 3})
PAIRS = Structure(DOMAIN, [("a", "b"), ("b", "c")])
BINARY = Structure(DOMAIN, [("a", "b")])

NONE = (True, "1", None, float("nan"), float("inf"), -1, 0, 10**400)


@pytest.mark.parametrize("value", [*NONE[:-1], 1.5, 2**16 + 1])
def test_blocks_are_a_whole_number(value):
    """Bools, fractions, texts and numbers without a sense are refused."""
    with pytest.raises(OptionError, match=r"^blocks must be a whole number from 1 to 65,536"):
        EdgeVotes(pairs=PAIRS, blocks=value)


@pytest.mark.parametrize("name", ["least", "penalty", "tau"])
@pytest.mark.parametrize("value", NONE)
def test_numbers_are_finite_and_positive(name, value):
    """And tau is a share."""
    with pytest.raises(OptionError, match=f"^{name} must be"):
        if name == "tau":
            ThresholdVotes(pairs=BINARY, tau=value)
        else:
            EdgeVotes(pairs=PAIRS, blocks=3, **{name: value})


def test_what_else_is_refused():
    """A flag that is none, tau = 1, candidates that are no pairs, labels that have no sign, N that is not known."""
    with pytest.raises(OptionError, match="whole must be true or false"):
        EdgeVotes(pairs=PAIRS, blocks=3, whole=1)
    with pytest.raises(OptionError, match="tau must be a number between 0 and 1"):
        ThresholdVotes(pairs=BINARY, tau=1)
    tied = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [], tied=[[("a", "b"), ("b", "c")]])
    for pairs in (Structure(DOMAIN, [("a",)]), Structure(DOMAIN, [("a", "b", "c")]), tied, "a"):
        with pytest.raises(StructureError, match="the candidates of votes must be"):
            EdgeVotes(pairs=pairs, blocks=3)
    with pytest.raises(StructureError, match="two labels, and c has another number"):
        ThresholdVotes(pairs=PAIRS, tau=0.3)
    for neighbours in ("add-remove", "replace-one"):
        with pytest.raises(OptionError, match="declare the number of records"):
            ThresholdVotes(pairs=BINARY, tau=0.3).check(Terms(neighbours=neighbours))
        ThresholdVotes(pairs=BINARY, tau=0.3).check(Terms(neighbours=neighbours, total=100))
        ThresholdVotes(pairs=BINARY, tau=0.3).check(Terms(neighbours=neighbours, total="public"))
        EdgeVotes(pairs=PAIRS, blocks=3).check(Terms(neighbours=neighbours))


def test_plain_values_and_back():
    """The same voter; anything else is no file of ours."""
    for voter in (
        EdgeVotes(pairs=PAIRS, blocks=7, least=0.3, penalty=1, whole=True),
        ThresholdVotes(pairs=BINARY, tau=0.3),
    ):
        assert voter_of(voter.to_dict(), voter.pairs) == voter
        for wrong in (
            None,
            {},
            voter.to_dict() | {"by": "all"},
            voter.to_dict() | {"by": []},
            voter.to_dict() | {"x": 1},
        ):
            with pytest.raises(ModelFileError):
                voter_of(wrong, voter.pairs)
    with pytest.raises(ModelFileError, match="blocks must be"):
        voter_of(EdgeVotes(pairs=PAIRS, blocks=7).to_dict() | {"blocks": "7"}, PAIRS)
