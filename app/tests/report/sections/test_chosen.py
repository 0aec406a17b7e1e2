"""What was chosen privately."""

import numpy as np

import dpgm_core as dpgm
from dpgm.report import make_report


def test_what_a_session_chose_is_told(codes, model, parsed):
    """Who chose, out of how many, and each step with its cost."""
    workload = dpgm.Workload.all(model.domain, order=2)
    chosen = dpgm.fit(codes, "auto", dpgm.Budget.pure(4), neighbours="add-remove", workload=workload).model
    seen = parsed(make_report(chosen))
    text = seen.texts["chosen"]
    assert "The structure was chosen by the selector" in text
    assert "measure tables" in text
    assert "was chosen by the selector" not in parsed(make_report(model)).texts["chosen"]
    for part in (seen.texts[""], seen.texts["measured"]):  # tables were not all that came from the records
        assert "private choices" in part
        assert "nothing else" not in part
    assert "from nothing else" in parsed(make_report(model)).texts[""]


def test_notes_of_a_choice_are_whole(parsed):
    """And of pairs whose table merged rare labels the page says why they are not measured."""
    codes = np.random.default_rng(0).choice(6, size=(2000, 3), p=[0.5, 0.46, 0.01, 0.01, 0.01, 0.01])
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abc", 6))
    chosen = dpgm.fit(
        codes,
        "auto",
        dpgm.Budget.approx("0.3", "1e-6"),
        neighbours="add-remove",
        workload=dpgm.Workload.all(domain, order=2),
    ).model
    texts = parsed(make_report(chosen)).texts
    assert "merge = false leaves them as they are" in texts["chosen"]
    assert "took rare labels together" in texts["pairs"]
