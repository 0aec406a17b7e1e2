"""What a file is that was named in the place of another kind: told by its name, never by what it holds."""

from __future__ import annotations

import shlex
from pathlib import Path

from dpgm_core.printable import printable

__all__ = ["hint_not_a_model", "hint_not_a_spec"]

_RECORDS = (
    ".csv",
    ".csv.gz",
    ".tsv",
    ".txt",
    ".parquet",
    ".arrow",
    ".feather",
    ".ipc",
    ".xlsx",
    ".xls",
    ".sav",
    ".dta",
)
_NETWORKS = (".bif", ".uai")


def hint_not_a_model(path: str | Path, expected: str) -> str | None:
    """What is wrong with naming this file where a model or release is wanted; None if its name does not tell.

    >>> hint_not_a_model("x.csv", "model file")
    'x.csv is a table of records by its name, and not a model file; a spec that names it makes one: dpgm fit SPEC'
    """
    name, quoted = Path(path).name.lower(), shlex.quote(str(path))
    if name.endswith(_RECORDS):
        return printable(
            f"{path} is a table of records by its name, and not a {expected}; a spec that names it makes one: dpgm fit "
            "SPEC"
        )
    if name.endswith(".toml"):
        return printable(
            f"{path} is a spec or domain by its name, and not a {expected}; a spec makes one, and says where: dpgm fit "
            f"{quoted}"
        )
    if name.endswith(".ledger"):
        return printable(
            f"{path} is a ledger by its name, and not a {expected}; show it with: dpgm ledger show {quoted}"
        )
    if name.endswith(_NETWORKS):
        return printable(
            f"{path} is a network of other programs by its name, and not a {expected}; dpgm export writes such files, "
            "and a spec can name the graph of one: [structure] bif = ..."
        )
    return None


def hint_not_a_spec(path: str | Path) -> str | None:
    """The same where a spec is wanted.

    >>> hint_not_a_spec("x.dpgm")
    'x.dpgm is a model or release by its name, and not a spec; show a model with: dpgm query x.dpgm'
    """
    name, quoted = Path(path).name.lower(), shlex.quote(str(path))
    if name.endswith(_RECORDS):
        return printable(
            f"{path} is a table of records by its name, and not a spec; one that names it is written with: dpgm init "
            f"{quoted}"
        )
    if name.endswith(".dpgm"):
        return printable(
            f"{path} is a model or release by its name, and not a spec; show a model with: dpgm query {quoted}"
        )
    if name.endswith(".ledger"):
        return printable(f"{path} is a ledger by its name, and not a spec; show it with: dpgm ledger show {quoted}")
    return None
