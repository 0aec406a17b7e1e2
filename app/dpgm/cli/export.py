"""The command `dpgm export`, which writes a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm.cli.common import FILE, json_option, print_err, print_json, print_out, stamp
from dpgm_core.errors import DataError, OptionError

if TYPE_CHECKING:
    from dpgm_core._util.arrays import FloatArray
    from dpgm_core.models.model import Model
    from dpgm_core.structure.dag import Dag
    from dpgm_core.structure.tables import Tables

__all__ = ["export"]


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.option("--bif", type=FILE, help="The .bif file to write; MODEL must be a Bayesian network.")
@click.option("--uai", type=FILE, help="The .uai file to write; FILE.names is written too.")
@click.option(
    "--kind",
    type=click.Choice(["markov", "bayes"]),
    default="markov",
    show_default=True,
    help="Type that the .uai file states: any model, or a Bayesian network with the child last.",
)
@json_option
def export(model_file: Path, bif: Path | None, uai: Path | None, kind: str, as_json: bool) -> None:
    """Write MODEL for other programs, with its guarantee; only an older file of the same kind is replaced.

    Both files have all labels of the domain. Attributes that no release measured are written as the model has them,
    and named on stderr.
    """
    from dpgm.interop.bif import write_bif
    from dpgm.interop.uai import names_path, write_uai
    from dpgm.related import refuse_related
    from dpgm_core._util.files import BIF_FILE, NAMES_FILE, UAI_FILE, check_writable
    from dpgm_core.models.model_file import load_model
    from dpgm_core.releases.session import caveats_of, stamp_of

    if bif is None and uai is None:
        raise OptionError("nothing to write is named; give --bif OUT.bif, --uai OUT.uai or both")
    if uai is None and kind == "bayes":
        raise OptionError("--kind says what --uai writes; give --uai OUT.uai, or leave --kind out")
    for output, suffix in ((bif, ".bif"), (uai, ".uai")):
        if output is not None and output.suffix.lower() != suffix:
            raise OptionError(
                f"cannot write {output.name}: the name of what --{suffix[1:]} writes must end in {suffix}"
            )
    names = None if uai is None else names_path(uai)
    for place, replaces in ((bif, BIF_FILE), (uai, UAI_FILE), (names, NAMES_FILE)):
        if place is not None:
            check_writable(place, replaces)
    model = load_model(model_file).using(unmeasured="uniform")
    if bif is not None:
        refuse_related(model, "--bif is a network")
    facts = model.stamp()
    network = _network(model) if bif is not None or kind == "bayes" else None
    tables = None if uai is None else _families(model, network) if network and kind == "bayes" else model.expanded()
    if bif is not None and network is not None:
        write_bif(bif, *network, properties=_properties(facts))
    if uai is not None and tables is not None:
        write_uai(uai, tables.structure, tables, kind="BAYES" if kind == "bayes" else "MARKOV", stamp=facts)
    if as_json:
        files = {"bif": bif and str(bif), "uai": uai and str(uai), "names": names and str(names)}
        unmeasured = {"unmeasured": facts["unmeasured"], "unmeasured_as": facts["unmeasured_as"]}
        print_json({**files, "kind": uai and kind.upper(), **unmeasured, **stamp_of(model.releases, model.guarantee())})
        return
    stamp(model_file, caveats_of(model.releases))
    if model.unmeasured:
        print_err(
            f"dpgm: in the files as the model has them, as no release measured them: {', '.join(model.unmeasured)}"
        )
    if bif is not None:
        print_out(f"network: {bif}")
    if uai is not None:
        print_out(f"model:   {uai} ({kind.upper()}), names and guarantee in {names}")


def _network(model: Model) -> tuple[Dag, dict[str, FloatArray]]:
    """The graph and its tables, over all codes; of a model by hand it may be that a double cannot hold them."""
    from dpgm_core.models.networks import network_of

    dag, tables = network_of(model)
    for family in dag.families if model.coarse is model else ():
        lost = (tables[family[0]] == 0) & (model.potentials[family] > -float("inf"))
        if lost.any():
            raise DataError(
                f"a probability of {family[0]!r} is smaller than any double, and 0 would rule it out; --uai OUT.uai "
                "holds it"
            )
    return dag, tables


def _families(model: Model, network: tuple[Dag, dict[str, FloatArray]]) -> Tables:
    """The log-potentials of a network; the model's own, to the bit, where it has them over all codes."""
    from dpgm_core.models.cpds import log_cpds

    return model.potentials if model.coarse is model else log_cpds(*network)


def _properties(facts: dict[str, Any]) -> dict[str, str]:
    """What a BIF file says of the model it was written from: a text each, and none that is empty."""
    properties = {"dpgm": facts["dpgm"], "guarantee": facts["guarantee"], "conditions": "; ".join(facts["conditions"])}
    properties["unmeasured"] = ", ".join(facts["unmeasured"])
    return {key: text for key, text in properties.items() if text}
