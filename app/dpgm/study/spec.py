"""Studies as TOML files: like the spec of a run, with a truth in place of data, and lists of what is compared.

The spec of a run with a truth is a study too; its data and its ledger are ignored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dpgm.related import refuse_related
from dpgm.spec import check_known, domain_of, file_stem, is_related, read_plain, structure_of, table_of, text_of
from dpgm.study.study import NAMED, Study, generated_truth
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError
from dpgm_core.models.model import Model
from dpgm_core.models.model_file import load_model
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.session import caveats_of
from dpgm_core.structure.builders import read_singletons
from dpgm_core.structure.workload import Workload

__all__ = ["load_study"]

# What a study shares with a run's spec, and what it has of its own.
_TERMS = ("neighbours", "unit", "person", "rows_per_person", "contributions", "total")
_PARTS = ("mechanism", "learner", "inference", "budget", "split", "structure", "workload", "holdout")
_OWN = ("truth", "records", "repeat", "seed")
# What a run's spec says of real records and what they are charged: a study has no use for it.
_REAL = ("data", "ledger", "labels_from", "validated", "intervals", "simulation")
_TRUTH = ("model", "attributes", "labels", "structure", "potentials", "strength", "seed")


def load_study(
    path: str | Path,
    settings: Iterable[str] = (),
    *,
    truth: str | Path | None = None,
    instead: Mapping[str, Any] | None = None,
) -> Study:
    """Read the file of a study, or the spec of a run together with a truth.

    Opens no records and no ledger.

    Parameters
    ----------
    path : path
    settings : sequence of str
        `KEY.KEY=VALUE`, as for `--set`.
    truth : path, optional
        Model file to draw records from, in place of the truth in the file. Of the spec of a run, keys about real
        records are then ignored, and `Study.remarks` list them.
    instead : mapping, optional
        Keys of the file with other values, such as {"learner": ["eb-map", "cgm-em"], "repeat": 5}, and "selector" for
        selectors in addition to the named cliques.

    Raises
    ------
    OptionError
        Also for a file that names real records and no truth. Otherwise as `Study`.
    """
    path = Path(path)
    where = f"study {path.name}"
    plain = {**read_plain(path, settings), **(instead or {})}
    for key in ("selector", "select"):  # the latter as earlier versions had it
        if key in (instead or {}):
            plain["structure"] = {**plain.get("structure", {}), "selector": plain.pop(key)}
    if is_related(plain):
        raise OptionError(
            f"{where} is of two related tables, and a study draws records of one; write one of a flat table"
        )
    check_known(where, plain, ("name", "domain", *_TERMS, *_PARTS, "output", *_OWN, *_REAL))
    remarks = _unread(where, plain, has_model=truth is not None)
    stated = {"model": str(truth)} if truth is not None else _truth(where, plain["truth"])
    folder = path.parent
    model = _model(where, stated, plain, folder, Path() if truth is not None else folder)
    if "model" in stated:
        remarks += [f"{stated['model']}: {caveat}" for caveat in caveats_of(model.releases)]
    refuse_related(model, "a study is")
    domain = model.domain
    selectors, structure = _structure(plain.get("structure", {}))
    options: dict[str, Any] = {"truth": model, "terms": _terms(where, plain), "selectors": selectors}
    if structure:
        options["structure"], more = structure_of(where, structure, domain, folder)
        remarks += more
    workload = Workload.from_dict(domain, plain.get("workload", {}))
    options["workload"] = workload.with_singletons() if read_singletons(structure) else workload
    for key, name in (("learner", "learners"), ("inference", "inference"), ("mechanism", "mechanisms")):
        if key in plain:
            options[name] = plain[key]
    options |= {key: plain[key] for key in ("records", "repeat", "seed") if key in plain}
    if "records" not in plain and isinstance(plain.get("total"), (int, float)):
        options["records"] = round(plain["total"])
    if "budget" not in plain:
        raise OptionError(f"{where} does not say 'budget'; add one, or a list: budget = [{{ epsilon = 0.1 }}, ...]")
    holdout = table_of(where, "holdout", plain.get("holdout", {}), ("share",))
    return Study(
        **options,
        budgets=[one for each in _listed(plain["budget"]) for one in _spread(each)],
        split={"tables": plain.get("split", "even"), "holdout": holdout.get("share", 0)},
        name=file_stem(where, plain.get("name", path.stem)),
        output=_output(where, plain, folder, path.stem),
        remarks=remarks,
    )


def _unread(where: str, plain: Mapping[str, Any], *, has_model: bool) -> list[str]:
    """Refuse a study of real records; of a run's spec with a truth beside it, say what is left alone."""
    real = [key for key in _REAL if key in plain]
    if not has_model and "truth" not in plain:
        what = "names data of real rows, and a study never reads those" if "data" in plain else "names no truth"
        raise OptionError(
            f"{where} {what}: it draws its records from a model; name one that was learned, as in --truth "
            "out/health.dpgm, or describe one in [truth], as in attributes = 6, labels = 3, structure = 'chain'"
        )
    if not has_model and real:
        raise OptionError(
            f"{where} has a truth and also {' and '.join(real)}, which {'is' if len(real) == 1 else 'are'} about real "
            "records: a study reads none and charges nothing; leave it out"
        )
    left = [key for key in real if key in ("data", "ledger")]
    return [f"{' and '.join(left)} of {where[6:]} left alone: records are drawn from the truth"] if left else []


def _truth(where: str, plain: object) -> Mapping[str, Any]:
    if isinstance(plain, str):
        return {"model": text_of(where, "truth", plain)}
    table = table_of(where, "truth", plain, _TRUTH)
    other = next((key for key in table if key != "model"), None)
    if "model" in table and other is not None:
        raise OptionError(f"{where}: [truth] has both model and {other}; a model is a whole truth, so leave one out")
    return table


def _model(where: str, truth: Mapping[str, Any], plain: Mapping[str, Any], folder: Path, model_folder: Path) -> Model:
    """The truth; of a model file, held against the spec's domain."""
    domain = domain_of(where, plain["domain"], folder)[0] if "domain" in plain else None
    if "model" not in truth:
        return generated_truth(
            _made_up(where, truth, domain),
            truth.get("structure", "chain"),
            **{key: truth[key] for key in ("potentials", "strength", "seed") if key in truth},
        )
    model = load_model(model_folder / text_of(where, "truth.model", truth["model"]))
    known = domain is None or domain.undetermined or _labels(domain) == _labels(model.domain)
    if not known:
        raise OptionError(
            f"the truth {truth['model']} has other attributes or labels than the domain of {where[6:]}; name a model "
            "of that domain, or leave the domain out"
        )
    return model


def _labels(domain: Domain) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.name, tuple(one.labels)) for one in domain]


def _made_up(where: str, truth: Mapping[str, Any], domain: Domain | None) -> Domain:
    """The attributes of a truth that is made up: the spec's own, or so many with so many labels."""
    if domain is not None:
        if "attributes" in truth or "labels" in truth:
            raise OptionError(f"{where} has a domain and also attributes or labels of its truth; leave one out")
        return domain
    names, labels = truth.get("attributes"), truth.get("labels", 2)
    if isinstance(names, int) and not isinstance(names, bool) and 1 <= names <= 10_000:
        names = [f"x{number}" for number in range(1, names + 1)]
    if not isinstance(names, list) or not names:
        raise OptionError(
            f"{where}: [truth] needs model = 'FILE', or attributes = 6 or a list of names; got {names!r:.80}"
        )
    sizes = labels if isinstance(labels, list) else [labels] * len(names)
    if len(sizes) != len(names):
        raise OptionError(f"{where}: [truth] has {len(names)} attributes and {len(sizes)} numbers of labels")
    return Domain.from_sizes(dict(zip(names, sizes, strict=True)))


def _structure(plain: object) -> tuple[Any, Any]:
    """The selectors, and what is left of [structure]: the cliques that are named."""
    if not isinstance(plain, Mapping) or "selector" not in plain:
        return NAMED, plain
    return plain["selector"], {key: value for key, value in plain.items() if key != "selector"}


def _terms(where: str, plain: Mapping[str, Any]) -> Terms:
    if "neighbours" not in plain:
        raise OptionError(f"{where} does not say 'neighbours' ('add-remove' or 'replace-one'; there is no default)")
    total = plain.get("total", "estimated")
    return Terms(
        neighbours=plain["neighbours"],
        unit=plain.get("unit"),
        person=plain.get("person"),
        rows_per_person=plain.get("rows_per_person", 1),
        contributions=Contributions.parse(plain["contributions"]) if "contributions" in plain else None,
        # What an owner declares of real records is known of those that are drawn.
        total=total if isinstance(total, (str, bool)) else "public",
    )


def _listed(plain: Any) -> list[Any]:
    return list(plain) if isinstance(plain, list) else [plain]


def _spread(budget: Any) -> list[Any]:
    """{ epsilon = [0.1, 1], delta = 1e-6 } as a budget for each epsilon."""
    if not isinstance(budget, Mapping):
        return [budget]
    return [dict(zip(budget, values, strict=True)) for values in itertools.product(*map(_listed, budget.values()))]


def _output(where: str, plain: Mapping[str, Any], folder: Path, stem: str) -> Path:
    table = table_of(where, "output", plain.get("output", {}), ("folder",))
    return folder / text_of(where, "output.folder", table.get("folder", ".")) / f"{plain.get('name', stem)}.study"
