"""What a run reports: stamps, doubts, and no planted value."""

from __future__ import annotations

import json

import dpgm_core as dpgm


def test_a_seed_is_stamped_everywhere(spec, dpgm_command):
    """stderr, JSON, guarantee, release file and model file."""
    code, out, err = dpgm_command("fit", spec, "--json", "--set", "simulation.seed=1")
    assert code == 0
    assert "private = false" in err
    shown = json.loads(out)
    assert shown["private"] is False
    assert shown["guarantee"].startswith("NOT PRIVATE")
    assert dpgm.load_release(shown["release"]).private is False
    assert dpgm.load_model(shown["model"]).private is False


def test_planted_values_appear_nowhere(spec, dpgm_command):
    """-v and --debug included, whatever is in the file."""
    secret = "PLANTED-9f"
    with (spec.parent / "visits.csv").open("a") as file:
        file.write(f'{secret},{secret}\n"{secret}\n{secret},1,2,3\n')
    code, out, err = dpgm_command("-v", "--debug", "fit", spec)
    assert code == 0
    (spec.parent / "visits.csv").write_bytes(b"\x1f\x8b" + secret.encode())
    code, more, errors = dpgm_command("-v", "--debug", "fit", spec)
    assert code == 2
    assert secret not in out + err + more + errors


def test_values_that_are_no_labels_are_noticed(spec, dpgm_command):
    """Nearly all records on the unknown label: said from the model alone, so it costs nothing."""
    text = (spec.parent / "domain.toml").read_text().replace('["F", "M"]', '["female", "male"]')
    (spec.parent / "domain.toml").write_text(text.replace('unknown = "F"', 'unknown = "female"'))
    code, _, err = dpgm_command("fit", spec)
    assert code == 0 and "nearly all of 'sex' is 'female'" in err


def test_what_only_tied_tables_hold_is_told(spec, dpgm_command):
    """Its share in the model is by structure: the table is the sum over its cliques."""
    two = (
        "[attributes.job]\nlabels = ['y', 'n']\nunknown = 'y'\n[attributes.home]\nlabels = ['y', 'n']\nunknown = 'y'\n"
    )
    (spec.parent / "domain.toml").write_text((spec.parent / "domain.toml").read_text() + two)
    (spec.parent / "visits.csv").write_text("sex,age,job,home\n" + "F,30,y,n\nM,50,y,y\n" * 60)
    tied = ("--set", "structure={cliques=[['sex'], ['age']], tied=[[['job'], ['home']]]}")
    code, out, err = dpgm_command("fit", spec, *tied)
    assert code == 0, err
    assert "by structure, as only tables shared with others hold them: job, home" in out
    assert "by structure" not in dpgm_command("fit", spec)[1]
