"""How a cluster takes messages in: against one sum over everything."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.inference.junction_tree.cluster_tree import cluster_sum, letters_of

LETTERS = 5
masks = st.integers(1, 2**LETTERS - 1)


@given(
    masks, st.lists(masks, max_size=3), masks, masks, st.lists(st.integers(1, 3), min_size=LETTERS, max_size=LETTERS)
)
@settings(max_examples=80, deadline=None)
def test_stages_equal_one_sum_over_everything(members, taken, keep, separator, sizes):
    """Separators in any relation to each other and to what is kept; cells are those of the tables on the way."""
    taken, keep, separator = [one & members for one in taken], keep & members, separator & members & keep
    rng = np.random.default_rng(0)
    cluster = rng.random([sizes[letter] for letter in letters_of(members)])
    messages = [rng.random([*(sizes[letter] for letter in letters_of(one)), 2 + at]) for at, one in enumerate(taken)]
    found = cluster_sum(members, taken, keep, separator, sizes)

    table, made = cluster.sum(axis=found.summed), []
    made.append(table.size)
    for stage, message in zip(found.stages, messages, strict=True):
        table = table.transpose(stage.turned).reshape(stage.left)
        message = message if stage.taken is None else message.transpose(stage.taken)
        table = np.matmul(table, message.reshape(stage.right)).reshape(stage.made)
        made.append(table.size)
    assert found.work([message.shape[-1] for message in messages]) == sum(made)

    # Letters of the cluster are 0, 1, ...; what messages carry comes after.
    operands = [cluster, [*letters_of(members)]]
    for at, (one, message) in enumerate(zip(taken, messages, strict=True)):
        operands += [message, [*letters_of(one), LETTERS + at]]
    out = [*found.letters, *(LETTERS + at for at in range(len(taken)))]
    wanted = np.einsum(*operands, out)
    assert {*found.letters} == {*letters_of(keep)}
    np.testing.assert_allclose(table.reshape(wanted.shape), wanted, rtol=1e-12)

    front = list(letters_of(separator))
    order = (*front, *found.own)
    turned = table if found.order is None else table.transpose(found.order)
    again = np.einsum(*operands, [*order, *(LETTERS + at for at in range(len(taken)))])
    assert found.shared == tuple(sizes[letter] for letter in front)
    np.testing.assert_allclose(
        turned.reshape(*found.shared, math.prod(again.shape[len(front) :])),
        again.reshape(*found.shared, -1),
        rtol=1e-12,
    )
