"""The ledger adds exactly, never passes its budget, keeps its terms, and refuses files it did not write."""

import ast
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpgm_core import LedgerEntry
from dpgm_core.errors import BudgetError, ModelFileError, Overspent
from dpgm_core.privacy import ledger as ledger_module
from dpgm_core.privacy import ledger_file, ledger_terms
from dpgm_core.privacy.budget import Budget, zcdp_epsilon
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_terms import NOT_RECORDED, LedgerTerms, check_conditions
from dpgm_core.privacy.terms import Terms
from tests.privacy.ledger.schema1 import write_second

TENTH = Budget.pure("0.1")


def pure_ledger(path, total=1, **terms):
    return Ledger.create(path, name="survey", budget=Budget.pure(total), neighbours="add-remove", **terms)


@contextlib.contextmanager
def database(path):
    """The file behind the ledger's back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


# --- amounts ----------------------------------------------------------------------------------------------------


def test_ten_tenths_fill_one_and_the_eleventh_is_refused(path):
    """Decimals are exact, and a refusal says what was asked, spent and left, and changes nothing."""
    ledger = pure_ledger(path)
    for number in range(1, 11):
        assert ledger.charge(Budget.pure(0.1)) == number
    assert ledger.spent() == Budget.pure(1) and ledger.remaining() == Budget.zero("pure")
    before = path.read_bytes()
    with pytest.raises(Overspent, match=r"epsilon = 0\.1 was asked of ledger 'survey', but epsilon = 1 of epsilon = 1"):
        ledger.charge(TENTH)
    assert path.read_bytes() == before
    assert len(ledger.history()) == 10


def test_check_refuses_as_charge_does_and_charges_nothing(path):
    ledger = pure_ledger(path)
    ledger.check(Budget.pure(1))
    assert ledger.history() == ()
    for refused, error in ((Budget.pure("1.01"), Overspent), (Budget.zcdp(1), BudgetError), (0.1, BudgetError)):
        with pytest.raises(error):
            ledger.check(refused)
    assert ledger.history() == ()


def test_a_pure_ledger_takes_pure_charges_only(path):
    """zCDP and (epsilon, delta) charges say nothing about pure epsilon; the message says what would do."""
    ledger = pure_ledger(path)
    for budget in (Budget.zcdp("0.1"), Budget.approx("0.1", "1e-9")):
        with pytest.raises(BudgetError, match="spend a budget of kind pure, or use another ledger"):
            ledger.charge(budget)
    assert ledger.spent().is_zero
    other = Ledger.create(path.with_name("zcdp.ledger"), name="s", budget=Budget.zcdp("0.5"), neighbours="replace-one")
    with pytest.raises(BudgetError, match="kind pure or zcdp"):
        other.charge(Budget.approx("0.1", "1e-9"))


def test_a_zcdp_charge_needs_its_conversion_delta_to_be_left(path):
    """When other charges ate the delta, even a tiny rho is refused."""
    ledger = Ledger.create(
        path, name="s", budget=Budget.approx(9, "1e-6"), neighbours="add-remove", conversion_delta="1e-7"
    )
    ledger.charge(Budget.approx("0.1", "0.95e-6"))
    with pytest.raises(Overspent):
        ledger.charge(Budget.zcdp("1e-9"))
    ledger.charge(Budget.pure("8.9"))
    assert ledger.remaining() == Budget("approx", delta=Fraction(5, 10**8))


amounts = st.fractions(min_value=Fraction(1, 1000), max_value=1).filter(bool)
charges = st.one_of(
    amounts.map(Budget.pure), amounts.map(Budget.zcdp), st.builds(Budget.approx, amounts, st.just("1e-7"))
)
BUDGETS = [Budget.pure(2), Budget.zcdp(2), Budget.approx(6, "1e-6")]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(BUDGETS), st.lists(charges, max_size=8))
@example(BUDGETS[0], [Budget.pure("2"), Budget.pure("1/1000")])
@example(BUDGETS[1], [Budget.pure("1"), Budget.pure("1"), Budget.zcdp("1"), Budget.pure("1/1000")])
@example(BUDGETS[2], [Budget.zcdp("0.2"), Budget.approx("0.1", "1e-7"), Budget.pure("1"), Budget.zcdp("1")])
def test_no_sequence_of_charges_passes_the_budget(tmp_path, budget, wanted):
    """What is accepted sums exactly to `spent`, stays within the budget, and only what would pass it is refused."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.ledger"
    ledger = Ledger.create(path, name="s", budget=budget, neighbours="add-remove")
    delta = Fraction(1, 2 * 10**6)

    def by_hand(costs):
        epsilon, rho = sum(cost.epsilon for cost in costs), sum(cost.rho for cost in costs)
        if budget.kind == "pure":
            return (epsilon,)
        if budget.kind == "zcdp":
            return (rho + sum(cost.epsilon**2 for cost in costs) / 2,)
        lost = sum(cost.delta for cost in costs) + (delta if rho else 0)
        return epsilon + zcdp_epsilon(Fraction(rho), delta), lost

    takes = {"pure": ("pure",), "zcdp": ("pure", "zcdp"), "approx": ("pure", "zcdp", "approx")}[budget.kind]
    limit = {"pure": (2,), "zcdp": (2,), "approx": (6, Fraction(1, 10**6))}[budget.kind]
    accepted = []
    for cost in wanted:
        fits = all(a <= b for a, b in zip(by_hand([*accepted, cost]), limit, strict=True))
        try:
            ledger.charge(cost)
            assert fits and cost.kind in takes
            accepted.append(cost)
        except Overspent:
            assert not fits
        except BudgetError:
            assert cost.kind not in takes
    assert [entry.cost for entry in ledger.history()] == accepted
    spent = Ledger.open(path).spent()
    assert tuple(part for part in (spent.epsilon, spent.delta, spent.rho) if part) == tuple(
        filter(bool, by_hand(accepted))
    )
    assert spent <= budget


def test_sums_too_long_to_write_are_shown_against_us_and_still_added_exactly(path):
    """60 charges with coprime 32-bit denominators: the shown sum is rounded up, the rest down, and the rest fits."""
    ledger = pure_ledger(path, total=10)
    costs = [Budget.pure(Fraction(1, 2**31 + 2 * k + 1)) for k in range(60)]
    with database(path) as file:  # as 60 commits would, only faster
        file.execute("BEGIN")
        for cost in costs:
            ledger_file.add(file, "2026-01-01", cost, "", (), "9f")
        file.execute("COMMIT")
    exact = sum(cost.epsilon for cost in costs)
    assert exact.denominator > 10**400
    assert exact <= ledger.spent().epsilon <= exact + Fraction(1, 10**100)
    left = ledger.remaining()
    assert Budget.parse(left.to_dict()) == left and left.epsilon <= 10 - exact
    ledger.charge(left)
    with pytest.raises(Overspent):
        ledger.charge(Budget.pure("1e-99"))


# --- terms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"neighbours": "replace-one"}, "neighbours"),
        ({"unit": "one household"}, "unit"),
        ({"person": "ssn"}, "person"),
        ({"person": None, "rows_per_person": 1}, "person"),
        ({"rows_per_person": 2}, "rows_per_person"),
        ({"rows_per_person": 4}, "rows_per_person"),
    ],
)
def test_a_release_under_other_terms_is_refused(path, changed, what):
    """Relation, unit, person key and rows per person are the ledger's or nothing; in both directions."""
    terms = {"neighbours": "add-remove", "unit": "one patient", "person": "id", "rows_per_person": 3}
    ledger = Ledger.create(path, name="s", budget=Budget.pure(1), **terms)
    ledger.check_terms(Terms(**terms))
    with pytest.raises(BudgetError, match=f"with {what} = .* created with {what} = "):
        Ledger.open(path).check_terms(Terms(**terms | changed))


def test_terms_survive_the_file(path):
    made = Ledger.create(
        path, name="Gesundheit «2026»", budget=Budget.approx("1/3", "1e-6"), neighbours="replace-one",
        unit="one patient", person="patient id", rows_per_person=7, conversion_delta="1/7000000",
    )  # fmt: skip
    again = Ledger.open(path)
    assert again.terms == made.terms == LedgerTerms.from_dict(made.terms.to_dict())
    assert again.budget == made.budget and again.name == made.name
    assert again.remaining() == again.budget


WHOLE = Budget.approx(1, "1e-6")


@pytest.mark.parametrize("wrong", [
    {"name": ""}, {"name": 3}, {"name": "two\nlines"}, {"name": "x" * 201}, {"unit": " "}, {"person": ""},
    {"person": 1}, {"rows_per_person": 0}, {"rows_per_person": True}, {"rows_per_person": 1.0},
    {"neighbours": "both"}, {"neighbours": None}, {"budget": 1}, {"budget": None}, {"budget": Budget.zero("pure")},
    {"budget": Budget.pure(Fraction(1, 10**401))}, {"conversion_delta": "1e-7"},
    {"budget": WHOLE, "conversion_delta": "2e-6"}, {"budget": WHOLE, "conversion_delta": 0},
    {"budget": WHOLE, "conversion_delta": float("nan")},
])  # fmt: skip
def test_senseless_terms_are_refused_and_no_file_is_made(path, wrong):
    """Every term is checked before anything is written."""
    terms = {"name": "s", "budget": Budget.pure(1), "neighbours": "add-remove"} | wrong
    with pytest.raises(BudgetError):
        Ledger.create(path, **terms)
    assert list(path.parent.iterdir()) == []


CONDITIONS = (None, "text", ["text"], ("",), (3,), ("two\nlines",), ("x" * 201,), ("x",) * 11, ("\x1b[2J",))


@pytest.mark.parametrize(
    ("what", "value", "words"),
    [
        *(("budget", one, "positive Budget") for one in (None, 0.1, "0.1", True, {"epsilon": 1}, Fraction(1, 10))),
        ("budget", Budget.zero("pure"), "positive Budget"),
        ("budget", Budget.pure(Fraction(1, 10**400)), "400 digits"),  # which would make the file unreadable
        *(("note", one, "note") for one in (None, 3, "two\nlines", "x" * 201, "nul\0")),
        *(("conditions", one, "condition") for one in CONDITIONS),
    ],
)
def test_a_charge_that_makes_no_sense_is_refused_and_charges_nothing(path, what, value, words):
    """Amounts are positive budgets, a note is one short line, and conditions are a tuple of at most ten of them."""
    ledger = pure_ledger(path)
    with pytest.raises(BudgetError, match=words):
        ledger.charge(**{"budget": TENTH, what: value})
    assert ledger.history() == ()
    ledger.charge(Budget.pure(Fraction(1, 10**399)))
    assert len(Ledger.open(path).history()) == 1


# --- the record -------------------------------------------------------------------------------------------------


def test_history_tells_paid_releases_from_saved_ones(path):
    """Entries start as charged and become released; describe counts those that never did."""
    ledger = pure_ledger(path)
    first, second = ledger.charge(TENTH, note="first"), ledger.charge(Budget.pure("0.2"))
    ledger.mark_released(second)
    ledger.mark_released(second)
    entries = ledger.history()
    assert [(e.id, e.cost, e.note, e.status) for e in entries] == [
        (first, TENTH, "first", "charged"),
        (second, Budget.pure("0.2"), "", "released"),
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", entries[0].when)
    assert "1 charge(s) not marked as saved" in ledger.describe()
    ledger.mark_released(first)
    assert "not marked" not in ledger.describe()


@pytest.mark.parametrize("entry", [0, 2, -1, True, 1.0, "1", None, 2**70])
def test_only_an_existing_entry_can_be_marked(path, entry):
    ledger = pure_ledger(path)
    ledger.charge(TENTH)
    with pytest.raises(BudgetError):
        ledger.mark_released(entry)
    assert ledger.history()[0].status == "charged"


def test_describe_and_to_dict_say_terms_and_totals(path):
    """The words and the plain values hold what a reader needs, amounts exact."""
    ledger = Ledger.create(
        path, name="s", budget=Budget.approx(3, "1e-6"), neighbours="add-remove", person="id", rows_per_person=4
    )
    ledger.charge(Budget.pure("0.5"))
    text = ledger.describe()
    for part in ("4 rows each", "'id'", "add-remove", "(3, 1e-06)", "(0.5, 0)", "(2.5, 1e-06)", "delta' = 5e-07"):
        assert part in text
    plain = ledger.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["spent"] == {"epsilon": "1/2", "delta": "0"} and plain["conversion_delta"] == "1/2000000"
    assert ledger.history()[0].to_dict()["cost"] == {"epsilon": "1/2"}


def test_the_file_holds_only_numbers_times_and_texts_that_are_given(path):
    """No column can carry a path, a size or a duration of the data, and the one hash is of what the file shows."""
    pure_ledger(path).charge(TENTH, note="hello")
    with database(path) as file:
        columns = {
            name: [row[1] for row in file.execute(f"PRAGMA table_info({name})")]
            for (name,) in file.execute("SELECT name FROM sqlite_master")
        }
        (terms,) = file.execute("SELECT document FROM terms").fetchone()
    assert columns == {
        "terms": ["document"],
        "charges": ["id", "charged_at", "cost", "note", "status", "conditions", "identity"],
        "tally": ["charges", "digest"],
    }
    assert set(json.loads(terms)) == {
        "name", "budget", "neighbours", "unit", "person", "rows_per_person", "conversion_delta",
        "identity",
    }  # fmt: skip


def test_the_file_has_a_rollback_journal_and_no_call_leaves_it_open(path):
    """Writes and the journal's end are synced (EXTRA is 3), and after a call only the one file is there."""
    ledger = pure_ledger(path)
    ledger.charge(TENTH)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with ledger_file.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


def test_two_files_do_not_mix(tmp_path):
    one, two = pure_ledger(tmp_path / "one"), pure_ledger(tmp_path / "two", total=2)
    for ledger in (one, two):
        ledger.charge(Budget.pure(1))
    assert one.remaining().is_zero and two.remaining() == Budget.pure(1)


# --- conditions ---------------------------------------------------------------------------------------------------


def test_conditions_are_kept_shown_and_said_of_the_total(path):
    ledger = pure_ledger(path)
    charged = [(), ("conditional on public N",), ("conditional on public N", "unsafe noise")]
    ledger.charge(TENTH)
    assert "conditional" not in ledger.describe() and ledger.to_dict()["conditions"] == {}
    for conditions in charged[1:]:
        ledger.charge(TENTH, conditions=conditions)
    again = Ledger.open(path)
    assert [entry.conditions for entry in again.history()] == charged
    assert again.history()[2].to_dict()["conditions"] == list(charged[2])
    said = "2 of 3 charge(s) are conditional: conditional on public N (2), unsafe noise (1); the total is no "
    assert f"{said}unconditional guarantee.\n" in again.describe()
    assert again.to_dict()["conditions"] == {"conditional on public N": 2, "unsafe noise": 1}
    check_conditions((NOT_RECORDED,))  # so nobody who counts conditions takes an old charge for an unconditional one


# --- files ------------------------------------------------------------------------------------------------------


def test_create_never_touches_what_is_there(path):
    pure_ledger(path).charge(TENTH)
    before = path.read_bytes()
    with pytest.raises(BudgetError, match="the file exists"):
        pure_ledger(path, total=100)
    assert path.read_bytes() == before
    other = path.with_name("notes.txt")
    other.write_text("mine")
    with pytest.raises(BudgetError, match="the file exists"):
        pure_ledger(other)
    assert other.read_text() == "mine"
    assert {file.name for file in path.parent.iterdir()} == {path.name, "notes.txt"}


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_create_refuses_what_an_older_ledger_left(path, end):
    """SQLite would replay a left-behind journal or log into the new file, so it must be moved away first."""
    Path(f"{path}{end}").write_bytes(b"old")
    with pytest.raises(BudgetError, match="older ledger"):
        pure_ledger(path)
    assert not path.exists()


def test_create_makes_the_folder_and_says_when_it_cannot(path):
    pure_ledger(path.parent / "new" / "deep" / "x.ledger").charge(TENTH)
    path.write_text("a file")
    with pytest.raises(ModelFileError, match="cannot create ledger"):
        pure_ledger(path / "x.ledger")


def test_names_with_the_letters_of_an_address_work(tmp_path):
    """Question marks, hashes, per cents and spaces in a path are not taken for SQLite options."""
    path = tmp_path / "a?mode=ro #1 100%41 ü.ledger"
    pure_ledger(path).charge(TENTH)
    assert Ledger.open(path).spent() == TENTH
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_open_never_creates(path):
    link = path.with_name("link")
    link.symlink_to(path.with_name("nowhere"))
    for none in (path, path.parent, link):
        with pytest.raises(ModelFileError, match="there is no ledger"):
            Ledger.open(none)
    assert [file.name for file in path.parent.iterdir()] == [link.name]


def test_a_ledger_deleted_or_replaced_under_an_open_object_is_noticed(path):
    """The next charge fails rather than starting from zero, or under the terms of another file of the name."""
    ledger = pure_ledger(path)
    path.unlink()
    with pytest.raises(BudgetError):
        ledger.charge(TENTH)
    assert list(path.parent.iterdir()) == []
    pure_ledger(path, total=100)
    with pytest.raises(ModelFileError, match="replaced"):
        ledger.charge(TENTH)


@pytest.mark.parametrize("content", [
    b"", b"\0" * 5000, b"SQLite format 3\0", b"epsilon = 1\n", b"\xff" * 100, 1, 99, 100, 4096, 5000,
])  # fmt: skip
def test_garbage_and_a_file_cut_short_are_no_ledger(path, content):
    """Empty files, texts, broken headers and ledgers cut anywhere are refused and stay as they are."""
    if isinstance(content, int):
        pure_ledger(path).charge(TENTH)
        content = path.read_bytes()[:content]
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_every_flipped_byte_is_refused_or_harmless(path):
    """Any of 200 bytes: an error, or what was there, but for the owner's texts and bytes that nobody reads."""
    ledger = pure_ledger(path)
    for _ in range(3):
        ledger.charge(TENTH)
    whole = path.read_bytes()
    refused = 0
    for position in range(0, len(whole), len(whole) // 200):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            assert Ledger.open(path).spent() == Budget.pure("0.3")
        except (ModelFileError, BudgetError):
            refused += 1
        for extra in ledger_file.SIDECARS:
            Path(f"{path}{extra}").unlink(missing_ok=True)
    assert refused > 0


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA user_version = 4", "damaged"),
        ("PRAGMA user_version = 5", "schema 5"),
        ("PRAGMA user_version = 0", "schema 0"),
        ("PRAGMA application_id = 1", "not a dpgm ledger"),
        ("CREATE TRIGGER forget AFTER INSERT ON charges BEGIN DELETE FROM charges; END", "did not make"),
        ("CREATE VIEW more AS SELECT 1", "did not make"),
        ("ALTER TABLE charges ADD COLUMN rows INTEGER", "did not make"),
        ("DROP TABLE charges", "did not make"),
        ("DELETE FROM terms", "damaged"),
        ("INSERT INTO terms SELECT document FROM terms", "damaged"),
        ("UPDATE terms SET document = '{}'", "damaged"),
        ("UPDATE terms SET document = '[]'", "damaged"),
        ("UPDATE terms SET document = replace(document, '\"1\"', '\"0.2\"')", "damaged"),
        ("UPDATE terms SET document = replace(document, 'add-remove', 'none')", "damaged"),
        ("UPDATE terms SET document = replace(document, '{', '{\"more\": 1, ')", "damaged"),
        ('UPDATE charges SET cost = \'{"epsilon": "-1"}\'', "damaged"),
        ("UPDATE charges SET cost = '{\"epsilon\": NaN}'", "damaged"),
        ("UPDATE charges SET cost = 'x'", "damaged"),
        ("UPDATE charges SET cost = x'ff'", "damaged"),
        ("UPDATE charges SET cost = '[[[[[[1'", "damaged"),
        ("UPDATE charges SET status = 'free'", "damaged"),
        ("UPDATE charges SET cost = CAST(x'ff' AS TEXT)", "not a usable"),
    ],
)
def test_a_file_changed_by_other_hands_is_refused(path, statement, words):
    """Newer schemas, foreign objects and contents that do not parse or add up raise ModelFileError at every door."""
    ledger = pure_ledger(path)
    for _ in range(3):
        ledger.charge(TENTH)
    with database(path) as file:
        file.execute(statement)
    for call in (lambda: Ledger.open(path), lambda: ledger.charge(TENTH), ledger.history):
        with pytest.raises(ModelFileError, match=words):
            call()


def test_an_approx_ledger_without_conversion_delta_is_damaged(path):
    """Otherwise zCDP charges would be free."""
    Ledger.create(path, name="s", budget=Budget.approx(1, "1e-6"), neighbours="add-remove")
    with database(path) as file:
        file.execute("UPDATE terms SET document = replace(document, '\"1/2000000\"', 'null')")
    with pytest.raises(ModelFileError, match="damaged"):
        Ledger.open(path)


def test_a_held_file_is_one_clear_line(path, monkeypatch):
    """A writer that does not let go makes the charge fail after the waiting time, with nothing charged."""
    ledger = pure_ledger(path)
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.05)
    with database(path) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(BudgetError, match="held by another process"):
            ledger.charge(TENTH)
        assert ledger.history() == ()  # readers are not held up
    ledger.charge(TENTH)


@pytest.fixture
def shared_folder():
    """A folder that other users may enter; pytest's are private, also again whenever another session begins."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs POSIX users")
def test_a_file_that_cannot_be_written_is_one_clear_line(shared_folder):
    """Then `check` and `charge` are a BudgetError, nothing is charged and reading works, under the older schema too."""
    path = shared_folder / "x.ledger"
    made = pure_ledger(path)
    copy, older = path.with_name("copy.ledger"), path.with_name("older.ledger")
    shutil.copy(path, copy)
    write_second(older)
    for one in (copy, older):
        one.chmod(0o444)
    path.parent.chmod(0o555)
    script = f"""
import os
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_terms import LedgerTerms
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Neighbours
terms = LedgerTerms(name="survey", budget=Budget.pure(1), neighbours=Neighbours.of("add-remove"),
                    unit="one record", person=None, rows_per_person=1, conversion_delta=None,
                    identity={made.identity!r})
from pathlib import Path
import json, encodings.idna
os.chdir({str(path.parent)!r})  # while the folders above may still be entered
if os.getuid() == 0:
    os.setuid(65534)
ledger = Ledger(Path({str(copy)!r}), terms)
print(ledger.remaining())
for call in (ledger.charge, ledger.check):
    try:
        call(Budget.pure("0.1"))
    except BudgetError as error:
        print(error)
older = Ledger.open({str(older)!r})
print(len(older.history()), "of schema 2,", older.identity)
try:
    older.charge(Budget.pure("0.1"))
except BudgetError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    path.parent.chmod(0o755)
    assert done.stdout.startswith("epsilon = 1\n"), done.stderr
    assert "3 of schema 2, None\n" in done.stdout, done.stderr
    assert done.stdout.count("cannot be opened for writing; nothing was charged") == 3, done.stderr
    assert Ledger.open(copy).history() == ()


ROOT = Path(ledger_module.__file__).parents[2]


def test_the_ledger_knows_nothing_of_data_or_models():
    """It imports errors, files, texts, privacy and the statement about two tables only, none of them of records."""
    for module in (ledger_module, ledger_file, ledger_terms):
        names = [
            node.module
            for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpgm_core")
        ]
        allowed = {
            f"dpgm_core.privacy.{one}"
            for one in ("budget", "gdp", "terms", "sensitivity", "ledger_file", "ledger_terms")
        }
        allowed |= {f"dpgm_core._util.{one}" for one in ("files", "html", "exact_numbers")}
        assert set(names) <= {"dpgm_core.errors", "dpgm_core.privacy", "dpgm_core.domain.related", *allowed}


@pytest.mark.parametrize(
    "document",
    ["x" * 2**21, b"\xff\xfe", b'{"name": "\x01\xff"}', "[" * 10**5],
    ids=["long", "bytes", "letters", "deep"],
)
def test_a_hostile_text_is_refused_in_one_line(path, document):
    """What SQLite says of it quotes the file, control characters and all; what is too long is not even read."""
    pure_ledger(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE terms SET document = CAST(? AS TEXT)", (document,))
        connection.commit()
    with pytest.raises(ModelFileError) as caught:
        Ledger.open(path)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_an_entry_as_plain_values():
    facts = {"id": 1, "when": "2026", "note": "", "status": "charged"}
    entry = LedgerEntry(cost=Budget.pure("0.1"), conditions=("unsafe noise",), **facts)
    more = {"cost": {"epsilon": "1/10"}, "conditions": ["unsafe noise"], "identity": None}
    assert entry.to_dict() == facts | more
