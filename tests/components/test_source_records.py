"""Records for a source come from its declaration, or it is told how to give some."""

from typing import Any

import attrs
import pyarrow as pa
import pytest
from attrs import frozen

from dpgm_core import Component, PluginError, Registry
from dpgm_core.errors import IncompatiblePlugin, PluginLoadError
from dpgm_core.sources.arrow import ArrowSource
from dpgm_testing import Profile, check_component
from dpgm_testing.runner import check_distribution
from dpgm_testing.sources import in_chunks

QUICK = Profile(name="quick", examples=2, draws=20_000, shrink=False)


@frozen(kw_only=True)
class Held:
    """A source of the right codes that needs records to be tested."""

    table: Any = attrs.field(eq=id, metadata={"help": "the records"})

    def batches(self, domain, columns):
        return ArrowSource(data=self.table).batches(domain, columns)


def holding(table, folder):
    return Held(table=table)


def other_class(table, folder):
    return ArrowSource(data=table)


def declared(records):
    """A registry that offers `Held`, with this function for records."""
    registry = Registry()
    component = Component(kind="source", name="held", target="a:B", summary="x", records=records)
    registry.add(component, Held, distribution="dpgm-held")
    return registry


def test_records_come_from_the_declaration():
    """With `records` the checks that need them run; core's own sources have no other door."""
    (report,) = check_distribution("dpgm-held", profile=QUICK, registry=declared(f"{__name__}:holding"))
    status = {one.check: one.status for one in report.outcomes}
    assert status["codes-are-the-domains"] == status["records-are-streamed"] == "passed"
    sources = [one.component for one in Registry.discover() if one.component.kind == "source"]
    assert all(one.records for one in sources if one.target.startswith("dpgm_core."))


def test_without_records_of_its_own_a_source_is_not_checked():
    """Checks that need records are skipped with a hint; records of another source class fail the checks."""
    report = check_component(Held, "source", profile=QUICK)
    assert report.ok and {one.status for one in report.outcomes} == {"passed", "skipped"}
    assert all("records='package.module:function'" in one.message for one in report.outcomes if one.message)
    report = check_component(Held, "source", profile=QUICK, records=other_class)
    message = {one.check: one.message for one in report.outcomes}["codes-are-the-domains"]
    assert not report.ok and "records made a ArrowSource, not a Held" in message


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("no_such_module:holding", PluginLoadError, "source 'held' of dpgm-held - cannot be imported"),
        (f"{__name__}:no_such_name", PluginLoadError, "AttributeError"),
        (f"{__name__}:QUICK", IncompatiblePlugin, "is a Profile, not a function"),
    ],
)
def test_records_that_cannot_be_had_are_an_error(target, error, words):
    """One sentence that names the declaration; no check runs."""
    with pytest.raises(error, match=words):
        list(check_distribution("dpgm-held", profile=QUICK, registry=declared(target)))


@pytest.mark.parametrize(
    ("kind", "records", "words"),
    [
        ("source", "module.function", "must be 'package.module:function'"),
        ("source", holding, "must be 'package.module:function'"),
        ("learner", "a:b", "a learner takes no records"),
    ],
)
def test_wrong_declarations_of_records_are_refused(kind, records, words):
    """Where the component is declared."""
    with pytest.raises(PluginError, match=words):
        Component(kind=kind, name="mine", target="a:B", summary="x", records=records)


def test_rows_are_cut_where_it_is_said():
    """Empty chunks stay, also at the ends, and rows keep their order."""
    table = pa.table({"a": pa.chunked_array([[1, 2], [3]]), "b": ["x", None, "z"]})
    cut = in_chunks(table, (0, 0, 1, 1, 3, 3))
    assert [len(chunk) for chunk in cut["b"].chunks] == [0, 1, 0, 2, 0]
    assert cut.to_pydict() == table.to_pydict()
