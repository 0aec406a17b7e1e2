"""NIST's excerpts of the American Community Survey: the columns as published, and what the survey's rules exclude.

No value is read off the records of people. Labels and ranges are those of `data_dictionary.json`; areas and codes of
industries, of which it lists others or none, those of the schema that NIST publishes beside the table. The density of
an area is a public figure. The bins are written by hand: ages as the Census Bureau prints them, with the ages at which
questions of the survey begin, and incomes in brackets like those of its tables.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dpgm_core import Array, Domain, IntArray, Workload
from dpgm_core.domain import read_metadata
from dpgm_core.models.within_bins import decoder
from dpgm_core.sources import as_source

#: The ten columns of SDNist's sample reports, whose feature set is called "demographic-focused".
TEN = ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE")
TABLE, DICTIONARY = "ma2019.csv", "data_dictionary.json"
#: What is not applicable.
NULL = "N"
_WEIGHTS = (1, 4, 7, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 250, 400, 9999)
#: The first value of each bin and the end of the last one, which belongs to it: POVPIP's 501 is a bin of its own.
EDGES: Mapping[str, tuple[float, ...]] = {
    "AGEP": (0, 3, 5, 10, 15, 16, *range(20, 90, 5), 99),
    "PINCP": (
        -9000, 0, 1, *range(5_000, 50_000, 5_000), 50_000, 60_000, 75_000, 100_000, 125_000, 150_000, 200_000, 300_000,
        1_341_000,
    ),
    "POVPIP": (*range(0, 500, 50), 501, 501.5),
    "PWGTP": _WEIGHTS,
    "WGTP": _WEIGHTS,
}  # fmt: skip
#: Columns of which nobody can say where the records lie, and their bins, a power of two, where these are private.
PRIVATE, BINS = ("PINCP", "PWGTP", "WGTP"), 16
#: The last code of each category of industries, 0 to 18, in the Census Bureau's list of 2019.
_LAST_INDUSTRIES = (
    290, 490, 690, 770, 3990, 4590, 5790, 6390, 6780, 7190, 7790, 7890, 8290, 8470, 8690, 9290, 9590, 9870, 9920,
)  # fmt: skip
#: Below this age the column is not applicable, from it on it is.
_FROM_AGE = {"MSP": 15, "PINCP": 15, "PINCP_DECILE": 15, "EDU": 3, "DREM": 5, "DPHY": 5}
#: Below this age the column is not applicable.
_NOT_BELOW_AGE = {"DVET": 15, "INDP": 15, "INDP_CAT": 15}


def acs_table(folder: Path, names: Sequence[str] = ()) -> pa.Table:
    """Return the records as texts, of these columns or of all."""
    path = folder / TABLE
    if not names:
        with path.open(encoding="utf-8") as file:
            names = file.readline().strip().split(",")
    types = dict.fromkeys(names, pa.string())
    convert = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False, include_columns=list(names))
    return pyarrow.csv.read_csv(path, convert_options=convert)


def acs_domain(folder: Path, names: Sequence[str] = (), *, private: bool = False) -> Domain:
    """Return the domain of these columns or of all. private: bins of incomes and weights are found in the records."""
    schema = (folder / TABLE).with_suffix(".json")
    tables = dict(read_metadata(schema, codebooks=[folder / DICTIONARY], schema_is_public=True).tables)
    for name, edges in EDGES.items():
        plain = {key: value for key, value in tables[name].items() if key not in ("min", "max", "decimals")}
        bins = {"bins": {"private": BINS}, "min": edges[0], "max": edges[-1]} if private and name in PRIVATE else {}
        tables[name] = plain | {"type": "integer", "bins": list(edges)} | bins
    tables["WGTP"] |= {"missing": NULL, "null_values": ["0"]}  # group quarters have no weight
    tables["PUMA"] = read_metadata(schema, schema_is_public=True).tables["PUMA"]  # the dictionary has all excerpts'
    density = _densities(folder)
    tables["DENSITY"] = {"labels": sorted(set(density.values())), "null_values": []}
    described = {name: tables[name] for name in (names or tables)}
    for one in Domain.from_dict({"attributes": described}):
        if not described[one.name]["null_values"] and one.private is None:  # never missing, and public
            described[one.name] = described[one.name] | {"unknown": one.labels[0]}
    domain = Domain.from_dict({"attributes": described})
    rules = {name: rule for name, rule in _rules(domain, density) if set(rule["columns"]) <= set(domain.names)}
    return Domain.from_dict({"attributes": described, "constraints": rules})


def encode(table: pa.Table, domain: Domain) -> Array:
    """Return codes of records, (records, columns)."""
    batches = as_source(table).batches(domain, domain.names)
    return np.concatenate([np.stack(batch, axis=1) for batch in batches])


def decode(codes: IntArray, domain: Domain, generator: np.random.Generator) -> pa.Table:
    """Return records as texts, as the excerpt has them, with numbers that are even inside their bins."""
    columns = {}
    for one, column in zip(domain, codes.T, strict=True):
        texts = decoder(one)
        places = None if texts.dist is None else texts.places(column, generator.random(len(column)))
        columns[one.name] = texts.texts(column, places)
    return as_published(pa.table(columns))


def as_published(table: pa.Table) -> pa.Table:
    """Return the texts of a sample as the excerpt has them: group quarters have the weight 0."""
    if "WGTP" not in table.column_names:
        return table
    weights = pc.if_else(pc.equal(table["WGTP"], NULL), "0", table["WGTP"])
    return table.set_column(table.column_names.index("WGTP"), "WGTP", weights)


def acs_workload(domain: Domain) -> Workload:
    """Return what SDNist's score is about: pairs of columns, by area where there is one; neither industry codes."""
    scored = [name for name in domain.names if name not in ("PUMA", "INDP")]
    area = ("PUMA",) if "PUMA" in domain.names else ()
    rest = [("INDP",)] if "INDP" in domain.names else []
    return Workload.of(domain, [*((*area, *pair) for pair in itertools.combinations(scored, 2)), *rest])


def _densities(folder: Path) -> dict[str, str]:
    """Return the published density of each area."""
    table = acs_table(folder, ("PUMA", "DENSITY"))
    return dict(zip(table["PUMA"].to_pylist(), table["DENSITY"].to_pylist(), strict=True))


def _rules(domain: Domain, density: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rules, each with its name; those of columns that the domain lacks too."""
    labels = {one.name: [label for label in one.labels if label != NULL] for one in domain}
    # The first age of each bin: no rule begins inside one.
    ages = list(zip(labels.get("AGEP", ()), EDGES["AGEP"], strict=False))
    for name, first in (_FROM_AGE | _NOT_BELOW_AGE).items():
        columns = ["AGEP", name]
        kinds = [[age, NULL if low < first else "*"] for age, low in ages]
        yield f"{name} by age", {"columns": columns, "possible": kinds}
        if name in _FROM_AGE:
            none = [[age, NULL] for age, low in ages if low >= first]
            yield f"{name} from age {first}", {"columns": columns, "impossible": none}
    for first, lowest in ((5, 5), (15, 12)):  # no diploma of a high school, no doctorate
        degrees = [[age, str(level)] for age, low in ages if low < first for level in range(lowest, 13)]
        yield f"degrees below {first}", {"columns": ["AGEP", "EDU"], "impossible": degrees}
    group_quarters = ("2", "3")
    for name, own in (("NOC", labels.get("NOC", ())), ("NPF", labels.get("NPF", ())), ("OWN_RENT", ("1", "2"))):
        elsewhere = {"NOC": [["1", NULL]], "OWN_RENT": [["1", "0"]]}.get(name, [])
        family = [[kind, label] for kind in group_quarters for label in own]
        yield f"{name} by housing", {"columns": ["HOUSING_TYPE", name], "impossible": family + elsewhere}
    weights = ["HOUSING_TYPE", "WGTP"]
    yield "WGTP by housing", {"columns": weights, "possible": [["1", "*"], ["2", NULL], ["3", NULL]]}
    yield "WGTP of houses", {"columns": weights, "impossible": [["1", NULL]]}
    if "PWGTP" in domain.undetermined:
        yield "PWGTP of all", {"columns": ["HOUSING_TYPE", "PWGTP"], "impossible": [["*", "missing"]]}
    yield "fewer children than family", {"columns": ["NOC", "NPF"], "order": "<"}
    industries = {code: str(bisect_left(_LAST_INDUSTRIES, int(code))) for code in labels.get("INDP", ())}
    yield "industries", {"columns": ["INDP", "INDP_CAT"], "map": industries}
    yield "densities", {"columns": ["PUMA", "DENSITY"], "map": dict(density)}
