"""What `dpgm compare` prints: side by side, the worst first, and what was left out."""

import numpy as np
import pytest

import dpgm_core as dpgm


def release_to(path, domain: dpgm.Domain, *cliques: tuple[str, ...]) -> None:
    """A release of 200 equal records at epsilon = 1, saved."""
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(1)}
    codes = np.zeros((200, len(domain)), dtype=int)
    dpgm.release(codes, dpgm.Structure(domain, cliques), dpgm.Budget.pure(1), save_release=path, **terms)


def test_models_and_releases_side_by_side(model, partial, dpgm_command):
    """Facts in columns, domains, cliques, KL or why not, and differences; two releases by their noise."""
    code, out, err = dpgm_command("compare", model, partial)
    assert code == 0, err
    facts = {line.split("  ")[0]: line.split() for line in out.splitlines()[2:12]}
    assert facts["cost"][-3:] == ["epsilon", "=", "5"] and facts["attributes"][-2:] == ["2", "4"]
    assert "partial.dpgm against m.dpgm" in out and "only in partial.dpgm: town, job" in out
    assert "cliques: 1 in both, 0 in m.dpgm alone, 1 in partial.dpgm alone" in out
    assert "only in partial.dpgm: age x job" in out
    assert "no KL: they are not over the same attributes and labels" in out
    assert "note: whether errors explain these differences is not known" in out
    one, two = model.with_name("a.release.dpgm"), model.with_name("b.release.dpgm")
    release_to(one, dpgm.Domain.from_sizes({"x": 2, "y": 2}), ("x", "y"))
    release_to(two, dpgm.Domain.from_sizes({"x": 2, "y": 3}), ("x",))
    code, out, err = dpgm_command("compare", one, two)
    assert code == 0 and "not compared, other labels: y, 0 only in the first, 1 in the other" in out
    assert "note: no table was measured by both" in out and "with reservations" in out
    assert err.count("NOT PRIVATE (private = false)") == 2


@pytest.mark.parametrize("attributes", [20])
def test_long_lists_end(tmp_path, dpgm_command, attributes):
    """Fifteen rows, the worst first, and how many more there are."""
    domain = dpgm.Domain.from_sizes({f"x{number}": 2 for number in range(attributes)})
    structure = dpgm.Structure(domain, [(name,) for name in domain.names])
    for number in (0, 1):
        values = np.repeat(np.arange(attributes), 2) * np.tile([0.0, 0.1 * number], attributes)
        dpgm.Model(structure, dpgm.Tables(structure, values)).save(tmp_path / f"{number}.dpgm")
    code, out, _ = dpgm_command("compare", tmp_path / "0.dpgm", tmp_path / "1.dpgm")
    lines = out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("attribute  "))
    assert code == 0 and lines[at + 2].startswith("x19 ") and "... 5 more, closer together; --json has all" in out
