"""The registry: plugins found, made and refused; requirements of versions; what core offers."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM, dpgm_components
from dpgm_core.components.registry import Registry, default_registry, make, unmet_requirement
from dpgm_core.errors import (
    ContestedComponent,
    DataError,
    DpgmError,
    IncompatiblePlugin,
    OptionError,
    PluginLoadError,
    UnknownComponent,
)
from dpgm_core.plugin import Component

HOOK = "from dpgm_core.plugin import Component, hookimpl\n@hookimpl\ndef dpgm_components():\n"


def component(kind: str = "mechanism", name: str = "mine", target: str = "x:Y") -> str:
    return f"    yield Component(kind={kind!r}, name={name!r}, target={target!r}, summary='s')\n"


def install(folder: Path, distribution: str, code: str, *, entry: str | None = None, metadata: bool = True) -> None:
    """A distribution on a path: its metadata, its entry point, its module."""
    module = distribution.replace("-", "_")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    if metadata:
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entry or f"[dpgm]\n{distribution} = {module}\n")
    (folder / f"{module}.py").write_text(code)


def in_new_process(folder: Path, code: str, **environment: str) -> dict[str, object]:
    """What the code prints as JSON in an interpreter that finds the folder's distributions."""
    start = "import json\nfrom dpgm_core.components.registry import *\nfrom dpgm_core.errors import *\n"
    start += "registry = Registry.discover()\n"
    environment = os.environ | {"PYTHONPATH": str(folder)} | environment
    done = subprocess.run([sys.executable, "-c", start + code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


REPORT = """
names = [offer.component.name for offer in registry]
print(json.dumps({"names": names, "disabled": registry.disabled,
                  "broken": {one.distribution: [one.version, one.cause] for one in registry.broken}}))
"""


def test_broken_plugins_do_not_stop_the_host(tmp_path):
    """Raising, exiting, yielding nonsense: remembered with distribution, version and cause; the others work."""
    bad = {
        "import": "import no_such_module_anywhere",
        "raise": "raise RuntimeError('two\\nlines')",
        "exit": "import sys\nsys.exit(0)",
        "base": "raise BaseException('all the way')",
        "yield": HOOK + "    yield 'laplace'\n",
        "kind": HOOK + component(kind="mechanics"),
        "name": HOOK + component(name="Not Kebab"),
        "none": HOOK + "    return None\n",
        "hook": HOOK.replace("dpgm_components()", "dpgm_components(unasked)") + component(),
        "nohook": "x = 1",
    }
    for name, code in bad.items():
        install(tmp_path, f"bad-{name}", code)
    install(tmp_path, "bad-nothing", "", entry="[dpgm]\nbad-nothing = there_is_no_such_module:thing\n")
    install(tmp_path, "no-metadata", HOOK + component(name="from-nowhere"), metadata=False)
    install(tmp_path, "good", HOOK + component(name="good-one"))
    found = in_new_process(tmp_path, REPORT)
    broken = found["broken"]
    assert sorted(broken) == sorted(f"bad-{one}" for one in (*bad, "nothing"))
    assert all(version == "1.2" and "\n" not in cause for version, cause in broken.values())
    assert broken["bad-import"][1] == "ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    assert broken["bad-exit"][1] == "SystemExit: 0"
    assert "yielded a str" in broken["bad-yield"][1]
    assert "did you mean 'mechanism'" in broken["bad-kind"][1]
    assert "kebab-case" in broken["bad-name"][1]
    assert {"laplace", "junction-tree", "good-one", "from-nowhere"} <= set(found["names"])


@pytest.mark.parametrize("name", ["spark", "sql"])
def test_a_source_that_is_not_installed_is_told_with_its_plugin(name):
    """As learners and mechanisms are: a spec names the source, not where it comes from."""
    with pytest.raises(UnknownComponent, match=f"there is no source '{name}'.*comes with: pip install dpgm-{name}$"):
        Registry([]).find("source", name)


def test_damaged_and_disabled_distributions_are_named(tmp_path):
    """A damaged file of entry points is named; the module of a disabled distribution is not imported."""
    install(tmp_path, "damaged", "", entry="[dpgm]\nthis line is no entry point\n")
    found = in_new_process(tmp_path, REPORT)
    assert "laplace" in found["names"]
    assert "entry_points.txt" in found["broken"]["damaged"][1]
    install(tmp_path, "leaves-trace", f"open({str(tmp_path / 'trace')!r}, 'w')\n" + HOOK + component())
    found = in_new_process(tmp_path, REPORT, DPGM_DISABLE="leaves-trace, no-such")
    assert found["disabled"] == ["leaves-trace"]
    assert not (tmp_path / "trace").exists()


def test_contested_names_fail_on_use_and_say_how_to_choose(tmp_path):
    """Two offers of one name: nothing is made until one distribution is disabled; then the other serves."""
    install(tmp_path, "other-laplace", HOOK + component(name="laplace", target="no_such:Thing"))
    use = """
import os
said = []
for disabled in ("", "Other_Laplace", "dpgm-laplace"):
    os.environ["DPGM_DISABLE"] = disabled
    try:
        said.append(["", repr(Registry.discover().make("mechanism", "laplace"))])
    except PluginError as error:
        said.append([type(error).__name__, str(error)])
print(json.dumps(said))
"""
    (contested, both), (_, made), (failed, other) = in_new_process(tmp_path, use)
    assert (contested, failed) == ("ContestedComponent", "PluginLoadError")
    assert all(part in both for part in ("dpgm-laplace", "other-laplace 1.2", "DPGM_DISABLE="))
    assert made.startswith("Laplace(") and "other-laplace 1.2" in other


def test_a_missing_default_says_what_to_install_and_who_is_broken(tmp_path):
    """The package of a default, and the distributions that might have offered the name."""
    install(tmp_path, "bad-raise", "raise RuntimeError('why')")
    code = """
try:
    registry.make("mechanism", "laplace")
except UnknownComponent as error:
    print(json.dumps(str(error)))
"""
    message = in_new_process(tmp_path, code, DPGM_DISABLE="dpgm-laplace")
    told = ("no mechanism 'laplace'", "pip install dpgm-laplace", "bad-raise 1.2 is broken", "why", "DPGM_DISABLE")
    assert all(part in message for part in told)


# --- contracts ----------------------------------------------------------------------------------------------------


class Plain:
    """No attrs class."""

    own_randomness = None

    def noise(self, sensitivity, budget): ...


@attrs.frozen
class Positional:
    """An option that is not keyword-only."""

    x: int = 1

    def noise(self, sensitivity, budget): ...


@attrs.frozen(kw_only=True)
class Fewer:
    """A method that takes too little."""

    own_randomness = None

    def noise(self, sensitivity): ...


@attrs.frozen(kw_only=True)
class Renamed:
    """A method whose arguments cannot be named."""

    own_randomness = None

    def noise(self, what, budget): ...


@attrs.frozen(kw_only=True)
class Lacking:
    """No method."""


@attrs.frozen(kw_only=True)
class Silent:
    """It does not say where its draws come from."""

    def noise(self, sensitivity, budget): ...


@attrs.frozen(kw_only=True)
class Good:
    """A mechanism in form."""

    own_randomness = None

    x: int = 1

    def noise(self, sensitivity, budget, extra=None): ...


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Plain, "attrs class"),
        (Positional, "'x' must be keyword-only"),
        (Fewer, r"noise\(self, sensitivity\) does not accept.*noise\(self, sensitivity: "),
        (Renamed, "noise"),
        (Lacking, "no method noise"),
        (Silent, "does not declare own_randomness"),
    ],
)
def test_classes_are_held_against_their_contract(cls, words):
    """The message names the distribution, what was expected and what was found."""
    with pytest.raises(IncompatiblePlugin, match=words) as caught:
        offering("mechanism", mine=cls).make("mechanism", "mine")
    assert "dist-mine" in str(caught.value)


def test_good_classes_objects_and_tables_are_made():
    """By name, by table, by table with more options; an object passes as it is, registered or not."""
    registry = offering("mechanism", mine=Good)
    assert registry.make("mechanism", "mine", x=3) == Good(x=3)
    assert registry.make("mechanism", {"name": "mine", "x": 4}) == Good(x=4)
    thing = Plain()
    assert registry.make("mechanism", thing) is thing
    assert registry.record("mechanism", Good(x=5))["options"] == {"x": 5}
    assert "class" in registry.record("mechanism", thing)


@pytest.mark.parametrize(
    ("kind", "spec", "options", "error", "words"),
    [
        ("mechanism", Good, {}, OptionError, r"write Good\(\)"),
        ("mechanism", Fewer(), {}, IncompatiblePlugin, "does not accept"),
        ("mechanism", Good(), {"x": 1}, OptionError, "must be set on it"),
        ("mechanism", 3, {}, OptionError, "must be a name, a table or a mechanism object, got int"),
        ("mechanism", {"x": 1}, {}, OptionError, "needs a name"),
        ("mechanism", {"name": 3}, {}, OptionError, "got int"),
        ("mechanism", "mien", {}, UnknownComponent, "did you mean 'mine'"),
        ("mechanisms", "mine", {}, UnknownComponent, "did you mean 'mechanism'"),
        ("mechanism", "mine", {"y": 1}, OptionError, "no option 'y'"),
    ],
)
def test_wrong_requests_are_refused(kind, spec, options, error, words):
    """A class instead of an object, options twice, no name, unknown names and kinds."""
    with pytest.raises(error, match=words):
        offering("mechanism", mine=Good).make(kind, spec, **options)


def test_an_object_that_lacks_a_method_is_told_which():
    """A learner that can learn but not check is a learner that is not finished, not some other thing."""

    class Unfinished:
        def learn(self, curator, inference, *, randomness, progress):
            raise AssertionError

    with pytest.raises(IncompatiblePlugin, match=r"learner Unfinished: it has no method check\(.*structure"):
        Registry().make("learner", Unfinished())
    with pytest.raises(OptionError, match="must be a name, a table or a learner object, got dict_keys"):
        Registry().make("learner", {}.keys())


def test_targets_that_cannot_be_imported():
    """A target that raises, exits or is no class: an error that names distribution and target."""
    missing = {"no_such_module:X": PluginLoadError, "math:nothing": PluginLoadError, "math:pi": IncompatiblePlugin}
    for target, error in missing.items():
        registry = Registry()
        registry.add(Component(kind="learner", name="mine", target=target, summary="s"), distribution="dist-x")
        with pytest.raises(error, match=r"dist-x.*" + target):
            registry.load("learner", "mine")


def test_recording_an_object_of_a_contested_name_does_not_fail():
    """What has been paid for must not be lost because two distributions offer a name."""
    registry = offering("mechanism", mine=Good)
    registry.add(Component(kind="mechanism", name="mine", target="z:Z", summary="s"), Plain)
    with pytest.raises(ContestedComponent):
        registry.find("mechanism", "mine")
    assert registry.record("mechanism", Good())["distribution"] == "dist-mine"


def test_component_valued_options_are_recorded_by_name():
    """A learner's e_step is written so that it can be made again."""
    learner = make("learner", "cgm-em", e_step={"name": "nlbp"})
    plain = default_registry().options_of(learner)
    assert plain["e_step"]["name"] == "nlbp"
    assert make("learner", "cgm-em", **plain) == learner


# Sources, of rows or of sums.


@attrs.frozen(kw_only=True)
class Rows:
    """It hands out rows."""

    data: Any = None

    def batches(self, domain, columns): ...


@attrs.frozen(kw_only=True)
class Sums:
    """It sums where the rows are."""

    data: Any = None

    def pinned(self, reading): ...


@attrs.frozen(kw_only=True)
class Both(Rows):
    """Either way."""

    def pinned(self, reading): ...


@attrs.frozen(kw_only=True)
class SumsOfNothing(Rows):
    """Half of it is not kept."""

    def pinned(self): ...


@attrs.frozen(kw_only=True)
class RowsOfNothing(Sums):
    """The other half."""

    def batches(self, domain): ...


def offering(kind: str = "source", implementation: type | None = None, **classes: type) -> Registry:
    """A registry that offers each class under its name; of `implementation`, classes say what its records are."""
    registry = Registry()
    for name, cls in classes.items():
        taken = {} if implementation is None else {"takes": cls}
        made = Component(kind=kind, name=name, target="a.b:C", summary="s", **taken)
        registry.add(made, implementation or cls, distribution=f"dist-{name}")
    return registry


@pytest.mark.parametrize("cls", [Rows, Sums, Both])
def test_a_source_keeps_either_contract_or_both(cls):
    """By name and as an object."""
    assert isinstance(offering(mine=cls).make("source", "mine", data=3), cls)
    assert isinstance(Registry().make("source", cls()), cls)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (SumsOfNothing, r"pinned\(self\) does not accept what its contract says, pinned\(self, reading"),
        (RowsOfNothing, r"batches\(self, domain\) does not accept what its contract says, batches\("),
        (Lacking, r"it has no method batches\(.*\) -> .* nor pinned\(self, reading"),
    ],
)
def test_a_source_keeps_whole_what_it_has_a_method_of(cls, words):
    """The error tells what is missing of the contract it is nearer to; of neither, both."""
    with pytest.raises(IncompatiblePlugin, match=words):
        offering(mine=cls).make("source", "mine")


@pytest.mark.parametrize("name", ["batches", "pinned", "source", "name"])
def test_no_option_of_a_source_hides_a_name_that_is_needed(name):
    """Whichever contract it keeps."""
    cls = attrs.make_class("Hides", {name: attrs.field(default=1)}, bases=(Sums,), frozen=True, kw_only=True)
    with pytest.raises(IncompatiblePlugin, match=f"option {name!r} hides"):
        offering(mine=cls).make("source", "mine")


class Frame:
    """Of an engine."""


class NearFrame(Frame):
    """A child of it."""


def test_records_of_a_class_find_the_source_that_takes_them():
    """The nearest class decides; of two sources for one class both are named, with how to choose."""
    registry = offering("source", Both, far=(f"{__name__}:Frame", "no.such:Frame"), near=(f"{__name__}:NearFrame",))
    for frame in (Frame(), NearFrame()):
        assert registry.source_of(frame) == Both(data=frame)
    del registry._offers[1]
    assert registry.source_of(NearFrame()).data
    assert registry.source_of(3) is registry.source_of(Frame) is None
    registry = offering("source", Both, one=(f"{__name__}:Frame",), two=(f"{__name__}:Frame",))
    with pytest.raises(ContestedComponent, match=r"'one' of dist-one - and 'two' of dist-two.*make\('source', 'one'"):
        registry.source_of(NearFrame())


def test_records_of_a_known_engine_name_the_plugin_that_is_missing():
    """One line that says what to install; where the plugin is there and takes it, nothing is said."""
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    with pytest.raises(DataError, match=r"a DataFrame of pyspark are read by dpgm-spark; pip install dpgm-spark$"):
        offering().source_of(frame)
    registry = Registry(disabled=["dpgm-spark"])
    with pytest.raises(DataError, match="pip install dpgm-spark; note: disabled by DPGM_DISABLE: dpgm-spark"):
        registry.source_of(frame)
    child = type("Mine", (type(frame),), {"__module__": "somewhere"})()
    with pytest.raises(DataError, match="a Mine of pyspark are read by dpgm-spark"):
        registry.source_of(child)
    registry = offering("source", Both, spark=("pyspark.sql.dataframe:DataFrame",))
    assert registry.source_of(child).data is child


@pytest.mark.parametrize(
    ("requirement", "version", "met"),
    [
        ("dpgm-core", "0.1.0", True),
        ("dpgm-core>=0.1", "0.1.0", True),
        ("dpgm-core>=0.2", "0.1.9", False),
        ("dpgm-core>=0.1.0", "0.1", True),
        ("DPGM.Core<2,>=1.5", "1.10.1", True),
        ("dpgm-core>1.10", "1.9", False),
        ("dpgm-core<1", "1.0.0", False),
        ("dpgm-core==1.*", "1.7", True),
        ("dpgm-core==1.2.*", "1.3", False),
        ("dpgm-core!=1.3", "1.3.0", False),
        ("dpgm-core~=1.4.2", "1.4.9", True),
        ("dpgm-core~=1.4.2", "1.5.0", False),
        ("dpgm-core~=1.4", "1.9", True),
        ("dpgm-core[testing]>=9; extra == 'testing'", "0.1", True),
        ("dpgm-core-extras>=9", "0.1", True),
        ("dpgm-core>=1!3", "0.1", True),
        ("dpgm-core @ https://example.org/core.whl", "0.1", True),
        ("dpgm-core>=0.2", "0.2.0.dev3", True),
        ("not a requirement at all >=", "0.1", True),
    ],
)
def test_requirements_are_read_as_pip_reads_them(requirement, version, met):
    """Release numbers, wildcards, compatible releases; extras, epochs and what is no requirement are left to pip."""
    assert (unmet_requirement([requirement], "dpgm-core", version) is None) == met


def test_requirements_agree_with_packaging():
    """The library that pip uses says the same on a grid of clauses and versions."""
    specifiers = pytest.importorskip("packaging.specifiers")
    for sign in ("==", "!=", "<=", ">=", "<", ">", "~="):
        for wanted in ("0.1", "1.0", "1.2.3", "1.10"):
            for version in ("0.1", "0.1.0", "0.2", "1.0", "1.2", "1.2.3", "1.2.4", "1.10", "2.0"):
                found = unmet_requirement([f"dpgm-core{sign}{wanted}"], "dpgm-core", version) is None
                assert found == specifiers.SpecifierSet(sign + wanted).contains(version), (sign, wanted, version)


def test_the_defaults_can_be_made_and_no_name_is_offered_twice():
    """The inference by core itself, noise and learner by the first-party plugins."""
    names = [(one.kind, one.name) for one in dpgm_components()]
    assert len(names) == len(set(names))
    assert ("inference", INFERENCE) in [(one.kind, one.name) for one in dpgm_components()]
    for kind, name in (("inference", INFERENCE), ("mechanism", MECHANISM), ("learner", LEARNER)):
        make(kind, name)


NUMBERS = [
    pytest.param(offer.component.kind, offer.component.name, option.name, id=f"{offer.component.name}-{option.name}")
    for offer in Registry.discover()
    if offer.component.kind in ("mechanism", "inference", "collective", "learner")
    for option in attrs.fields(Registry.discover().load(offer.component.kind, offer.component.name))
    if isinstance(option.default, (int, float)) and not isinstance(option.default, bool)
]


@pytest.mark.parametrize(("kind", "name", "option"), NUMBERS)
def test_no_number_is_taken_that_is_none(kind, name, option):
    """NaN, infinities, negatives and bools, built directly and through the registry."""
    implementation = Registry.discover().load(kind, name)
    fields = attrs.fields(implementation)
    needed = {one.name: one.metadata["sample"] for one in fields if one.default is attrs.NOTHING}
    for wrong in (math.nan, math.inf, -math.inf, -1, True):
        with pytest.raises((DpgmError, ValueError, TypeError), match=option):
            implementation(**needed | {option: wrong})
        with pytest.raises(DpgmError, match=option):
            make(kind, {"name": name, **needed, option: wrong})
