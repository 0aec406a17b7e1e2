"""Cases side by side in one table are told apart again."""

from collections import Counter

import pyarrow as pa
from attrs import frozen

from dpgm_core import DataError, Domain
from dpgm_testing import Profile
from dpgm_testing.checks.source import CHECKS
from dpgm_testing.reductions import PartitionedSource
from dpgm_testing.sources import DOMAIN, Case, coded, example_table, expected_codes, features_of, together
from dpgm_testing.subjects import SourceSubject

QUICK = Profile(name="quick", examples=2, draws=20_000, shrink=False)


def subject_of(cls):
    return SourceSubject(cls, QUICK, "mine", lambda table, folder: cls(table=table), features_of(cls))


def test_cases_of_other_lengths_get_their_own_codes():
    """Rows that are there again, so that all are of one length, do not count."""
    short = Case(table=pa.table({"a": [1, 0, 1]}), domain=Domain.from_sizes({"a": 2}))
    cases = {"short": short, "long": Case(table=example_table(11))}
    table, domain, cliques = together(list(cases.values()))
    assert len(table) == 11 and len(domain) == 5 and cliques[0] == ("a_0",)
    found = {what: hits for what, _, hits in coded(subject_of(PartitionedSource), lambda profile: cases)}
    assert found == {"short": Counter({(1,): 2, (0,): 1}), "long": Counter(expected_codes(example_table(11), DOMAIN))}


@frozen(kw_only=True)
class NoDictionaries(PartitionedSource):
    """Refuses a type."""

    def pinned(self, reading):
        if any(pa.types.is_dictionary(one.type) for one in self.table.schema):
            raise DataError("no dictionaries")
        return super().pinned(reading)


def test_what_one_case_breaks_fails_its_own_check_alone():
    """The sum of all cases fails, and then only the check whose case is to blame."""
    subject, failed = subject_of(NoDictionaries), []
    for check in CHECKS:
        if check.needs in subject.capabilities:
            try:
                check.run(subject)
            except DataError:
                failed.append(check.name)
    assert failed == ["types-change-nothing"]
