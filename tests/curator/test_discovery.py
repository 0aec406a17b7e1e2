"""Labels found before the tables: two charges, what is refused before the first, and what is kept between them."""

import io
import json
import logging
import math
import shutil
import sqlite3
from contextlib import closing, redirect_stderr, redirect_stdout
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Ledger, SeededRandomness, Structure, Terms
from dpgm_core.curator.labels import LabelSearch, check_open
from dpgm_core.curator.live import LiveCurator
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.errors import BudgetError, DataError, DomainError, LearningFailed, ModelFileError, OptionError
from dpgm_core.learning import Discovery
from dpgm_core.privacy.labels import plan_labels, with_placeholders
from dpgm_core.privacy.ledger_file import digest
from dpgm_core.releases.labels import load_discovery
from dpgm_core.releases.release import total_cost
from dpgm_core.sources import as_source

BUDGET = Budget.approx(2, "1e-5")
OPEN = {"labels": {"private": True, "keep": 5, "share": 0.1}}
RARE = "zz-planted-zz"
PLAIN = Terms(neighbours="add-remove")


def domain(**more):
    return Domain.from_dict({"attributes": {"job": OPEN, "sex": {"labels": ["F", "M"]}, **more}})


def structure(**more):
    return Structure(domain(**more), [("job", "sex")])


def table(jobs=("cook",) * 400 + ("pilot",) * 300 + ("diver",) * 2 + (RARE,), **more):
    """People, by job; one of them has a job of their own."""
    return pa.table({"job": jobs, "sex": ["F", "M"] * (len(jobs) // 2) + ["F"] * (len(jobs) % 2), **more})


def ledger(path, budget=BUDGET, **terms):
    return Ledger.create(path / "x.ledger", name="x", budget=budget, neighbours="add-remove", **terms)


def fitted(data=None, budget=BUDGET, seed=5, **more):
    randomness = None if seed is None else SeededRandomness(seed)
    told = {"neighbours": "add-remove", "randomness": randomness, "mechanism": "gaussian"} | more
    return dpgm.fit(table() if data is None else data, told.pop("structure", structure()), budget, **told)


def test_two_charges_and_one_guarantee(tmp_path):
    """The labels first, with a note; the model costs both, and its file says so too."""
    book, saved = ledger(tmp_path), tmp_path / "a.release.dpgm"
    done = fitted(ledger=book, save_release=saved)
    model, found = done.model, done.release.discovery
    assert model.domain["job"].labels == ("cook", "pilot", "other", "missing")
    first, second = book.history()
    assert (first.cost, second.cost) == (BUDGET * Fraction(1, 10), BUDGET * Fraction(9, 10))
    assert (first.note, first.status) == ("labels of 'job', found privately before the tables", "released")
    mark = {"mark": found.provenance["mark"]}
    assert found.provenance == book.provenance(1) | mark and book.entry_of(found.provenance) == first
    assert done.release.provenance == book.provenance(2) and book.entry_of(done.release.provenance) == second
    assert model.cost == BUDGET and found.cost == first.cost and done.release.cost == second.cost
    assert "the domain but for the labels of 'job', which were found privately" in model.guarantee()
    assert "Finding the labels of 'job' is (epsilon, delta) = (0.2, 1e-06) of it." in done.release.guarantee()
    again = dpgm.load_release(saved)
    assert again.discovery == found == load_discovery(tmp_path / "a.labels.json")
    assert again.guarantee() == done.release.guarantee()
    model.save(tmp_path / "m.dpgm")
    read = dpgm.load_model(tmp_path / "m.dpgm")
    assert (read.cost, read.guarantee()) == (BUDGET, model.guarantee())
    stated = json.loads((tmp_path / "a.labels.json").read_text())["domain"]
    assert Domain.from_dict(stated) == model.domain == found.domain(domain())


def test_a_value_of_one_person_appears_nowhere(tmp_path, caplog):
    """No output, log, file or error shows it. The seed is fixed; fresh noise would show it in two of a million runs."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), caplog.at_level(logging.DEBUG):
        for number, chooser in enumerate((structure(), "auto")):
            more = {} if number == 0 else {"workload": domain(), "mechanism": "laplace"}
            done = fitted(structure=chooser, save_release=tmp_path / f"{number}.release.dpgm", **more)
            done.model.save(tmp_path / f"{number}.dpgm")
            assert RARE not in repr(done.model.sample(50).to_pylist()) + done.model.guarantee() + repr(done)
            assert all("diver" not in one.labels for one in done.model.domain)
    seen = out.getvalue() + err.getvalue() + caplog.text
    assert RARE not in seen
    assert not any(RARE.encode() in file.read_bytes() for file in tmp_path.iterdir())
    for number in range(2):
        read = dpgm.load_model(tmp_path / f"{number}.dpgm")
        assert RARE not in json.dumps(read.to_document()) + json.dumps(read.release.to_document())


def test_a_person_of_many_rows_counts_once_for_a_label():
    jobs = ["cook"] * 400 + [RARE] * 5000
    people = [f"p{n}" for n in range(400)] + ["one"] * 5000
    done = fitted(
        pa.table({"job": jobs, "sex": ["F"] * len(jobs), "id": people}),
        neighbours=None,
        terms=Terms(neighbours="replace-one", person="id", rows_per_person=2),
    )
    assert done.model.domain["job"].labels == ("cook", "other", "missing")
    assert done.release.discovery.columns[0].noise.moved == 4


def test_killed_between_the_charges_the_first_is_spent_and_kept(tmp_path, monkeypatch):
    """Nothing is released, the labels are saved, and a later run takes them up at no further cost."""
    book, saved = ledger(tmp_path), tmp_path / "a.release.dpgm"

    def killed(self, *_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LiveCurator, "_count", killed)
        with pytest.raises(KeyboardInterrupt):
            fitted(ledger=book, save_release=saved)
    assert [entry.cost for entry in book.history()] == [BUDGET * Fraction(1, 10)]
    assert not saved.exists()
    with pytest.raises(dpgm.ModelFileError, match=r"a\.labels\.json exists"):  # paid for, and never overwritten
        fitted(save_release=saved)
    done = fitted(ledger=book, save_release=saved, labels_from=tmp_path / "a.labels.json")
    assert [entry.cost for entry in book.history()] == [BUDGET * Fraction(1, 10), BUDGET * Fraction(9, 10)]
    assert done.model.cost == BUDGET == book.spent()


@pytest.mark.parametrize("way", ["fit", "release", "select"])
def test_what_fails_after_the_first_charge_says_what_is_kept(tmp_path, monkeypatch, way):
    book = ledger(tmp_path)
    calls = {
        "fit": lambda **more: dpgm.fit(table(), structure(), BUDGET, mechanism="gaussian", **more),
        "release": lambda **more: dpgm.release(table(), structure(), BUDGET, "gaussian", **more),
        "select": lambda **more: dpgm.select(table(), "auto", BUDGET, domain(), **more),
    }

    def broken(*_, **__):
        raise ValueError(RARE)

    monkeypatch.setattr("dpgm_core.sources.arrow.ArrowSource.batches", broken)
    monkeypatch.setattr("dpgm_core.pipeline.run.check_source", lambda *_: None)
    said = {"terms": PLAIN, "randomness": SeededRandomness(5), "ledger": book}
    with pytest.raises(LearningFailed, match=r"'job' are found and paid for .*labels_from = '.*x\.labels") as failed:
        calls[way](save_release=tmp_path / "x.release.dpgm", **said)
    assert isinstance(failed.value.discovery, Discovery) and failed.value.releases == ()
    assert RARE not in str(failed.value)
    assert len(book.history()) == 1
    assert load_discovery(tmp_path / "x.labels.json") == failed.value.discovery


def test_releases_of_one_discovery_count_it_once(tmp_path):
    fitted(save_release=tmp_path / "a.release.dpgm")
    more = {"labels_from": tmp_path / "a.labels.json", "neighbours": "add-remove"}
    two = [
        dpgm.release(table(), structure(), BUDGET, "gaussian", randomness=SeededRandomness(seed), **more)
        for seed in (1, 2)
    ]
    model = dpgm.learn(two).model
    assert model.cost == BUDGET * Fraction(1, 10) + 2 * (BUDGET * Fraction(9, 10))
    assert model.guarantee().count("Finding the labels") == 1
    assert str(model.cost) in model.guarantee() and str(model.cost) in model.release.guarantee()


def test_two_that_found_the_same_are_two_charges():
    """Without a ledger nothing but the mark tells them apart, such as two that found nothing."""
    rare = table([f"j{n}" for n in range(300)])
    both = [fitted(rare, seed=seed).release for seed in (1, 2)]
    assert [one.discovery.columns[0].labels for one in both] == [(), ()]
    assert dpgm.learn(both).model.cost == 2 * BUDGET


def refused(error, words, tmp_path, **more):
    """The run is refused with nothing charged, and the records are not read."""
    book = more.pop("ledger", None) or ledger(tmp_path)

    class Untouched(type(as_source(table()))):
        def raw_batches(self, columns):
            raise AssertionError("read")

    more.setdefault("data", Untouched(data=table()))
    with pytest.raises(error, match=words):
        fitted(ledger=book, **more)
    assert book.history() == ()


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"budget": Budget.pure(1)}, BudgetError, "labels of 'job' .* costs an .epsilon, delta"),
        ({"budget": Budget.zcdp(1)}, BudgetError, "labels of 'job' .* costs an .epsilon, delta"),
        ({"budget": Budget.approx("1e-12", "1e-6")}, BudgetError, "labels of 'job' cannot be found"),
        ({"mechanism": "laplace"}, BudgetError, "laplace"),
        ({"split": "contrasts"}, Exception, "binary|two"),
        ({"data": np.zeros((9, 2), int)}, DataError, "source CodesSource offers none"),
        ({"data": table().to_reader()}, DataError, "read only once"),
        ({"data": pa.table({"job": ["a"], "SEX": ["F"]})}, DataError, "no column 'sex'"),
        ({"data": "no-such.csv"}, DataError, "no data file no-such.csv"),
        ({"budget": Budget.approx(5, "1e-6")}, dpgm.Overspent, "only"),
        ({"labels_from": "nothing.json"}, dpgm.ModelFileError, "cannot read nothing.json"),
        (
            {"structure": Structure(Domain.from_sizes({"job": 2, "sex": 2}), [("sex",)]), "labels_from": "x"},
            OptionError,
            "open",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_charge(tmp_path, more, error, words):
    refused(error, words, tmp_path, **more)


def test_ledgers_and_terms_that_do_not_go_with_it_are_refused(tmp_path):
    """A ledger without delta, one of other terms, contributions, and more labels than the declared records."""
    for kind in (Budget.pure(9), Budget.zcdp(9)):
        folder = tmp_path / kind.kind
        folder.mkdir()
        refused(BudgetError, "labels of 'job' .* ledger 'x' cannot add up", folder, ledger=ledger(folder, kind))
    shares = Terms(neighbours="add-remove", contributions=dpgm.Contributions(per="clique", grid=60))
    refused(OptionError, "labels of 'job' .* contributions", tmp_path, neighbours=None, terms=shares)
    few = Terms(neighbours="add-remove", total=200)
    with pytest.raises(BudgetError, match=r"5 labels of 'job' .* only 200 records are declared; say keep = 2"):
        plan_labels(domain(), BUDGET, few)
    with pytest.raises(BudgetError, match="only 9 records are declared; give a larger"):
        plan_labels(domain(), BUDGET, Terms(neighbours="add-remove", total=9))
    greedy = domain(town={"labels": {"private": True, "keep": 5, "share": 0.9}})
    with pytest.raises(BudgetError, match="'job', 'town' takes 1 of the budget"):
        plan_labels(greedy, BUDGET, PLAIN)
    for share in (0.1, Fraction(0), Fraction(1), "1/2", None):
        wrong = evolve(domain()["job"], private=PrivateLabels(keep=5, share=share))
        with pytest.raises(DomainError, match="share"):
            plan_labels(Domain([wrong]), BUDGET, PLAIN)


def test_a_ledger_that_adds_squares_takes_labels_out_of_its_part_for_others(tmp_path):
    """Both charges, as the labels and the tables are one (epsilon, delta); without such a part nothing is read."""
    whole = Budget.approx(9, 10 * BUDGET.delta)
    bare, folder = tmp_path / "bare", tmp_path / "part"
    bare.mkdir(), folder.mkdir()
    refused(BudgetError, "cannot add up", bare, ledger=ledger(bare, whole, account="gaussian"))
    book = ledger(folder, whole, account="gaussian", other=BUDGET)
    done = fitted(ledger=book)
    assert [one.cost for one in book.history()] == [BUDGET * Fraction(1, 10), BUDGET * Fraction(9, 10)]
    assert done.model.cost == BUDGET and book.spent().is_zero
    with pytest.raises(BudgetError, match="nothing was charged"):
        fitted(ledger=book)


def test_labels_of_other_terms_or_columns_are_not_taken_up(tmp_path):
    fitted(save_release=tmp_path / "a.release.dpgm")
    taken = tmp_path / "a.labels.json"
    with pytest.raises(BudgetError, match="other terms"):
        fitted(labels_from=taken, neighbours="replace-one")
    with pytest.raises(OptionError, match="without a seed"):
        fitted(labels_from=taken, seed=None)
    with pytest.raises(BudgetError, match="leaves nothing"):
        fitted(labels_from=taken, budget=BUDGET * Fraction(1, 10))
    other = Structure(domain(town=OPEN), [("job", "town")])
    with pytest.raises(DomainError, match="labels found are of 'job', and the domain leaves those of 'job', 'town'"):
        fitted(labels_from=taken, structure=other)


def test_labels_that_another_ledger_paid_for_are_not_taken_up(tmp_path):
    """A ledger holds all that was spent on its data: labels found without one, under another or one made anew."""
    for name in ("first", "second", "first/again"):
        (tmp_path / name).mkdir()
    first, second = ledger(tmp_path / "first"), ledger(tmp_path / "second")
    fitted(save_release=tmp_path / "free.release.dpgm")
    refused(BudgetError, "not charged to ledger", tmp_path, ledger=first, labels_from=tmp_path / "free.labels.json")
    fitted(ledger=first, save_release=tmp_path / "paid.release.dpgm")
    paid = tmp_path / "paid.labels.json"
    refused(BudgetError, "not charged to ledger", tmp_path, ledger=second, labels_from=paid)
    anew = ledger(tmp_path / "first" / "again")
    anew.charge(BUDGET * Fraction(1, 100))
    with pytest.raises(BudgetError, match="not charged to ledger"):
        fitted(ledger=anew, labels_from=paid)
    assert fitted(labels_from=paid).model.cost == BUDGET


@pytest.mark.landing
def test_labels_of_a_ledger_of_the_same_name_are_not_taken_up(tmp_path):
    """Nor those of a copy of the ledger, made before the charge, whose first entry looks the same."""
    one, two, copy = tmp_path / "one", tmp_path / "two", tmp_path / "copy"
    for folder in (one, two, copy):
        folder.mkdir()
    first, second = ledger(one), ledger(two)
    shutil.copy(first.path, copy / "x.ledger")
    for folder in (one, two, copy):
        fitted(ledger=Ledger.open(folder / "x.ledger"), save_release=folder / "a.release.dpgm")
    assert first.history()[0].cost == second.history()[0].cost
    for folder in (two, copy):
        with pytest.raises(BudgetError, match="not charged to ledger 'x'"):
            fitted(ledger=Ledger.open(first.path), labels_from=folder / "a.labels.json")
    with pytest.raises(BudgetError, match="another ledger of the same name paid for them"):
        fitted(ledger=first, labels_from=two / "a.labels.json")


def test_old_labels_are_compared_as_before(tmp_path):
    """Files and entries without identities go by name, number and cost; with one of the two they do not belong."""
    book, labels = ledger(tmp_path), tmp_path / "a.labels.json"
    fitted(ledger=book, save_release=tmp_path / "a.release.dpgm")
    assert load_discovery(labels).is_identified
    document = json.loads(labels.read_text())
    for name in ("ledger_identity", "entry_identity"):
        del document["discovery"]["provenance"][name]
    labels.write_text(json.dumps(document))
    old = load_discovery(labels)
    assert old.provenance["entry"] == 1 and book.entry_of(old.provenance) is None and not old.is_identified
    with closing(sqlite3.connect(book.path)) as database, database:  # as if the charge had been made before schema 3
        database.execute("UPDATE charges SET identity = NULL")
        database.execute("UPDATE tally SET digest = ?", (digest(database),))
    assert book.entry_of(old.provenance).id == 1


def test_several_open_columns_have_shares_of_their_own():
    town = {"labels": {"private": True, "keep": 3, "share": "1/4"}}
    both = Structure(domain(town=town), [("job", "town"), ("sex",)])
    done = fitted(table(town=["here"] * 703), structure=both)
    found = done.release.discovery
    assert found.names == ("job", "town") and found.cost == BUDGET * Fraction(7, 20)
    assert done.model.domain["town"].labels == ("here", "other", "missing")
    assert done.model.cost == BUDGET


def test_nothing_found_is_an_answer():
    done = fitted(table([f"j{n}" for n in range(300)]))
    assert done.model.domain["job"].labels == ("other", "missing")
    assert done.model.marginal("job")[0] > 0.8


def test_plans_and_checks_count_both_parts():
    """A plan's cost is all of it, and it says how many persons a label needs; `check` reads no record."""
    told = dpgm.plan(structure(), BUDGET, "gaussian", neighbours="add-remove")
    assert told.cost == told.asked == BUDGET
    assert told.tables[0].cells == 7 * 3
    assert "at most 5 labels of 'job' are found first" in told.notes[0]
    chosen = dpgm.plan_selection("auto", BUDGET, domain(), terms=PLAIN)
    assert chosen.shares["labels of 'job'"] == BUDGET * Fraction(1, 10)
    source = as_source(table())
    asked = plan_labels(domain(), BUDGET, PLAIN)
    check_open(source, asked)
    search = LabelSearch(source=source, domain=Domain.from_sizes({"a": 2}), budget=BUDGET, terms=PLAIN)
    found = search.find(lambda: None)
    assert (found.discovery, found.budget) == (None, BUDGET)


@pytest.mark.landing
def test_one_persons_labels_come_out_as_often_as_delta_says():
    """Two labels of one person who has three are told in 1 - (1 - q)^2 of 250 seeded runs, within four standard
    deviations (false alarm 6e-5 with fresh noise); without the limit to two labels it would be 1 - (1 - q)^3."""
    table = pa.table({"job": ["a", "b", "c"], "sex": ["F"] * 3, "id": ["one"] * 3})
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=2)
    opened = Domain.from_dict({"attributes": {"job": {"labels": {"private": True, "keep": 5, "share": 0.9}}}})
    budget = Budget.approx(3, "0.999")
    source, random, seen = as_source(table), SeededRandomness(4), 0
    (asked,) = plan_labels(opened, budget, terms)
    q = float(asked.noise.published)
    chance = 1 - (1 - q) ** 2
    search = LabelSearch(source=source, domain=opened, budget=budget, terms=terms, randomness=random)
    for _ in range(250):
        found = search.find(lambda: None)
        seen += bool(found.discovery.columns[0].labels)
    room = 4 * (chance * (1 - chance) / 250) ** 0.5
    assert abs(seen / 250 - chance) < room < 1 - (1 - q) ** 3 - chance


@pytest.mark.parametrize("wanted", ["fit", "select"])
def test_what_was_too_large_to_plan_for_stays_out_when_fewer_labels_are_found(tmp_path, wanted):
    """Candidates are those of the plan, in the file too, where no codes are merged; by the labels found they could be
    too many for a workload."""
    town = {"labels": ["east", "west"]}
    workload = dpgm.Workload.all(domain(town=town), order=2, max_cells=20)
    asked = {"terms": PLAIN, "randomness": SeededRandomness(5)}
    saved, records = tmp_path / "a.release.dpgm", table(town=["east"] * 703)
    selector = {"name": "auto", "merge": False}
    if wanted == "fit":
        release = dpgm.fit(records, selector, BUDGET, workload=workload, save_release=saved, **asked).release
    else:
        release, _ = dpgm.select(records, selector, BUDGET, workload, save_release=saved, **asked)
    found = release.session.workload
    assert workload.domain["job"].size == 7 and found.domain["job"].size * found.domain["sex"].size == 12 <= 20
    assert found.candidates == workload.candidates == (("job",), ("sex",), ("town",), ("sex", "town"))
    again = dpgm.load_release(saved)
    assert again.session.workload.candidates == found.candidates
    assert again.tables.values.tolist() == release.tables.values.tolist()
    assert again.session.to_dict() == release.session.to_dict()


def any_type(count=1500, seed=1):
    """A table of which nothing is described, and what it holds: one person has a label and a number of their own."""
    generator = np.random.default_rng(seed)
    table = {
        "id": [f"p{n // 2}" for n in range(count)],
        "job": [*generator.choice(["cook", "pilot"], count - 1).tolist(), RARE],
        "age": [*map(str, generator.integers(18, 90, count - 1)), "123456"],
        "paid": [f"{value:.2f}".replace(".", ",") for value in generator.uniform(10, 500, count)],
        "since": [f"{day:02d}.{month:02d}.2018" for day, month in generator.integers(1, 13, (count // 2, 2)).tolist()]
        + [f"{day:02d}.03.2018" for day in generator.integers(13, 29, count - count // 2).tolist()],
        "note": [f"free text {number}" for number in range(count)],
    }
    columns = [name for name in table if name != "id"]
    return pa.table(table), Domain.from_dict({"attributes": {name: {"private": True} for name in columns}})


PERSONS = Terms(neighbours="add-remove", person="id", rows_per_person=2)


ANY_BUDGET = Budget.approx(30, "1e-5")


def found_model(tmp_path=None, cliques=(("job", "age"), ("paid",), ("since",), ("note",)), domain=None, **more):
    table, declared = any_type()
    named = {"terms": PERSONS, "randomness": SeededRandomness(5), "mechanism": "gaussian"} | more
    if tmp_path is not None and not more.get("labels_from"):
        named["save_release"] = tmp_path / "a.release.dpgm"
    return dpgm.fit(table, Structure(domain or declared, cliques), ANY_BUDGET, **named), declared


def test_an_interrupt_after_the_release_does_not_advise_to_release_again(tmp_path, monkeypatch):
    """What was released of tables is kept, and to learn from it is free; labels_from would pay for them again."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpgm_core.learning.learner_run._with_provenance", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        found_model(tmp_path)
    failed = caught.value.__cause__
    assert isinstance(failed, LearningFailed) and failed.releases and failed.discovery is not None
    assert "dpgm learn" in str(failed) and "labels_from" not in str(failed)


def test_columns_of_any_type_go_on_from_what_was_found(tmp_path):
    """A run that failed after the first charge has the file, which another run takes up at no further cost."""
    done, _ = found_model(tmp_path)
    taken = {"labels_from": tmp_path / "a.labels.json"}
    single = [("job",), ("age",), ("paid",), ("since",), ("note",)]
    later, _ = found_model(cliques=single, **taken)
    assert later.model.domain == done.model.domain
    # Both together cost the account, and what the later tables cost beside it.
    whole, rest = done.release.discovery.described.whole, later.release.cost
    pooled = dpgm.learn([done.release, later.release]).model
    assert pooled.cost == whole + rest and str(pooled.cost) in pooled.release.guarantee()
    with pytest.raises(BudgetError, match="laplace"):  # and not after the labels were taken up
        found_model(cliques=single, mechanism="laplace", **taken)
    with pytest.raises(DomainError):
        other = Domain.from_dict({"attributes": {"job": {"private": True, "keep": 9}}})
        found_model(cliques=[("job",)], domain=other, **taken)


def test_columns_of_any_type_are_found_in_one_charge(tmp_path):
    """Types, ranges and labels; two ledger entries; files that read back; what one person has appears nowhere."""
    book, budget = ledger(tmp_path, ANY_BUDGET, person="id", rows_per_person=2), ANY_BUDGET
    done, declared = found_model(tmp_path, ledger=book)
    found = done.release.discovery
    kinds = {one.name: one.values.kind for one in done.model.domain}
    assert kinds == {"job": "text", "age": "integer", "paid": "number", "since": "date", "note": "text"}
    domain = done.model.domain
    assert set(domain["job"].labels) == {"cook", "pilot", "other", "missing"}
    assert domain["note"].labels == ("other", "missing")
    assert domain["since"].values.format == "%d.%m.%Y" and domain["paid"].matching.decimal == ","
    assert 16 in domain["age"].edges[:4] and 85 < domain["age"].edges[-1] <= 127
    first, second = book.history()
    assert first.cost.delta == Fraction("9e-6") and first.cost.epsilon < 3
    assert first.cost + second.cost == budget == found.described.whole
    # The release states its mu, which is in one account with the search.
    assert done.release.cost.kind == "gdp" and done.release.cost <= found.described.tables
    assert total_cost([done.release]) == budget
    more = evolve(done.release, cost=Budget("gdp", mu_squared=2 * found.described.tables.mu_squared))
    with pytest.raises(BudgetError, match="state a conversion delta"):
        total_cost([more])
    assert first.note.startswith("types, ranges and labels of 'job', 'age'") and first.cost == found.cost
    assert done.model.cost == budget
    assert "but for the types, ranges and labels of 'job', 'age', 'paid', 'since' and 'note', which were found" in (
        done.model.guarantee()
    )
    again = dpgm.load_release(tmp_path / "a.release.dpgm")
    assert again.discovery == found == load_discovery(tmp_path / "a.labels.json")
    assert Domain.from_dict(found.domain(declared).to_dict()) == domain
    texts = repr(done.model.sample(300, form="texts").to_pylist())
    for file in tmp_path.iterdir():
        assert RARE.encode() not in file.read_bytes()
    assert RARE not in texts and "123456" not in texts and "123456" not in json.dumps(found.to_dict())
    assert "free text" not in texts


def test_the_default_workload_is_that_of_what_was_found():
    """Sets of three too, which are too large with as many labels as each column may have; a stated one is as stated."""
    table, domain = any_type()
    settings = {"terms": PERSONS, "randomness": SeededRandomness(5)}
    default = dpgm.fit(table, "mst", ANY_BUDGET, workload=domain, **settings).release.session.workload
    assert max(map(len, dpgm.Workload.default(with_placeholders(domain)).candidates)) == 2
    assert max(map(len, default.candidates)) == 3 and default.domain["job"].size == 4
    stated = dpgm.Workload.all(domain, order=2)
    asked = dpgm.fit(table, "mst", ANY_BUDGET, workload=stated, **settings).release.session.workload
    assert asked.candidates == dpgm.Workload.all(with_placeholders(domain), order=2).candidates


def test_several_payments_of_one_account_are_one_charge(tmp_path):
    """The first pays for all tables; a larger mu is not of the account, and has no such price."""
    found = found_model()[0].release.discovery
    book = ledger(tmp_path, ANY_BUDGET, person="id", rows_per_person=2)
    table, declared = any_type()
    structure, tables = Structure(found.domain(declared), [("job", "age"), ("paid",)]), found.described.tables
    more = {"ledger": book, "discovery": found, "randomness": SeededRandomness(1), "terms": PERSONS}
    curator = LiveCurator(as_source(table), structure, dpgm.make("mechanism", "gaussian"), budget=tables, **more)
    curator.release(budget=tables * Fraction(1, 4), cliques=[("paid",)])
    curator.release()
    with pytest.raises(dpgm.Overspent):
        curator.release(budget=tables * Fraction(1, 4))
    (entry,) = book.history()
    assert entry.cost == found.described.whole - found.described.budget
    assert [book.entry_of(one.provenance) for one in curator.released] == [entry, entry]
    assert total_cost(curator.released) == found.described.whole
    assert found.price_of_tables(2 * tables) is None


def test_a_run_that_finds_nothing_keeps_the_rest_of_its_budget(tmp_path):
    """Of 60 persons nothing comes out: the first charge is spent, the second is not made."""
    book, whole = ledger(tmp_path, Budget.approx(2, "1e-5")), Budget.approx(2, "1e-5")
    table, declared = any_type(60)
    structure = Structure(declared, [("job",), ("age",)])
    again = {"neighbours": "add-remove", "mechanism": "gaussian"}
    with pytest.raises(LearningFailed, match="nothing was found of the 5 columns of any type") as caught:
        dpgm.fit(table, structure, whole, ledger=book, save_release=tmp_path / "a.release.dpgm", **again)
    assert RARE not in str(caught.value) and caught.value.discovery.described.columns
    (spent,) = book.history()
    assert spent.cost.epsilon < 1 and spent.cost.delta == Fraction("9e-6")
    with pytest.raises(LearningFailed, match="nothing was found"):
        dpgm.fit(table, structure, whole, ledger=book, labels_from=tmp_path / "a.labels.json", **again)
    # Beside a column that is described the run goes on.
    described = Domain.from_dict({"attributes": {"job": {"private": True}, "id": {"labels": ["p1", "p2"]}}})
    some = dpgm.fit(table, Structure(described, [("job", "id")]), whole, randomness=SeededRandomness(1), **again)
    assert some.model.domain["job"].labels == ("other", "missing")


@pytest.fixture(scope="module")
def found_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("found")
    found_model(folder)
    return (folder / "a.labels.json").read_text()


def test_a_file_of_found_columns_stays_what_it_is_under_other_rules(tmp_path, found_file, monkeypatch):
    """Its domain is that of the run that made it, whatever a later version would conclude, search or count."""
    path = tmp_path / "a.labels.json"
    path.write_text(found_file)
    before = load_discovery(path)
    for module, rule in (("domain.attribute", "table_of"), ("releases.labels", "cells_to_count")):
        monkeypatch.setattr(f"dpgm_core.{module}.{rule}", lambda *_: {"labels": ["other rules"]})
    after = load_discovery(path)
    assert after.attributes == before.attributes and after.to_dict() == before.to_dict()
    assert {one.name: one.to_dict() for one in after.attributes.values()} == {
        one["column"]: one["attribute"] for one in json.loads(found_file)["discovery"]["described"]["columns"]
    }
    assert after.described.noise == before.described.noise and before.described.noise.celled > 0


def test_parts_of_cells_are_paid_for_and_read_back(tmp_path):
    """Degrees, all in one cell, have parts of cells: another count of each person, which the file states."""
    table = pa.table({"east": [f"{151.2 + 0.05 * math.sin(at):.6f}" for at in range(4000)]})
    domain = Domain.from_dict({"attributes": {"east": {"private": True}}})
    settings = {"save_release": tmp_path / "a.release.dpgm", "terms": PLAIN, "randomness": SeededRandomness(5)}
    found = dpgm.fit(table, Structure(domain, [("east",)]), ANY_BUDGET, **settings).release.discovery.described
    assert found.noise.celled == 2 and {"2^7", "part"} <= set(found.columns[0].cells)
    assert sum(151.1 < edge < 151.3 for edge in found.columns[0].attribute.edges) >= 6
    assert load_discovery(tmp_path / "a.labels.json").described == found


@pytest.mark.parametrize(
    "edit",
    [
        {"variance": "1"},
        {"shapes_variance": "1"},
        {"threshold": 3},
        {"budget": {"epsilon": "1/100", "delta": "9e-6"}},
        {"whole": {"epsilon": "1", "delta": "1e-5"}},
        {"whole": {"epsilon": "30", "delta": "85e-7"}},
        {"tables": {"mu_squared": "16"}},
        {"tables": {"rho": "1/100"}},
        {"columns": []},
        lambda found: found["described"]["columns"][0]["labels"].append(["zz", 3]),
        lambda found: found["described"]["columns"][1]["shapes"].append(["integer 2^99", 3000]),
        lambda found: found["described"]["columns"][2]["labels"].append(["12,50", 4000]),
        lambda found: found["described"]["columns"][1].pop("cells"),
        lambda found: found["described"]["columns"][1]["cells"].update({"2^5": []}),
        lambda found: found["described"]["columns"][1]["cells"].update({"2^5": [0.5]}),
        lambda found: found["described"]["columns"][0].update(has_labels=False),
        lambda found: found["described"]["columns"][1].update(attribute={"private": True}),
        {"cells_variance": "1"},
        lambda found: found["described"]["columns"][0].update(declared={"labels": ["a"]}),
        lambda found: found.update(described={}),
    ],
)
def test_columns_that_no_release_finds_are_refused(tmp_path, found_file, edit):
    """A file whose noise would not be covered by its cost, or whose content no release has."""
    path = tmp_path / "a.labels.json"
    document = json.loads(found_file)
    if isinstance(edit, dict):
        document["discovery"]["described"].update(edit)
    else:
        edit(document["discovery"])
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError):
        load_discovery(path)
