"""Settings for every test of the tree: one BLAS thread each, Hypothesis without deadlines, repeatable randomness."""

import functools
import gc
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `pytest -n auto` has a process for every core, so no process takes more than one; subprocesses inherit it, and whoever
# sets a variable is heard. BLAS reads them when numpy is loaded, which happens after this file.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# Dozens of tests start a Python of their own, which would compile every module again where byte code is not kept, as in
# an environment that was installed without it.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The machines that run the tests are noisy, so time is no criterion; `DPGM_HYPOTHESIS=explore` looks for new examples.
settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("DPGM_HYPOTHESIS", "repeatable"))


def _is_absent(plugin: Path) -> bool:
    try:
        metadata.version(plugin.name)
    except metadata.PackageNotFoundError:
        return True
    return False


# Those for engines that README's commands do not install; `.ci/engines.py` makes an environment for each.
_ABSENT = sorted(filter(_is_absent, (Path(__file__).parent / "plugins").glob("dpgm-*")))
# Modules that compile kernels, and are imported only for that: their doctests would import them.
if find_spec("numba") is None:
    _ABSENT += [Path(__file__).parent / f"dpgm_core/inference/kernels/{name}.py" for name in ("compiling", "tile_code")]


#: Folders of tests that `.ci/run` runs before a change lands, and plain `pytest` leaves out: machines that try whole
#: runs, smallest runs of benchmarks, and proofs that the conformance kit finds faults.
_LANDING = tuple(
    Path(__file__).parent / name
    for name in (
        *(f"tests/{folder}" for folder in ("audit", "benchmarks", "fuzz", "kill", "neighbours")),
        "plugins/dpgm-testing/tests/mutants",
    )
)


#: How far the conformance classes go: where plain `pytest` leaves out what is marked `landing` they are quick, and
#: any other selection runs them as `landing` tests at their default profile. See `dpgm_testing.conformance`.
_PROFILE = "DPGM_CONFORMANCE_PROFILE"


def _is_plain(config: pytest.Config) -> bool:
    return config.option.markexpr == "not landing"


def _is_conformance(item: pytest.Item) -> bool:
    """Whether it is the kit's, at the profile of the environment and no other."""
    marked = item.get_closest_marker("conformance") is not None
    return marked or (item.name.startswith("test_check[") and getattr(item.cls, "profile", "") is None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave them out, also where a folder inside of one is named; others are left to pytest."""
    left_out = [*_ABSENT, *(_LANDING if _is_plain(config) else ())]
    return True if any(folder in (collection_path, *collection_path.parents) for folder in left_out) else None


def pytest_configure(config: pytest.Config) -> None:
    """Set the profile of the conformance classes, unless the environment names one."""
    if _is_plain(config):
        os.environ.setdefault(_PROFILE, "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is left to `.ci/run`, before pytest selects by markers.

    The tests of those folders, all cases of a `sampled` test but every k-th, and, where they run in full, conformance.
    """
    cases: Counter[str] = Counter()
    for item in items:
        in_full = not _is_plain(config) and _is_conformance(item)
        if in_full or any(folder in item.path.parents for folder in _LANDING):
            item.add_marker("landing")
        elif (sampled := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                item.add_marker("landing")
            cases[test] += 1


def pytest_report_header() -> list[str]:
    """What is not tested here, and why."""
    return [f"{plugin.name}: not installed, so its tests are left out" for plugin in _ABSENT]


# Within a test process the operating system's randomness is a stream seeded by the test's name, so that a test that
# passes once passes always, alone or with others, in whatever order. It goes on from draw to draw and from object to
# object, so no two draws are alike. A seed hides a test that passes by luck: `DPGM_TEST_SALT=2 pytest` draws another
# world, and every test has to pass in any. Hooks and no fixture, since Hypothesis refuses those made once per function.
# Subprocesses, and tests marked `system_randomness`, have the operating system's.


class _Stream:
    """What stands in for the operating system: the generator of the test or shared fixture that runs now."""

    def __init__(self) -> None:
        self.generator = None
        self.patch = pytest.MonkeyPatch()

    def start(self, name: str) -> None:
        # Late, because numpy has to be loaded after the threads are set.
        import numpy as np

        seed = hashlib.sha256(f"{os.environ.get('DPGM_TEST_SALT', '')} {name}".encode()).digest()
        self.generator = np.random.Philox(int.from_bytes(seed))

    def replace(self) -> None:
        import numpy as np

        from dpgm_core._util.randomness import SystemRandomness

        @functools.wraps(SystemRandomness.words)
        def words(_: SystemRandomness, count: int) -> np.ndarray:
            drawn = self.generator.random_raw(count)
            drawn.setflags(write=False)  # as the real ones, which nobody may change in place
            return drawn

        @functools.wraps(SystemRandomness.generator)
        def generator(system: SystemRandomness) -> np.random.Generator:
            return np.random.default_rng(words(system, 4))

        self.patch.setattr(SystemRandomness, "words", words)
        self.patch.setattr(SystemRandomness, "generator", generator)


_STREAM = _Stream()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Seed what the test draws by its name."""
    if item.get_closest_marker("system_randomness") is None:
        _STREAM.start(item.nodeid)
        _STREAM.replace()
    try:
        return (yield)
    finally:
        _STREAM.patch.undo()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> Iterator[None]:
    """Seed what tests share by its own name, since which of them asks first is chance."""
    if fixturedef.scope == "function":
        return (yield)
    outer = _STREAM.generator
    _STREAM.start(f"{request.node.nodeid} {fixturedef.argname} {request.param_index}")
    try:
        return (yield)
    finally:
        _STREAM.generator = outer


def pytest_collection_finish() -> None:
    """What there is before the first test stays: the collector, which some tests call often, need not look again.

    Twelve thousand tests are half a million objects, a quarter of a second for each call.
    """
    gc.collect()
    gc.freeze()
