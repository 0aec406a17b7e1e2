"""The benchmark of holdouts: its cases are wrong structures, and a check brings intervals to the truth."""

from benchmarks.misfit import cases, measured


def test_a_wrong_structure_is_covered_with_a_check_and_not_without():
    """One small case of the study, a fixed seed: bare below .5 of the cells, with a check above .75: a test of size."""
    case = next(one for one in cases(None, 95_000) if one.name == "dirichlet, er, k = 3")
    bare, held, *_, missed, said = measured(case, 1, 0.1)
    assert bare < 0.5
    assert held > 0.75
    assert missed / 3 < said < 3 * missed


def test_the_cases_that_need_no_data_are_there():
    """Twelve drawn populations and the example, at two sizes."""
    names = [one.name for one in cases(None, 95_000)]
    assert len(names) == 14
    assert names[-1] == "health, chain"
