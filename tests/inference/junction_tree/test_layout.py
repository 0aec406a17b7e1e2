"""Where buffers go: none overlaps another that is live, and the longest runs of axes are found."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.inference.junction_tree.lowering import cut_into_runs, first_fit, is_run

LIVES = st.dictionaries(
    st.integers(0, 30),
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 100)).map(
        lambda one: (min(one[:2]), max(one[:2]), one[2])
    ),
    max_size=20,
)


@given(LIVES)
def test_no_two_live_buffers_overlap(wanted):
    """Each starts on a cache line and ends within the memory stated; freed room is used again."""
    starts, size = first_fit(wanted)
    assert starts.keys() == wanted.keys()
    for (one, (first, last, cells)), (other, (begins, ends, more)) in itertools.combinations(wanted.items(), 2):
        if first <= ends and begins <= last:
            assert starts[one] + cells <= starts[other] or starts[other] + more <= starts[one]
    for number, (_, _, cells) in wanted.items():
        assert starts[number] % 8 == 0 and starts[number] + cells <= size
    assert size <= sum(-(-cells // 8) * 8 for _, _, cells in wanted.values())


def test_room_is_used_again_as_soon_as_it_is_free():
    """A chain of buffers, each live with the next only, needs room for two."""
    assert first_fit({number: (number, number + 1, 64) for number in range(50)})[1] == 128


@given(st.permutations(range(5)), st.lists(st.permutations(range(5)), min_size=1, max_size=3), st.data())
def test_runs_are_the_longest_that_every_table_has_together(order, tables, data):
    """They make up the order, stand side by side in each table or not at all, and no two neighbours could be one."""
    some = [tuple(table[: data.draw(st.integers(0, 5))]) for table in tables]

    def together(run):
        return all((is_run(table, run) if set(run) <= set(table) else not set(run) & set(table)) for table in some)

    runs = cut_into_runs(tuple(order), some)
    assert [letter for run in runs for letter in run] == list(order)
    assert all(together(run) for run in runs)
    assert not any(together(first + second) for first, second in itertools.pairwise(runs))
