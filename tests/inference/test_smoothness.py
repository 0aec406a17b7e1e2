"""What learners that follow gradients to their end refuse to learn with."""

from dpgm_core import Domain, Structure
from dpgm_core.components.registry import make
from dpgm_core.inference.constraints import steady


def test_engines_without_draws_pass():
    """junction-tree and loopy-bp, approximate or not, are returned as they are."""
    structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 2)))
    for name in ("junction-tree", "loopy-bp"):
        engine = make("inference", name).compile(structure)
        assert steady(engine, "mine") is engine
