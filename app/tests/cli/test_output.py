"""Runs write whole files, never each other's, and find out early that they cannot."""

import errno
import shlex
import sys

import pytest

from app.tests.made import files
from dpgm.cli.show import reserved
from dpgm.spec import load_spec
from dpgm_core import Ledger


def test_an_unwritable_output_is_refused_before_the_charge(spec, refused):
    (spec.parent / "out2").write_text("")
    words = ("--set", "output.folder=out2/x", "--set", "ledger.path=l.ledger")
    assert "cannot write" in refused("fit", spec, *words)
    assert not (spec.parent / "l.ledger").exists()


def test_runs_at_the_same_time_never_share_a_file(spec):
    """Each of two runs holds its own names until it ends, so neither can overwrite the other's paid release."""
    run = load_spec(spec)
    with reserved(run) as first, reserved(run) as second:
        assert set(first).isdisjoint(second)
    assert not files(run.output)


# --- runs that did not finish ---------------------------------------------------------------------------------------


needs_kills = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and locks of files")


@needs_kills
def test_after_a_kill_fit_says_how_to_go_on_and_spends_nothing(spec, dpgm_command, refused, killed):
    """The line that it prints makes the model; then the run is finished, and the next one is as any other."""
    out = killed("dpgm_core.pipeline.run:with_goodness_of_fit", "fit", spec)
    book = spec.parent / "out/visits.ledger"
    for command in ("fit", "release"):
        said = refused(command, spec)
        assert f"the release {out / 'visits.release.dpgm'} is paid for" in said and "--again" in said
        assert len(Ledger.open(book).history()) == 1
    words = shlex.split(said.split("with: dpgm ")[1].split(". To spend")[0])
    assert dpgm_command(*words)[0] == 0 and (out / "visits.dpgm").exists()
    code, told, err = dpgm_command("fit", spec)
    assert code == 0 and "visits-2.dpgm" in told, err
    assert not list(out.glob(".*.reserved"))


@pytest.mark.sampled(2)
@needs_kills
@pytest.mark.parametrize("select", [False, True])
def test_again_spends_a_second_time_and_asks_no_more(spec, dpgm_command, refused, killed, select):
    """Also after a session, whose file has the steps so far; the model of another learner counts as one."""
    words = ["--set", "structure={select='mst'}"] if select else []
    where = (
        "dpgm_core.learning.selector_run:LiveSession.set_model_structure"
        if select
        else "dpgm_core.pipeline.run:with_goodness_of_fit"
    )
    out = killed(where, "fit", spec, *words)
    assert str(out / "visits.release.dpgm") in refused("fit", spec, *words)
    code, told, err = dpgm_command("fit", spec, "--again", *words)
    assert code == 0 and "visits-2.dpgm" in told, err
    assert len(Ledger.open(out / "visits.ledger").history()) == 2
    assert not list(out.glob(".*.reserved"))
    killed(where, "fit", spec, "--set", "budget.epsilon=0.1", *words)
    assert dpgm_command("learn", out / "visits-3.release.dpgm", "--learner", "naive-mle")[0] == 0
    assert dpgm_command("fit", spec, "--set", "budget.epsilon=0.1", *words)[0] == 0


@needs_kills
@pytest.mark.parametrize(
    "where", ["dpgm_core.privacy.ledger:Ledger.charge", "dpgm_core.curator.live:LiveCurator._draw"]
)
def test_a_run_killed_before_it_saved_anything_is_not_asked_about(spec, dpgm_command, killed, where):
    """There is nothing to learn from; its marker and its names are used again."""
    out = killed(where, "fit", spec)
    assert (out / ".visits.reserved").exists()
    code, told, err = dpgm_command("fit", spec)
    assert code == 0 and f"{out / 'visits.dpgm'}" in told, err


@needs_kills
def test_room_that_a_killed_run_took_is_given_back(spec, dpgm_command, killed):
    """The next run of this name removes the hidden file, whose size is that of a release."""
    out = killed("dpgm_core.curator.live:LiveCurator._draw", "fit", spec)
    (part,) = out.glob(".*.part")
    assert part.stat().st_size > 1000
    assert dpgm_command("fit", spec)[0] == 0
    assert not list(out.glob(".*.part"))


@needs_kills
def test_a_run_called_as_the_second_of_another_is_not_its(spec, dpgm_command, refused, killed):
    """`visits-2` was killed; `visits` says nothing of it, also with --again, and `visits-2` still asks afterwards."""
    second = ("--set", "name=visits-2")
    killed("dpgm_core.pipeline.run:with_goodness_of_fit", "fit", spec, *second)
    assert dpgm_command("fit", spec, "--again")[0] == 0
    assert "visits-2.release.dpgm is paid for" in refused("fit", spec, *second)


@needs_kills
def test_an_unfinished_run_is_found_beyond_a_free_number(spec, refused, killed):
    """A run that left nothing frees its number, and one after it has left a release."""
    run = load_spec(spec)
    with reserved(run):
        out = killed("dpgm_core.pipeline.run:with_goodness_of_fit", "fit", spec)
    assert f"the release {out / 'visits-2.release.dpgm'} is paid for" in refused("fit", spec)


def test_a_run_that_failed_after_its_charge_is_unfinished_too(spec, dpgm_command, refused, monkeypatch):
    """Whatever stopped it; runs that finished, a release alone among them, are not."""
    for command in ("fit", "release"):
        assert dpgm_command(command, spec, "--set", "budget.epsilon=0.1")[0] == 0
    with monkeypatch.context() as patch:

        def stopped(*_, **__):
            raise KeyboardInterrupt

        patch.setattr(
            "dpgm_core.learning.learner_run._learn", lambda learner, curator, *_: curator.release() and stopped()
        )
        assert dpgm_command("fit", spec, "--set", "budget.epsilon=0.1")[0] == 1
    assert "visits-3.release.dpgm" in refused("fit", spec)


def test_a_run_under_way_is_not_unfinished(spec):
    """Its marker is locked, also when its release is there already."""
    run = load_spec(spec)
    with reserved(run) as (release, _):
        release.write_text("x")
        with reserved(run) as (other, _):
            assert other.name == "visits-2.release.dpgm"
    with reserved(run) as (third, _):
        assert third.name == "visits-2.release.dpgm"


def test_a_marker_that_says_nonsense_does_no_harm(spec, refused):
    """It is a text with a path in each line; other bytes are passed over."""
    run = load_spec(spec)
    run.output.mkdir()
    (run.output / "visits.release.dpgm").write_text("x")
    for content in (b"", b"\xff\0\n", b"/no/such/file\n\0\n"):
        (run.output / ".visits.reserved").write_bytes(content)
        assert "visits.release.dpgm is paid for" in refused("fit", spec)


def test_without_locks_markers_are_those_of_runs_under_way(spec, monkeypatch):
    """Some network disks have none: names are numbered past what is there, as before there were locks."""
    import fcntl

    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    run = load_spec(spec)
    with reserved(run) as (first, _), reserved(run) as (second, _):
        assert (first.name, second.name) == ("visits.release.dpgm", "visits-2.release.dpgm")
    assert not files(run.output)
