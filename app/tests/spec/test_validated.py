"""The owner's note on a domain: it holds nothing of records, and asks for nothing but the same domain."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dpgm.spec import load_spec, read_spec
from dpgm.validated import check_validated, digest, write_validated
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Terms, fit, learn, load_model, release
from dpgm_core.errors import DpgmError, ModelFileError, OptionError

DOMAIN = Domain.from_sizes({"a": 2, "b": 3})
OTHERS = [
    Domain.from_sizes({"b": 3, "a": 2}),
    Domain.from_sizes({"a": 2, "b": 3}, unknown=1),
    Domain.from_sizes({"a": 2}),
    Domain.from_dict({"attributes": {"a": {"size": 2}, "b": {"labels": ["0", "1", "2"], "unknown": "0"}}}),
]


def test_the_note_holds_the_domain_the_day_and_nothing_else(tmp_path: Path) -> None:
    """Its exact words; a later one replaces it, and no other file."""
    path = tmp_path / "x.validated.json"
    write_validated(path, OTHERS[0])
    write_validated(path, DOMAIN)
    check_validated(path, DOMAIN)
    facts = json.loads(path.read_text())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", facts.pop("date"))
    assert facts == {
        "dpgm-validated": 1,
        "domain": digest(DOMAIN),
        "says": "The owner has compared the data with this domain. Nothing in this file was computed from the data.",
    }
    path.write_text("{}")
    with pytest.raises(ModelFileError, match="only a note of dpgm validate is replaced there"):
        write_validated(path, DOMAIN)


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_another_domain_is_refused_with_what_would_do(tmp_path: Path, other: Domain) -> None:
    path = tmp_path / "x.json"
    write_validated(path, other)
    with pytest.raises(OptionError) as caught:
        check_validated(path, DOMAIN)
    assert str(caught.value) == (
        f"{path} names another domain than this run has, which was edited since; run dpgm validate on this spec again, "
        "or leave `validated` out"
    )


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"\xff", b'{"dpgm-validated": 2}', b"[" * 4000, b"x" * 5000]
)
def test_what_is_no_note_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(OptionError, match="is not a file of dpgm validate; run dpgm validate"):
        check_validated(path, DOMAIN)
    with pytest.raises(OptionError, match="No such file or directory; dpgm validate writes one"):
        check_validated(tmp_path / "none.json", DOMAIN)


SPEC = """
data = "no-such-file.csv"
domain = { a = 2, b = 3 }
neighbours = "add-remove"
budget = { epsilon = 1 }
structure = { graph = "chain" }
validated = "note.json"
"""


def test_a_spec_is_refused_before_anything_else(tmp_path: Path) -> None:
    """In the spec or given beside it; who only reads the spec is not kept from writing the note."""
    path = tmp_path / "x.toml"
    path.write_text(SPEC)
    with pytest.raises(OptionError, match="No such file"):
        load_spec(path)
    run = read_spec(path)
    assert run.terms.validated and run.validated == tmp_path / "note.json"
    write_validated(tmp_path / "note.json", run.domain)
    assert load_spec(path).terms.validated
    write_validated(tmp_path / "other.json", DOMAIN)
    with pytest.raises(OptionError, match="another domain"):
        load_spec(path, validated=tmp_path / "other.json")
    with pytest.raises(DpgmError, match="validated must be a text"):
        load_spec(path, ["validated=true"])


SENTENCE = (
    "The owner had compared records with this domain before: a domain edited after looking at records is outside of "
    "this guarantee."
)


def test_the_guarantee_says_what_is_outside_of_it(tmp_path: Path) -> None:
    """In the release, the model and their files, next to what is assumed public; nowhere where nobody looked."""
    codes = np.array([[0, 0], [1, 2], [1, 1]] * 40)
    structure = Structure(DOMAIN, [("a", "b")])
    told = {}
    for validated in (False, True):
        terms = Terms(neighbours="add-remove", validated=validated)
        done = fit(codes, structure, Budget.pure(1), terms=terms, randomness=SeededRandomness(1))
        done.model.save(tmp_path / f"{validated}.dpgm")
        told[validated] = load_model(tmp_path / f"{validated}.dpgm")
        assert (SENTENCE in done.model.guarantee()) is validated
        assert done.model.guarantee() == told[validated].guarantee() and done.model.cost == told[validated].cost
    assert f"every setting of the run. {SENTENCE}" in told[True].guarantee()
    assert np.array_equal(*(one.marginal(("a", "b")) for one in told.values()))  # nothing else depends on it
    assert Terms(neighbours="add-remove", validated=True) == Terms(neighbours="add-remove")
    with pytest.raises(OptionError, match="validated must be true or false"):
        Terms(neighbours="add-remove", validated="yes")  # type: ignore[arg-type]


def test_two_releases_of_one_domain_stay_two(tmp_path: Path) -> None:
    """Without a ledger their numbers alone tell them apart; small ones may agree by chance, and then both count."""
    structure = Structure(Domain.from_sizes({"a": 1}), [("a",)])
    terms = Terms(neighbours="replace-one", validated=True)
    parts = [release(np.zeros((5, 1), int), structure, Budget.pure(9), terms=terms) for _ in range(2)]
    assert learn(parts).model.cost == Budget.pure(18)
