"""What a run takes from a BIF file; app/tests/spec/test_run.py holds what a spec makes of it."""

from pathlib import Path

import pytest

from app.tests.interop.small import shared_file
from dpgm.interop.bif import bif_domain, bif_structure, read_network
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError, StructureError
from dpgm_core.structure.dag import Dag


def wide(path: Path, count: int) -> Path:
    names = [f"v{number}" for number in range(count)]
    text = "".join(f"variable {name} {{ type discrete [2] {{u, v}}; }}\n" for name in names)
    path.write_text(text + "".join(f"probability ( {name} ) {{ table .5, .5; }}\n" for name in names))
    return path


def test_remarks_stay_short(tmp_path):
    path = wide(tmp_path / "w.bif", 100)
    domain, remarks = bif_domain(path)
    assert remarks[1].startswith("100 of 100 attributes") and "v19, and 80 more;" in remarks[1]
    larger = Domain([*domain, *(Domain.from_sizes({f"w{number}": 2 for number in range(21)}))])
    assert "w19, and 1 more;" in bif_structure(path, larger)[1][1]


def test_labels_of_its_own_are_told_by_name(tmp_path):
    """Several of them, where the owner named several that are none of the file's."""
    path = wide(tmp_path / "w.bif", 3)
    domain, remarks = bif_domain(path, {"v0": "?", "v1": "v"})
    assert [one.labels for one in domain] == [("u", "v", "?"), ("u", "v"), ("u", "v", "unknown")]
    assert "2 of 3 attributes" in remarks[1] and "'?' or 'unknown'" in remarks[1] and ": v0, v2;" in remarks[1]
    assert len(bif_domain(path, "u")[1]) == 1
    with pytest.raises(DomainError, match="'v3', which is not a variable"):
        bif_domain(path, {"v3": "u"})
    with pytest.raises(StructureError, match=r"w\.bif has the variable 'v2'"):
        bif_structure(path, domain.subset(["v0", "v1"]))


@pytest.mark.parametrize("name", ["alarm", "asia", "hailfinder"])
def test_published_graphs_are_taken_whole(name):
    """The graph is the file's own over any domain with its variables, more labels or not."""
    path = shared_file(f"{name}.bif")
    domain, _ = bif_domain(path)
    structure, remarks = bif_structure(path, domain)
    assert Dag.of(structure).parents == read_network(path)[0].parents and len(remarks) == 1
