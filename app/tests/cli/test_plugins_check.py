"""`dpgm check` prints what a kit found, and fails for nothing found."""

import json
from importlib import metadata

import pytest


def installed(distribution):
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def test_dpgm_check_prints_a_table_and_fails_for_nothing(capsys):
    """`dpgm check` on a distribution that is not there is a wrong request; --json is one document."""
    from dpgm.cli import main

    with pytest.raises(SystemExit) as done:
        main(["check", "dpgm-nowhere"])
    assert done.value.code == 2 and "dpgm-nowhere" in capsys.readouterr().err


@pytest.mark.landing
def test_dpgm_check_json_and_table(capsys):
    """One report per component, readable and for machines, exit code 0 when all hold."""
    from dpgm.cli import main

    if not installed("dpgm-laplace"):
        pytest.skip("dpgm-laplace is not installed")
    main(["check", "dpgm-laplace", "--json"])
    (report,) = json.loads(capsys.readouterr().out)
    assert report["ok"] and report["target"] == "mechanism 'laplace'"
    main(["check", "dpgm-laplace"])
    out = capsys.readouterr().out
    assert "samples-follow-logpdf" in out and "needs 'approx'" in out
