"""Bad input of third parties: the host works on, and messages name distribution, version, member, expected, found."""

import os
import subprocess
import sys

import attrs
import pytest

from dpgm_core import __version__
from dpgm_core.components.options import option
from dpgm_core.components.registry import Offer, Registry
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.plugin import Component


def offered(kind, cls, name="mine"):
    """A registry in which `someones-plugin 3.1` offers a class."""
    component = Component(kind=kind, name=name, target="x:Y", summary="s")
    return Registry([Offer(component=component, distribution="someones-plugin", version="3.1", implementation=cls)])


def dpgm(folder, *arguments):
    """`dpgm ...` where the folder's distributions are installed; it must not fail."""
    code = "from dpgm.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("requirement", ["dpgm-core>=99", "dpgm_core (>=0.1,<0.1)", "dpgm-core~=99.2"])
def test_a_plugin_for_a_newer_core_is_explained_and_not_imported(requirement, tmp_path):
    """Its metadata are enough: never imported, listed as broken with what it needs and what runs; others work."""
    info = tmp_path / "too_new-2.0.dist-info"
    info.mkdir()
    facts = ("Metadata-Version: 2.1", "Name: too-new", "Version: 2.0", "Requires-Dist: numpy")
    (info / "METADATA").write_text("\n".join((*facts, f"Requires-Dist: {requirement}\n")))
    (info / "entry_points.txt").write_text("[dpgm]\ntoo-new = too_new\n")
    (tmp_path / "too_new.py").write_text("raise SystemError('it was imported')")
    listed = dpgm(tmp_path, "plugins")
    assert listed.returncode == 0, listed.stderr
    assert f"broken: too-new 2.0: it needs {requirement}, but this is dpgm-core {__version__}" in listed.stdout
    assert "junction-tree" in listed.stdout and "imported" not in listed.stdout
    asked = dpgm(tmp_path, "plugins", "too-new-noise")
    assert asked.returncode == 2 and "too-new 2.0 is broken: it needs" in asked.stderr


@pytest.mark.parametrize(
    ("kind", "name"), [("mechanism", "name"), ("learner", "name"), ("source", "source"), ("learner", "learn")]
)
def test_options_that_shadow_are_refused(kind, name):
    """`name` and `source` are keys of the spec file, and a method is no option: each could never be set."""
    cls = attrs.make_class("Shadow", {name: option(1, help="h")}, frozen=True, kw_only=True)
    with pytest.raises(IncompatiblePlugin, match=rf"{kind} 'mine' of someones-plugin 3\.1: option '{name}' hides"):
        offered(kind, cls).load(kind, "mine")


def test_an_option_of_that_name_elsewhere_is_fine():
    """Only sources are named by `source`."""

    @attrs.frozen(kw_only=True)
    class Fine:
        source: str = option("x", help="h")
        own_randomness = None

        def noise(self, sensitivity, budget):
            raise NotImplementedError

    assert offered("mechanism", Fine).load("mechanism", "mine") is Fine
