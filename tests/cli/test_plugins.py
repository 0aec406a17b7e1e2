"""`dpgm plugins` and `dpgm show`."""

from __future__ import annotations

import json


def test_plugins_and_show(dpgm_command, refused):
    """Every component with its origin; every option of one."""
    out = dpgm_command("plugins", "--json")[1]
    names = {(one["kind"], one["name"]) for one in json.loads(out)["components"]}
    assert {("mechanism", "laplace"), ("learner", "naive-mle"), ("inference", "junction-tree")} <= names
    out = dpgm_command("show", "learner", "naive-mle", "--json")[1]
    assert {one["name"] for one in json.loads(out)["options"]} == {"project", "l2", "tolerance", "max_iterations"}
    assert "strength of the L2 penalty" in dpgm_command("show", "learner", "naive-mle")[1]
    assert "did you mean 'naive-mle'" in refused("show", "learner", "naive-mel")
    assert "did you mean 'learner'" in refused("show", "lerner", "naive-mle")
