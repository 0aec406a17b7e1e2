"""What every value shows of itself: text of at most three lines, and in a notebook markup that no label escapes."""

from html.parser import HTMLParser

import numpy as np
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm.comparison import compare
from dpgm_testing.strategies import budgets
from tests.fixtures import seeded

HOSTILE = "</td></table><script>alert('x')</script>\n\x1b[2J\u202e\"&"


class Balanced(HTMLParser):
    """Reads markup as a browser does, and remembers its elements and texts."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.texts: list[str] = []
        self.feed(markup)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Attributes are ours: no handler, no link."""
        self.open.append(tag)
        self.elements.add(tag)
        assert {name for name, _ in attrs} <= {"class", "role", "scope", "style"}

    def handle_endtag(self, tag: str) -> None:
        """Elements end in the order in which they began."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Texts, with what was escaped as it was."""
        self.texts.append(data)


OURS = {"div", "p", "strong", "table", "tbody", "thead", "tr", "th", "td"}


def look(value: object) -> str:
    """Hold what a value shows to the rules; the texts of its markup."""
    lines = [] if isinstance(value, np.ndarray) else repr(value).split("\n")  # numpy shortens its own
    assert len(lines) <= 3 and max(map(len, lines), default=0) <= 120 and all(line.isprintable() for line in lines)
    markup = value._repr_html_()
    read = Balanced(markup)
    assert read.elements <= OURS and len(markup) < 40_000
    assert all(text.isprintable() for text in read.texts)
    return " ".join(read.texts)


def values_over(domain: dpgm.Domain, seed: int) -> list[object]:
    """One of each, over all attributes of the domain."""
    structure = dpgm.Structure.chain(domain)
    budget, randomness = dpgm.Budget.pure("1/3"), dpgm.SeededRandomness(seed)
    terms = dpgm.Terms(neighbours="add-remove", unit=HOSTILE)
    codes = np.zeros((3, len(domain)), dtype=np.uint8)
    noisy = dpgm.release(codes, structure, budget, terms=terms, randomness=randomness)
    provenance = {"learner": {"name": HOSTILE}, "converged": False}
    model = dpgm.Model(structure, dpgm.Tables.zeros(structure), releases=[noisy], provenance=provenance)
    notes = [HOSTILE] * 50
    name = domain.names[0]
    answers = [model.marginal([name]), *([model.marginal(domain.names[:2])] if len(domain) > 1 else [])]
    share = evolve(
        dpgm.combine([np.full(domain[name].size, 0.5)] * 2, [np.zeros(domain[name].size)] * 2),
        names=(name,),
        labels=(domain[name].labels,),
        standing=HOSTILE,
    )
    return [
        domain, domain[name], structure, structure.describe(), budget, noisy, model, *answers, share,
        dpgm.Fit(model=model, converged=False, notes=notes, certificate={HOSTILE: 0.5}, releases=(noisy,)),
        dpgm.plan(structure, budget, terms=terms, records=10.0),
        dpgm.Selection(structure=structure, measure=dict.fromkeys(structure.cliques, 1.0), notes=notes),
        dpgm.SelectionPlan(shares={HOSTILE: budget}, deviation=1, detectable=2, candidates=3, limits={}, notes=notes),
        dpgm.Workload.all(domain, order=1),
        dpgm.Dag(domain, {}),
    ]  # fmt: skip


NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300), min_size=1, max_size=4)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NAMES, NAMES)
def test_whatever_names_and_labels_hold(names, labels):
    """Names and labels of any letters and lengths, and markup: each value keeps its lines and its elements."""
    names, labels = dict.fromkeys([*names, HOSTILE]), list(dict.fromkeys([*labels, HOSTILE]))
    domain = dpgm.Domain(dpgm.Attribute.of_labels(name, labels, unknown=labels[0]) for name in names)
    for value in values_over(domain, 1):
        look(value)


def test_of_any_size():
    """200 attributes, one of them of 1,000 labels: the texts stay as short, and say how many more there are."""
    sizes = {f"attribute number {number}": 2 for number in range(200)} | {"wide": 1000}
    domain = dpgm.Domain.from_sizes(sizes)
    # One inference over it is enough: answers are looked at above.
    structure = dpgm.Structure.chain(domain)
    model = dpgm.Model(structure, dpgm.Tables.zeros(structure))
    report = structure.describe()
    for value in (domain, domain["wide"], structure, report, model, dpgm.Fit(model=model), dpgm.Dag(domain, {})):
        told = look(value)
        assert "201" in told or "1,000" in told
    assert "... 980 more" in look(model.marginal("wide"))
    together = dpgm.Structure(domain, [domain.names])
    assert "10^63" in repr(together) and "10^63" in look(together)


def test_seeds_and_textbook_noise_are_stamped():
    """A release, its model, its answers and a plan say in red why they promise less; others do not."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    noisy = dpgm.release(np.zeros((5, 1), np.uint8), structure, dpgm.Budget.pure(1), **seeded(1))
    kept = evolve(noisy, private=True)
    unsafe = evolve(kept, unsafe="textbook noise")
    for release, stamps in ((noisy, "NOT PRIVATE"), (unsafe, "UNSAFE: textbook noise"), (kept, "")):
        model = dpgm.Model(structure, dpgm.Tables.zeros(structure), releases=[release]).with_replicates(
            np.zeros((2, 2))
        )
        for value in (release, model, dpgm.Fit(model=model), model.marginal("a"), model.intervals("a")):
            markup = value._repr_html_()
            assert ('role="note"' in markup) is bool(stamps) and stamps in markup
    plan = dpgm.plan(structure, dpgm.Budget.pure(1), neighbours="add-remove")
    assert "note" not in plan._repr_html_() and "UNSAFE: x" in evolve(plan, unsafe="x")._repr_html_()


def test_a_ledger_is_read_when_it_is_looked_at(tmp_path):
    """What is left and who spent it, newest first; a file that is gone is told, and its repr reads nothing."""
    budget = dpgm.Budget.pure(1)
    ledger = dpgm.Ledger.create(tmp_path / "a.ledger", name="<b>", budget=budget, neighbours="add-remove", unit="<i>")
    for number in range(25):
        ledger.charge(dpgm.Budget.pure("1/100"), note=f"<u>{number}")
    told = look(ledger)
    assert "left epsilon = 0.75" in told and "charges 25" in told and "... 5 more" in told
    assert told.index("<u>24") < told.index("<u>5") and "<u>4 " not in told
    assert len(repr(ledger.history()[0])) < 120
    (tmp_path / "a.ledger").unlink()
    assert "not read" in look(ledger)


def test_comparisons():
    """Two models side by side, and each pair: what sets them apart, and who is less private than it says."""
    structure = dpgm.Structure.chain(dpgm.Domain.from_sizes({HOSTILE: 2, "b": 2}))
    models = [
        dpgm.Model(structure, dpgm.Tables(structure, np.log(np.array(table))))
        for table in ([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1])
    ]
    found = compare(*models)
    assert "carries no release" in look(found) and "total variation" in look(found.pairs[0])
    assert repr(found) == "Comparison(#1: model, #2: model)"


@given(budgets())
def test_budgets_of_any_amount(budget):
    """Exact amounts of many digits are rounded."""
    assert str(budget) in look(budget)


def test_the_registry_lists_what_there_is():
    """Kinds, names and who offers them; what is broken, and why."""
    registry = dpgm.Registry(broken=[dpgm.Broken(distribution="bad", version="1", cause=HOSTILE)])
    registry.add(dpgm.Component(kind="source", name="codes", target="a.b:C", summary="<b>bold</b>"))
    told = look(registry)
    assert "codes" in told and "<b>bold</b>" in told and "bad" in told
