"""The notebook card of a model is made without any inference."""

import numpy as np

import dpgm_core as dpgm


def test_a_model_too_large_to_ask_can_be_looked_at():
    """A clique of 10^9 parameters' worth of triangulation: no engine is made, and the text stays small."""
    names = [f"x{number}" for number in range(60)]
    domain = dpgm.Domain.from_sizes(dict.fromkeys(names, 3))
    structure = dpgm.Structure.complete(domain, 2)
    model = dpgm.Model(structure, dpgm.Tables.zeros(structure))
    shown = model._repr_html_()
    assert "... 40 more" in shown and len(shown) < 10_000
    assert "1,770 with 15,930 cells" in shown and "by definition" not in shown


def test_what_was_not_measured_is_told():
    """Attribute by attribute, with the maker, the cost and the stamp of a seed."""
    domain = dpgm.Domain.from_sizes({"a": 2, "b": 2})
    structure = dpgm.Structure(domain, [("a",)])
    codes = np.array([[0, 1], [1, 0]] * 50)
    seeded = dpgm.SeededRandomness(1)
    done = dpgm.fit(codes, structure, dpgm.Budget.pure(1), neighbours="add-remove", randomness=seeded)
    shown = done.model.with_replicates(np.tile(done.model.potentials.values, (7, 1)))._repr_html_()
    assert (
        "NOT PRIVATE" in shown
        and "epsilon = 1" in shown
        and "eb-map" in shown
        and '<td style="text-align:left">7<' in shown
    )
    assert [row.endswith("<td>yes</td>") for row in shown.split("</tr>") if "<td>0, 1</td>" in row] == [True, False]
