"""What votes hand out, the graph or nothing, and what it costs."""

from dpgm_core import Budget, Domain, Structure
from dpgm_core.privacy.votes import ThresholdVotes
from dpgm_core.releases.steps import Verdict

PAIRS = Structure.complete(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
PART = Budget.approx(1, "1e-6")


def test_a_verdict_is_told_by_numbers_of_candidates():
    """No edge is another outcome than nothing, and both cost the same."""
    place = {pair: number for number, pair in enumerate(PAIRS.cliques, start=3)}
    voter = ThresholdVotes(pairs=PAIRS, tau=0.3)
    for edges, numbers in ((None, None), ((), []), ((("b", "c"),), [5])):
        one = Verdict(voter=voter, budget=PART, edges=edges)
        told = one.step_document(place)
        assert told == {
            "kind": "vote",
            "candidates": [3, 4, 5],
            "voter": {"by": "threshold", "tau": 0.3},
            "budget": PART.to_dict(),
            "edges": numbers,
        }
        assert one.cost == PART and one.candidates == PAIRS.cliques and not len(one.numbers)
