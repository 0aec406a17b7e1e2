"""`dpgm plugins`, with names and without."""

import json


def test_plugins(dpgm_command):
    """Every component with its origin, or those of a kind."""
    out = dpgm_command("plugins", "--json")[1]
    names = {(one["kind"], one["name"]) for one in json.loads(out)["components"]}
    assert {("mechanism", "laplace"), ("learner", "naive-mle"), ("inference", "junction-tree")} <= names
    out = dpgm_command("plugins", "learner", "--json")[1]
    learners = {(one["kind"], one["name"]) for one in json.loads(out)["components"]}
    assert learners == {one for one in names if one[0] == "learner"}


def test_plugins_by_name(dpgm_command, refused):
    """Every option of one or several; a name of two kinds means both, unless a kind stands before it."""
    out = dpgm_command("plugins", "naive-mle", "--json")[1]
    assert {one["name"] for one in json.loads(out)["options"]} == {"project", "l2", "tolerance", "max_iterations"}
    out = dpgm_command("plugins", "naive-mle", "csv")[1]
    assert "strength of the L2 penalty" in out and "source csv, from dpgm-core" in out
    both = json.loads(dpgm_command("plugins", "mrf-fw", "--json")[1])
    assert len(both) == 2 and len({one["kind"] for one in both}) == 2
    assert json.loads(dpgm_command("plugins", both[0]["kind"], "mrf-fw", "--json")[1]) == both[0]
    assert "did you mean 'naive-mle'" in refused("plugins", "naive-mel")
    assert "did you mean 'naive-mle'" in refused("plugins", "learner", "naive-mel")
    assert "did you mean 'learner'" in refused("plugins", "lerner", "naive-mle")
