"""Which warnings end a test: ours, and nobody else's."""

import warnings

import pytest


def warned(module: str, category: type[Warning]) -> list[str]:
    """What is left of a warning that meets the filters of pyproject.toml; raises where it is an error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.warn_explicit("words", category, "file.py", 1, module=module, registry={})
    return [str(one.message) for one in seen]


@pytest.mark.parametrize(
    "module", ["dpgm_core.model", "dpgm_eb_map.learner", "tests.inference.test_loopy_bp", __name__, "conftest"]
)
@pytest.mark.parametrize("category", [RuntimeWarning, UserWarning, ResourceWarning, SyntaxWarning])
def test_our_own_are_errors(module, category):
    """Overflows, files left open and whatever else our modules, plugins and tests cause."""
    with pytest.raises(category, match="words"):
        warned(module, category)


@pytest.mark.parametrize("category", [RuntimeWarning, UserWarning, DeprecationWarning, FutureWarning])
def test_those_of_other_code_are_reported(category):
    """A first run on newer releases than ours does not fail for what they say to each other."""
    assert warned("scipy.optimize._lbfgsb_py", category) == ["words"]


@pytest.mark.parametrize("category", [DeprecationWarning, PendingDeprecationWarning, FutureWarning])
def test_a_deprecation_that_our_code_meets_is_reported(category):
    """numpy blames its caller: what it will drop one day works today."""
    assert warned("dpgm_core.structure.tables", category) == ["words"]


def test_an_exception_that_nobody_sees_is_an_error():
    """Raised where Python can only print it, as in a finaliser, it would be lost."""
    with pytest.raises(pytest.PytestUnraisableExceptionWarning):
        warned("_pytest.unraisableexception", pytest.PytestUnraisableExceptionWarning)
