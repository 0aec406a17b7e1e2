"""The file alone: torn between two commits, without its journal, it shows a committed state or is refused."""

import hashlib
import itertools
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from dpgm_core.errors import BudgetError, ModelFileError
from dpgm_core.privacy import ledger as ledger_module
from dpgm_core.privacy import ledger_file
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from tests.privacy.ledger.retyped import CLASSES, columns, retype

CENT = Budget.pure("0.01")
MOST_MIXES = 200  # of two states; where there are more, these are drawn with a fixed seed


def states(path, *, page, charges):
    """The bytes and charges of a ledger after each commit: charges with long and short notes, and marks of some."""
    ledger = Ledger.create(path, name="s", budget=Budget.pure(100), neighbours="add-remove")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA page_size = {page}")
        database.execute("VACUUM")
    yield path.read_bytes(), []
    for number in range(1, charges + 1):
        ledger.charge(CENT, note="n" * (number * 67 % 200), conditions=("conditional on public N",) * (number % 3))
        yield path.read_bytes(), facts(ledger.history())
        if number % 3 == 0:
            ledger.mark_released(number - 1)
            yield path.read_bytes(), facts(ledger.history())


def facts(entries):
    """All but whether a release was saved, which is no amount."""
    return [(one.id, one.when, one.cost, one.note, one.conditions) for one in entries]


def mixes(before, after, block):
    """Every file between the two: each block old or new, the end anywhere between theirs; what was not written is 0."""
    width = max(len(before), len(after))
    old, new = before.ljust(width, b"\0"), after.ljust(width, b"\0")
    starts = [at for at in range(0, width, block) if old[at : at + block] != new[at : at + block]]
    ends = range(min(len(before), len(after)), width + 1, block)
    choices = list(itertools.product(ends, itertools.product((False, True), repeat=len(starts))))
    if len(choices) > MOST_MIXES:
        choices = random.Random(len(choices)).sample(choices, MOST_MIXES)
    for end, chosen in choices:
        mix = bytearray(old)
        for at in itertools.compress(starts, chosen):
            mix[at : at + block] = new[at : at + block]
        yield bytes(mix[:end])


def verdicts(folder, *, page, charges, apart=1, block=None):
    """How many mixes of states so many commits apart are refused, shown as one of the two, or as something else."""
    counted, torn = Counter(), folder / "torn.ledger"
    known = list(states(folder / f"{page}-{apart}-{block}.ledger", page=page, charges=charges))
    for (before, earlier), (after, later) in zip(known, known[apart:], strict=False):
        for mix in sorted(set(mixes(before, after, block or page)) - {before, after}):
            torn.write_bytes(mix)
            try:
                ledger = Ledger.open(torn)
                shown = facts(ledger.history())
            except (ModelFileError, BudgetError):
                counted["refused"] += 1
                continue
            counted["one of the two" if shown in (earlier, later) else "something else"] += 1
            if counted["one of the two"] % 8 == 0:  # what reads well must be sound to write into; a commit takes time
                ledger.charge(CENT)
                assert facts(Ledger.open(torn).history())[:-1] == shown
    return counted


TEARS = {
    "pages of a commit": {"page": 4096, "charges": 12},
    "small pages, that split and overflow": {"page": 512, "charges": 15},
    "sectors of a commit": {"page": 4096, "charges": 3, "block": 512},
    "pages of several commits, as on a disk that does not sync": {"page": 512, "charges": 14, "apart": 3},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_file_shows_a_committed_state_or_is_refused(tmp_path, tear):
    """No mix of blocks before and after a commit, or several, is read as anything but what was committed."""
    counted = verdicts(tmp_path, **TEARS[tear])
    assert counted["refused"] > 20 and counted["one of the two"] > 10
    assert not counted["something else"], counted


@pytest.mark.landing
def test_without_the_tally_torn_files_would_show_what_never_was(tmp_path, monkeypatch):
    """The brute force above can fail: rows that are sound one by one, and checked for gaps, are not enough."""
    monkeypatch.setattr(
        ledger_module, "read", lambda path, file, _=None: ledger_file.rows(path, file, ledger_file.VERSION)
    )
    assert verdicts(tmp_path, page=512, charges=10, apart=3)["something else"] > 5


@pytest.mark.parametrize("statement", [
    "DELETE FROM charges WHERE id = 3", "DELETE FROM charges WHERE id = 1", "UPDATE charges SET id = 4 WHERE id = 3",
    "UPDATE charges SET charged_at = '2027' WHERE id = 2", "UPDATE charges SET note = 'other' WHERE id = 2",
    "UPDATE charges SET note = x'ff' WHERE id = 2", 'UPDATE charges SET cost = \'{"epsilon": "1/200"}\' WHERE id = 3',
    "UPDATE charges SET conditions = '[]' WHERE id = 3", "UPDATE charges SET conditions = NULL WHERE id = 3",
    "UPDATE charges SET conditions = '{}' WHERE id = 3", "UPDATE charges SET conditions = '[3]' WHERE id = 3",
    "UPDATE charges SET identity = NULL WHERE id = 3", "UPDATE charges SET identity = upper(identity) WHERE id = 3",
    "UPDATE terms SET document = replace(document, 'one record', 'one person')", "UPDATE tally SET charges = 2",
    "UPDATE tally SET charges = '3x'", "UPDATE tally SET digest = upper(digest)", "DELETE FROM tally",
    "INSERT INTO tally SELECT * FROM tally",
])  # fmt: skip
def test_what_the_tally_covers_cannot_change_by_itself(tmp_path, statement):
    """Number, time, cost, note and conditions of every charge, and the terms: whatever changes, the file is refused."""
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove")
    for number in range(3):
        ledger.charge(CENT, note=str(number), conditions=("seeded",))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        assert database.execute(statement).rowcount == 1
    for call in (ledger.history, lambda: ledger.charge(CENT), lambda: Ledger.open(path)):
        with pytest.raises(ModelFileError, match="damaged"):
            call()


def test_the_digest_is_a_chain_that_anybody_can_compute(tmp_path):
    """SHA-256 over the JSON of what went before and the next row: the terms, then each charge as it stands."""
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove")
    ledger.charge(CENT, note="ä")
    ledger.charge(CENT, conditions=("seeded",))
    with closing(sqlite3.connect(path)) as database:
        rows = [
            *database.execute("SELECT document FROM terms"),
            *database.execute("SELECT id, charged_at, cost, note, conditions, identity FROM charges"),
        ]
        tally = database.execute("SELECT charges, digest FROM tally").fetchall()
    chain = ""
    for row in rows:
        chain = hashlib.sha256(json.dumps([chain, *row]).encode()).hexdigest()
    assert tally == [(2, chain)]


def _of_every_class(path):
    """A ledger with a charge, and each of its columns with each value of another storage class."""
    ledger = Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove")
    ledger.charge(CENT, conditions=("seeded",))
    sound = path.read_bytes()
    for table, column in columns(path):
        for kind, changes in CLASSES.items():
            for number, change in enumerate(changes):
                path.write_bytes(sound)
                retype(path, table, column, change)
                yield f"{table}.{column} as {kind} ({number})", ledger


def test_a_column_of_another_storage_class_is_damage(tmp_path):
    """Every column of every table, with values of all five classes: the documented error, or the ledger as it was."""
    path = tmp_path / "x.ledger"
    read = []
    for what, ledger in _of_every_class(path):
        for call in (ledger.history, lambda: Ledger.open(path), lambda ledger=ledger: ledger.charge(CENT)):
            try:
                call()
            except ModelFileError as error:
                assert "damaged" in str(error), what
            else:
                read.append(what)
    # The same text, and an empty note, as this one is; the tally's number is of integer affinity, so that "1" is 1.
    texts = {"terms.document", "tally.digest", "tally.charges"}
    texts |= {f"charges.{name}" for name in ("charged_at", "cost", "note", "conditions", "identity", "status")}
    same = {f"{column} as TEXT (1)" for column in texts} | {"charges.note as TEXT (0)", "tally.charges as INTEGER (1)"}
    assert set(read) <= same


def test_bytes_of_the_right_content_are_no_text(tmp_path):
    """JSON is read from bytes as well, so that these passed the reading and failed in the digest with a TypeError."""
    path = tmp_path / "x.ledger"
    Ledger.create(path, name="s", budget=Budget.pure(1), neighbours="add-remove").charge(CENT, conditions=("seeded",))
    sound = path.read_bytes()
    for name in ("charges.cost", "charges.conditions", "charges.identity", "terms.document"):
        table, column = name.split(".")
        path.write_bytes(sound)
        retype(path, table, column, lambda value: value.encode())
        with pytest.raises(ModelFileError, match="damaged"):
            Ledger.open(path)
