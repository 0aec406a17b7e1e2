"""What a plugin declares is checked at once."""

import pytest

from dpgm_core.errors import PluginError
from dpgm_core.plugin import Component


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "noise"},
        {"name": "A"},
        {"name": 3},
        {"target": "x.y"},
        {"target": "x:y.z"},
        {"summary": "a\nb"},
        {"records": "x.y"},
        {"takes": "x:Y"},
        {"takes": ("x.Y",)},
        {"takes": (3,)},
        {"takes": ["x:Y"]},
        {"kind": "learner", "takes": ("x:Y",)},
        {"kind": "learner", "records": "x:y"},
    ],
)
def test_declarations_are_checked(wrong):
    """A component's kind, kebab-case name, target and one-line summary."""
    good = {"kind": "source", "name": "mine", "target": "a.b:C", "summary": "s"}
    assert Component(**good) and Component(**good, records="x:y", takes=("a.b:C", "a:Outer.Inner"))
    with pytest.raises(PluginError):
        Component(**good | wrong)
