"""Models as UAI files: round trips, sidecars, and what is refused."""

import json
import math

import numpy as np
import pytest

from dpgm.interop.uai import names_path, parse_uai, read_uai, write_uai
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

SMALL = """MARKOV
3
2 3 2
4
2 1 0
2 0 1
2 0 2
0

6
1 2 3 4 5 6

6
1 1 1 1 1 2
4
1 0 0 1
1
10
"""


def test_tables_have_the_last_variable_fastest_and_duplicates_multiply():
    """The second factor stands on the first one's variables in the other order: entry (x0=1, x1=2) becomes 6 * 2."""
    model = parse_uai(SMALL)
    assert model.kind == "MARKOV"
    assert model.structure.cliques == (("x1", "x0"), ("x0", "x2"), ())
    np.testing.assert_allclose(np.exp(model.potentials["x1", "x0"]), [[1, 2], [3, 4], [5, 12]])
    assert np.exp(model.potentials["x0", "x2"]).tolist() == [[1, 0], [0, 1]]
    assert model.potentials[()] == pytest.approx(math.log(10))


def rich_structure():
    domain = Domain(
        [
            Attribute.of_labels("sex", ["F", "M"], unknown="not stated"),
            Attribute.of_bins("age, in years", [0, 18, 65, math.inf], unknown="?"),
            Attribute.of_size("ward é", 2),
            Attribute.of_size("bed", 2),
        ]
    )
    return Structure(
        domain,
        [("age, in years", "sex"), (), ("bed",)],
        tied=[[("sex", "ward é"), ("sex", "bed")], [("ward é",), ("bed",)]],
    )


@pytest.mark.parametrize("scale", [1e-17, 1.0, 700.0, 1e5])
def test_round_trips_are_exact(scale, tmp_path):
    """Names, labels, bins, tied groups and every bit of the potentials come back, beyond exp's range too."""
    structure = rich_structure()
    values = np.random.default_rng(0).uniform(-scale, scale, structure.cells)
    values[[2, 13]] = -np.inf
    write_uai(tmp_path / "m.uai", structure, Tables(structure, values))
    model = read_uai(tmp_path / "m.uai")
    assert model.structure == structure
    assert model.potentials.values.tobytes() == values.tobytes()


@pytest.mark.parametrize("scale", [1e-17, 1.0, 700.0, 1e5])
def test_the_file_alone_keeps_the_distribution(scale, tmp_path):
    """Without the sidecar the same log-potentials come back up to the rounding of exp, with the same support, as a
    product of factors where one would overflow; tied cliques and duplicates are multiplied out."""
    structure = rich_structure()
    values = np.random.default_rng(1).uniform(-scale, scale, structure.cells)
    values[2] = -np.inf
    potentials = Tables(structure, values)
    write_uai(tmp_path / "m.uai", structure, potentials)
    names_path(tmp_path / "m.uai").unlink()
    plain = read_uai(tmp_path / "m.uai").potentials
    assert np.isneginf(plain["x1", "x0"]).sum() == 1
    np.testing.assert_allclose(plain["x1", "x0"], potentials["age, in years", "sex"], rtol=1e-13, atol=2e-15)
    np.testing.assert_allclose(plain["x0", "x3"], potentials["sex", "bed"], rtol=1e-13, atol=2e-15)
    np.testing.assert_allclose(plain["x3"], potentials["bed"] + potentials.group(4), rtol=1e-13, atol=2e-14)


def test_a_sidecar_of_names_only_renames(tmp_path):
    """A hand-written sidecar with a domain gives names and labels and leaves the tables alone."""
    path = tmp_path / "m.uai"
    path.write_text(SMALL)
    domain = Domain.from_dict(
        {"a": {"labels": ["n", "y"], "unknown": "n"}, "b": {"size": 3, "unknown": 0}, "c": {"size": 2, "unknown": 0}}
    )
    names_path(path).write_text(json.dumps({"domain": domain.to_dict()}))
    model = read_uai(path)
    assert model.structure.cliques == (("b", "a"), ("a", "c"), ()) and model.structure.domain == domain
    assert read_uai(path, names=False).structure.cliques == (("x1", "x0"), ("x0", "x2"), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a file of names"),
        ("[]", "not a file of names"),
        ("{}", "not a file of names"),
        ("[" * 100_000, "not a file of names"),
        ('{"domain": {"a": 2, "b": 2, "c": 2}}', "other sizes"),
        ('{"domain": {"a": 0, "b": 3, "c": 2}}', "size"),
        ('{"domain": {"a": 1, "b": 2, "c": 1}, "log_potentials": [], "sha256": "0"}', "belongs to another model"),
    ],
)
def test_bad_sidecars_are_refused(text, message, tmp_path):
    """The message names the sidecar, since the model file itself is fine."""
    path = tmp_path / "m.uai"
    path.write_text(SMALL)
    names_path(path).write_text(text)
    with pytest.raises(DataError, match=f"m.uai.names.*{message}"):
        read_uai(path)


def test_a_model_edited_after_writing_is_not_read_with_stale_potentials(tmp_path):
    """The digest binds the exact potentials to the file they were written with."""
    structure = rich_structure()
    write_uai(tmp_path / "m.uai", structure, Tables.zeros(structure))
    (tmp_path / "m.uai").write_text((tmp_path / "m.uai").read_text().replace("1.0", "2.0", 1))
    with pytest.raises(DataError, match="digests differ"):
        read_uai(tmp_path / "m.uai")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must begin with MARKOV or BAYES"),
        ("LIMID 1 2", "must begin with MARKOV or BAYES, got 'LIMID'"),
        ("MARKOV", "ends too soon"),
        ("MARKOV 0 0", "no variables"),
        ("MARKOV 1 two", "all must be numbers, got 'two'"),
        ("MARKOV 1 2 0 1_0", "all must be numbers, got '1_0'"),
        ("MARKOV 1 2.5 0", "whole number"),
        ("MARKOV 1 0 0", "at least 1"),
        ("MARKOV -1 0 0", "at least 0"),
        ("MARKOV nan 0 0", "whole number"),
        ("MARKOV 999999999999 2 2", "only 2 numbers are left"),
        ("MARKOV 2 1000000000 1000000000 0", "2,000,000,000 states"),
        ("MARKOV 2 2 2 999999999 1 0", "only 2 numbers are left"),
        ("MARKOV 2 2 2 1 1 2 2 1 1", "names variable 2, but there are 2"),
        ("MARKOV 2 2 2 1 2 0 0 4 1 1 1 1", "twice"),
        ("MARKOV 1 2 1 1 0 3 1 1 1", "has 3 entries, not 2"),
        ("MARKOV 1 2 1 1 0 2 1", "only 1 numbers are left"),
        ("MARKOV 1 2 1 1 0 2 1 -1", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 inf", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 nan", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 1 1", "1 numbers are left after the last table"),
        ("MARKOV 50" + " 1000" * 50 + " 1 50 " + " ".join(map(str, range(50))) + " 1 1", "has 1 entries, not 1000"),
    ],
)
def test_malformed_and_hostile_models_are_refused(text, message, tmp_path):
    """One DataError naming the file; announced sizes allocate nothing that the file does not back."""
    path = tmp_path / "bad.uai"
    path.write_text(text)
    with pytest.raises(DataError, match=f"bad.uai.*{message}"):
        read_uai(path)


def test_binary_noise_is_refused(tmp_path):
    """Bytes that are no text are a DataError like the rest."""
    (tmp_path / "bad.uai").write_bytes(b"MARKOV \xff\xfe\x00 2")
    with pytest.raises(DataError, match="all must be numbers"):
        read_uai(tmp_path / "bad.uai")
    with pytest.raises(DataError, match=r"none\.uai"):
        read_uai(tmp_path / "none.uai")


def test_a_header_cannot_declare_labels_that_no_table_backs():
    """Twenty letters made a domain of a million labels, 400 MB of it."""
    with pytest.raises(DataError, match="1,000,000 states in all; at most 100,003 fit a file of 3 numbers"):
        parse_uai("MARKOV 1 1000000 0")
