"""The conformance kit on everything that core itself offers."""

import os
import subprocess
import sys

import pytest

from dpgm_core import Ledger, LiveCurator
from dpgm_core.components.registry import Registry
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.sources.related import RelatedSource
from dpgm_testing import InferenceConformance, checks_of
from dpgm_testing.runner import run_check, subject_of

#: Without the selector `research`, which has no tables by default: tests/learning/test_research.py checks it with some.
CORE = [
    one.component for one in Registry.discover() if one.distribution == "dpgm-core" and one.component.kind != "selector"
]
OWN = [(LiveCurator, "curator"), (Ledger, "ledger"), (RelatedSource, "related")]


@pytest.fixture(scope="module")
def subjects():
    made = {}

    def get(component, kind):
        if (component, kind) not in made:
            profile = os.environ.get("DPGM_CONFORMANCE_PROFILE", "default")
            made[component, kind] = subject_of(component, kind, profile=profile)[0]
        return made[component, kind]

    return get


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("name", "kind", "check"),
    [
        pytest.param(one.name, one.kind, check, id=f"{one.name}-{check.name}")
        for one in CORE
        for check in checks_of(one.kind)
    ]
    + [pytest.param(cls, kind, check, id=f"{kind}-{check.name}") for cls, kind in OWN for check in checks_of(kind)],
)
def test_core_keeps_its_own_contracts(subjects, name, kind, check):
    """Each component of core passes each check of its kind, or does not declare what it needs."""
    skipped = run_check(check, subjects(name, kind))
    if skipped is not None:
        pytest.skip(skipped)


def test_core_offers_what_is_checked():
    """The list above is not empty: engines, collectives and sources."""
    assert {one.kind for one in CORE} == {"inference", "collective", "source"} and len(CORE) >= 10


def test_declarations_load_no_numpy():
    """Listing plugins imports the package of every installed one, so none may load what its components need."""
    code = (
        "import sys; from dpgm_core.components.registry import Registry; Registry.discover(); "
        "print([name for name in ('numpy', 'scipy', 'pyarrow') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.landing
class TestLoopyResidual(InferenceConformance):
    """Loopy belief propagation with the other schedule."""

    component = LoopyBP(schedule="residual", damping=0.5)
