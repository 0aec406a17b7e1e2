"""Two related tables as one domain: structural zeros, copies of constraints, refusals."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from dpgm_core import Attribute, Domain, DomainError, Related
from dpgm_core.domain.constraints import Listed, Ordered
from tests.related import ABSENT, CHILDREN, ROOT, all_roots, pair_rows, small

AGES = {"labels": ["0", "1", "2"], "unknown": "0"}


def allowed(domain: Domain) -> set[tuple[int, ...]]:
    records = np.array(list(itertools.product(*(range(one.size) for one in domain))))
    wrong = np.zeros(len(records), bool)
    for rule in domain.rules:
        wrong |= rule.mask[tuple(records[:, domain.names.index(column)] for column in rule.columns)]
    return set(map(tuple, records[~wrong].tolist()))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_zeros_are_exact(most: int) -> None:
    pair = small(most).pair
    rows = {
        tuple(row[name] for name in pair.names)
        for root, children in all_roots(most)
        for row in pair_rows(root, children, most)
    }
    assert allowed(pair) == rows


def test_names_by_number_of_children() -> None:
    own, first, previous = ("age", "sex"), ("first.age", "first.sex"), ("previous.age", "previous.sex")
    assert small(1).pair.names == ("own", "size", *first)
    assert small(2).pair.names == ("own", "size", "position", *first, *own)
    assert small(4).pair.names == ("own", "size", "position", *first, *own, *previous)
    assert small(2).pair["position"].labels == ("none", "second")
    assert small(4).pair["size"].labels == ("0", "1", "2", "3", "4")


WORLD = {"attributes": {"age": AGES, "most": AGES}}
HOLDS: Mapping[str, tuple[dict[str, object], Callable[[int, int], bool]]] = {
    "impossible": ({"columns": ["age", "most"], "impossible": [["2", "*"]]}, lambda age, most: age != 2),
    "possible": ({"columns": ["age", "most"], "possible": [["0", "1"], ["2", "*"]]},
                 lambda age, most: (age, most) == (0, 1) or age == 2),
    "order": ({"columns": ["age", "most"], "order": "<"}, lambda age, most: age < most),
    "map": ({"columns": ["age", "most"], "map": {"0": "2", "1": "2", "2": "0"}},
            lambda age, most: most == (2, 2, 0)[age]),
}  # fmt: skip


@pytest.mark.parametrize("form", HOLDS)
def test_constraints_of_children_hold_for_each_of_them(form: str) -> None:
    """A constraint of the child table holds of the first child, this one and the previous one, and of no absent one."""
    stated, holds = HOLDS[form]
    children = Domain.from_dict({**WORLD, "constraints": {"x": stated}})
    plain, ruled = (Related(root=ROOT, children=one, key="id", max_children=3)
                    for one in (Domain.from_dict(WORLD), children))  # fmt: skip
    names = plain.pair.names

    def fits(record: tuple[int, ...]) -> bool:
        codes = dict(zip(names, record, strict=True))
        pairs = [(codes[slot + "age"], codes[slot + "most"]) for slot in ("first.", "", "previous.")]
        return all(holds(*pair) for pair in pairs if 3 not in pair)

    assert allowed(ruled.pair) == {record for record in allowed(plain.pair) if fits(record)}


def test_chain_of_orders_of_children_is_kept() -> None:
    """What only two orders together rule out is ruled out of each child."""
    bins = {name: {"bins": edges} for name, edges in (("a", [5, 10]), ("b", [0, 10]), ("c", [0, 5, 9]))}
    orders = {"one": {"columns": ["a", "b"], "order": "<="}, "two": {"columns": ["b", "c"], "order": "<="}}
    children = Domain.from_dict({"attributes": bins, "constraints": orders})
    pair = Related(root=ROOT, children=children, key="id", max_children=2).pair
    assert len(children.rules) == 3
    for slot in ("first.", ""):
        mask = pair.impossible((f"{slot}a", f"{slot}b", f"{slot}c"))
        assert mask is not None
        assert mask[0, 0, 0]
        assert not mask[0, 0, 1]


def test_constraints_across_tables() -> None:
    """About the first child it is stated of it, else of each other child; none of absent children."""
    across = (
        Listed(name="adult", columns=("first.age",), combinations=(("0",),)),
        Ordered(name="younger", columns=("age", "first.age")),
        Listed(name="owners", columns=("own", "sex"), combinations=(("1", "1"),)),
        Listed(name="small", columns=("own", "size"), combinations=(("1", "3"),)),
    )
    plain, ruled = small(3).pair, small(3, constraints=across).pair
    at = plain.names.index

    def fits(record: tuple[int, ...]) -> bool:
        own, size, first = (record[at(name)] for name in ("own", "size", "first.age"))
        others = [record[at(name)] for name in ("age", "previous.age")]
        sexes = [record[at(name)] for name in ("first.sex", "sex", "previous.sex")]
        younger = all(age <= first for age in others if ABSENT not in (age, first))
        return first != 0 and younger and not (own == 1 and 1 in sexes) and (own, size) != (1, 3)

    assert allowed(ruled) == {record for record in allowed(plain) if fits(record)}
    names = [one.name for one in ruled.constraints]
    assert [name for name in names if "younger" in name] == ["younger", "previous.younger"]
    assert "first.owners" in names


def test_json_round_trip() -> None:
    table = {"bins": [0, 18, 65], "unknown": "odd", "missing": "none given", "labels": ["young", "old"]}
    table_of_last = {"bins": [0.5, 2], "missing": "missing"}
    children = Domain.from_dict(
        {
            "attributes": {"age": table, "pay": table_of_last, "sex": {"labels": ["f", "M"], "case": False}},
            "constraints": {"x": {"columns": ["age", "sex"], "impossible": [["old", "M"]]}},
        }
    )
    for order, key in ((None, "id"), ("line", ("a", "b"))):
        one = Related(
            root=ROOT, children=children, key=key, max_children=3, order=order,
            constraints=[Listed(name="y", columns=("own", "first.sex"), combinations=(("1", "f"),))],
        )  # fmt: skip
        again = Related.from_dict(json.loads(json.dumps(one.to_dict())))
        assert again == one
        assert again.pair == one.pair
        assert Domain.from_dict(json.loads(json.dumps(one.pair.to_dict()))) == one.pair
        assert one.pair["previous.age"].labels == ("young", "old", "odd", "none given", "absent")
        assert one.pair["age"].edges == (0, 18, 65)


@pytest.mark.parametrize("key", ["max_children", "order", "constraints"])
def test_json_with_another_key_is_refused(key: str) -> None:
    plain = small(2).to_dict()
    for wrong in ({name: value for name, value in plain.items() if name != key}, {**plain, "more": 1}):
        with pytest.raises(DomainError, match="two related tables must state key, max_children, order, root"):
            Related.from_dict(wrong)


def of(**changes: object) -> Related:
    return Related(**({"root": ROOT, "children": CHILDREN, "key": "id", "max_children": 2} | changes))  # type: ignore[arg-type]


def labelled(*labels: str, **options: object) -> Domain:
    return Domain.from_dict({"attributes": {"msp": {"labels": list(labels), **options}}})


PRIVATE = Domain.from_dict({"attributes": {"pay": {"min": 0, "max": 9, "bins": {"private": 4}}}})
OPEN = Domain.from_dict({"attributes": {"job": {"labels": {"private": True, "keep": 4}}}})
WRONG = {
    "no r": ({"max_children": None},
             "max_children is missing: the number of children counted for each root must be known without the "
             "records; give it"),
    "r of 0": ({"max_children": 0}, "max_children must be a whole number from 1 to 1,000, got 0"),
    "r true": ({"max_children": True}, "max_children must be a whole number"),
    "r in words": ({"max_children": "auto"}, "max_children must be a whole number"),
    "a column twice": ({"children": Domain.from_sizes({"own": 2})},
                       "column 'own' is in both tables; rename one, as a model has one attribute of each name"),
    "size": ({"root": Domain.from_sizes({"size": 2})}, "column 'size' has a name that the model of two tables uses"),
    "position": ({"children": Domain.from_sizes({"position": 2})}, "column 'position' has a name"),
    "first": ({"root": Domain.from_sizes({"first.x": 2})}, "column 'first.x' has a name"),
    "previous": ({"children": Domain.from_sizes({"previous.x": 2})}, "column 'previous.x' has a name"),
    "absent": ({"children": labelled("x", "absent")},
               "column 'msp' has a label 'absent', which marks children that do not exist; rename it"),
    "Absent": ({"children": labelled("x", "Absent", case=False)}, "column 'msp' has a label 'absent'"),
    "any": ({"children": labelled("x", "*")}, "column 'msp' has a label '*', which means any label; rename it"),
    "many labels": ({"children": Domain.from_sizes({"zip": 2**17 + 1})}, "more than 131,072 labels together"),
    "a modelled key": ({"key": "own"}, "key 'own' is a column of the domain; a key is not modelled, remove it"),
    "a key named size": ({"key": ("size", "id")}, "key 'size' has the name of the number of children"),
    "a modelled child key": ({"key": ("id", "sex")}, "key 'sex' is a column of the domain"),
    "a third table": ({"key": {"root": "id", "children": "id", "visits": "id"}}, "a third table has no place here"),
    "three keys": ({"key": ("a", "b", "c")}, "a third table has no place here"),
    "no key": ({"key": None}, "key must name the column of the key in both tables"),
    "an empty key": ({"key": ""}, "key must name the column of the key in both tables"),
    "order by the key": ({"order": "id"}, "order 'id' is the key of the children"),
    "order by a column": ({"order": "age"}, "order 'age' is a column of the domain"),
    "order of no name": ({"order": 3}, "order must be the name of a column of the child table, got 3"),
    "private bins of children": ({"children": PRIVATE}, "column 'pay' has labels or bins that are found privately"),
    "private labels": ({"root": OPEN}, "column 'job' has labels or bins that are found privately"),
    "a list as the root": ({"root": ["own"]}, "root must be a Domain, got list"),
    "a constraint of no column": ({"constraints": [Listed(name="x", columns=("agee",), combinations=(("1",),))]},
                                  "constraint 'x' is about 'agee'; columns of the two tables, 'size' and first.COLUMN"),
    "a constraint of the previous": (
        {"constraints": [Listed(name="x", columns=("previous.age",), combinations=(("1",),))]}, "'previous.age'"),
    "a constraint of no label": ({"constraints": [Listed(name="x", columns=("sex",), combinations=(("7",),))]},
                                 "constraint 'x': sex has no label '7'"),
    "a constraint of private bins": (
        {"root": PRIVATE, "constraints": [Ordered(name="x", columns=("age", "pay"))]}, "about bins that are found"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    changes, message = WRONG[case]
    with pytest.raises(DomainError) as error:
        of(**changes)
    assert message in str(error.value)


def test_private_bins_of_root_columns_are_possible() -> None:
    assert of(root=PRIVATE).pair.undetermined == ("pay",)


def test_absent_is_a_setting_of_bins() -> None:
    """It is the last label, which no raw value gets; other columns list it."""
    plain = {"bins": [0, 1, 2], "absent": True}
    one = Attribute.from_dict("x", plain)
    assert (one.labels, one.code("absent"), one.to_dict()) == (("[0, 1)", "[1, 2]", "missing", "absent"), 2, plain)
    for wrong in ({"labels": ["x"], "absent": True}, {"bins": [0, 1], "absent": False}):
        with pytest.raises(DomainError, match="absent must be true, and goes with bins"):
            Attribute.from_dict("x", wrong)
