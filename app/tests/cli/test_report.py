"""dpgm report: one file, never another's, and an annex that only its owner can read."""

import re
import shlex
import shutil
import sqlite3
import stat
from contextlib import closing
from html import unescape

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Ledger
from dpgm_core.privacy.ledger_file import digest


@pytest.fixture
def fitted(spec, ran):
    ran("fit", spec)
    return spec.parent / "out" / "visits.dpgm"


def test_the_page_stands_beside_the_model_and_is_replaced_by_the_next(model, dpgm_command):
    """Its name is the model's; an earlier report gives way, and keeps its permissions."""
    page = model.with_suffix(".html")
    assert dpgm_command("report", model)[:2] == (0, f"report: {page}\n")
    page.chmod(0o640)
    page.write_text(page.read_text() + "\n")
    assert dpgm_command("report", model)[0] == 0
    assert page.read_text().endswith("</html>\n")
    assert stat.S_IMODE(page.stat().st_mode) == 0o640


def test_nothing_else_is_replaced_or_read(model, tmp_path, refused, fitted):
    """Other pages, models and other endings are not replaced; releases, tables and specs are no models."""
    page = tmp_path / "page.html"
    page.write_text("<!doctype html>\n<p>mine</p>")
    assert "only a dpgm report is replaced there" in refused("report", model, "-o", page)
    assert page.read_text().endswith("mine</p>")
    assert "must end in .html" in refused("report", model, "-o", tmp_path / "page.pdf")
    page.unlink()
    page.symlink_to(tmp_path / "elsewhere.html")
    assert "a symbolic link" in refused("report", model, "-o", page)
    release = fitted.with_name("visits.release.dpgm")
    assert "learn one from it with: dpgm learn" in refused("report", release, "-o", tmp_path / "r.html")
    assert "a spec that names it makes one" in refused("report", fitted.parent.parent / "visits.csv")
    (tmp_path / "x.dpgm").write_text("no")
    assert "damaged or not a model file" in refused("report", tmp_path / "x.dpgm")
    assert not (tmp_path / "r.html").exists()


def test_the_ledger_is_told_without_its_notes(fitted, tmp_path, dpgm_command):
    """Its budget, what is left, and which charge paid for this model."""
    ledger = Ledger.open(fitted.with_name("visits.ledger"))
    ledger.charge(Budget.pure("0.5"), note="for the minister")
    page = tmp_path / "r.html"
    assert dpgm_command("report", fitted, "-o", page, "--ledger", ledger.path)[0] == 0
    text = re.sub(r"<[^>]*>", " ", page.read_text())
    assert "ε = 1.5 in 2 charges" in text
    assert re.search(r"Left\s+ε = 1 ", text)
    assert "minister" not in text


def test_a_ledger_of_others_is_refused(fitted, tmp_path, refused, model):
    """By its name, by an entry that is missing, and where no ledger was charged, whatever ledger is named."""
    other = Ledger.create(tmp_path / "o.ledger", name="other", budget=Budget.pure(1), neighbours="add-remove")
    page = ("-o", tmp_path / "r.html", "--ledger", other.path)
    assert "charged to 'visits', and this is 'other'" in refused("report", fitted, *page)
    again = Ledger.create(tmp_path / "v.ledger", name="visits", budget=Budget.pure(1), neighbours="add-remove")
    page = ("-o", tmp_path / "r.html", "--ledger", again.path)
    assert "charged to another ledger that is named 'visits' too" in refused("report", fitted, *page)
    shutil.copy(fitted.with_name("visits.ledger"), again.path)
    with closing(sqlite3.connect(again.path)) as database, database:  # a copy of before the charge
        database.execute("DELETE FROM charges")
        database.execute("UPDATE tally SET charges = 0, digest = ?", (digest(database),))
    assert "here that is missing" in refused("report", fitted, *page)
    Ledger.open(again.path).charge(Budget.pure("1"))
    assert "here that is missing" in refused("report", fitted, *page)
    assert "charged to no ledger" in refused("report", model, "--ledger", other.path)


def test_the_annex_is_for_the_owner_alone(fitted, tmp_path, dpgm_command, refused):
    """Not without consent; then a file of its own that others cannot read, and of which the report knows nothing."""
    page, annex = tmp_path / "r.html", tmp_path / "r-annex.html"
    spec = fitted.parent.parent / "visits.toml"
    assert "--allow-non-private" in refused("report", fitted, "-o", page, "--annex", spec)
    assert not page.exists()
    assert "is for --annex" in refused("report", fitted, "-o", page, "--allow-non-private")
    annex.write_text("<!doctype html>\n<!-- dpgm annex -->\nearlier")
    annex.chmod(0o644)
    code, out, err = dpgm_command("report", fitted, "-o", page, "--annex", spec, "--allow-non-private")
    assert (code, out) == (0, f"report: {page}\nannex:  {annex}\n")
    assert "NOT PRIVATE" in err
    assert stat.S_IMODE(annex.stat().st_mode) == 0o600
    assert "annex" not in page.read_text()
    assert "NOT PRIVATE" in annex.read_text()
    alone = tmp_path / "alone.html"
    assert dpgm_command("report", fitted, "-o", alone)[0] == 0
    assert alone.read_text() == page.read_text()


def test_the_report_says_commands_that_work(partial, dpgm_command, tmp_path, monkeypatch):
    """Each line of "How to use it", in a shell and in Python."""
    monkeypatch.chdir(tmp_path)
    assert dpgm_command("report", partial.name, "-o", "r.html")[0] == 0
    shell, python = (
        unescape(re.sub(r"<[^>]*>", "", block))
        for block in re.findall(r"<pre.*?</pre>", (tmp_path / "r.html").read_text(), re.DOTALL)
    )
    for line in shell.splitlines():
        code, _, err = dpgm_command(*shlex.split(line)[1:])
        assert code == 0, (line, err)
    exec(python, {})


def test_a_seed_is_said_on_stderr_too(tmp_path, dpgm_command):
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    codes = np.array([[0], [1]] * 50)
    terms = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(1)}
    dpgm.fit(codes, structure, Budget.pure(1), **terms).model.save(tmp_path / "m.dpgm")
    assert "NOT PRIVATE (private = false)" in dpgm_command("report", tmp_path / "m.dpgm")[2]
