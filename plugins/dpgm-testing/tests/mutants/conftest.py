"""How a mutant is judged: by the one check that is meant for it, as the kit would run it."""

import pytest

from dpgm_testing import Profile, checks_of
from dpgm_testing.runner import run_check, subject_of

# As far as the default profile goes, but counterexamples stay as large as they were found.
PROFILE = Profile(name="mutants", examples=60, draws=1_000_000, shrink=False)


@pytest.fixture(scope="session")
def verdict():
    """verdict(component, kind, check name, records=None, profile=PROFILE) -> what the check found, or None."""

    def judge(component, kind, name, records=None, profile=PROFILE):
        (check,) = [check for check in checks_of(kind) if check.name == name]
        subject, _ = subject_of(component, kind, profile=profile, records=records)
        try:
            skipped = run_check(check, subject)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        assert skipped is None, f"the check {name} was skipped: {skipped}"
        return None

    return judge
