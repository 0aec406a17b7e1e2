"""Files named in each other's place are told by their names, never by what they hold."""

import pytest

from dpgm_core._util.files import hint_not_a_model, hint_not_a_spec


@pytest.mark.parametrize(
    "name", ["x.CSV", "x.csv.gz", "x.parquet", "a b.arrow", "x.toml", "x.ledger", "x.bif", "x.uai"]
)
def test_names_tell(name: str) -> None:
    """Files that need not be there; what is to be typed is quoted for a shell, and the line is one."""
    said = hint_not_a_model(f"new\nline/{name}", "model file")
    assert said is not None and "by its name" in said and "\n" not in said
    assert "'a b.arrow'" in str(hint_not_a_spec("a b.arrow"))


@pytest.mark.parametrize("name", ["x", "x.dpgm", "x.zip", ".csv2"])
def test_other_names_do_not(name: str) -> None:
    """A model that is damaged is told so."""
    assert hint_not_a_model(name, "model file") is None


def test_a_spec_under_any_name_is_left_to_its_reader() -> None:
    """Its suffix is free."""
    assert hint_not_a_spec("x.toml") is None and hint_not_a_spec("x.spec") is None
