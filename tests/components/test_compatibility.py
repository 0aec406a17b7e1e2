"""Requirements on core are read as pip reads them."""

import pytest

from dpgm_core.components.registry import unmet_requirement


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
