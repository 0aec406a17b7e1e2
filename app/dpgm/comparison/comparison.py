"""Comparison of every subject with the first, matched by name and label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attrs import evolve

from dpgm.comparison.distances import against_model, differences, gaps
from dpgm.comparison.subjects import (
    Content,
    ModelSide,
    RecordsSide,
    Side,
    Synthetic,
    kind_of,
    read_subject,
    related_of,
    structure_of,
    subject_of,
)
from dpgm.comparison.values import Comparison, Difference, Gap, Overlap, Pair, Subject, matching
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import Related
from dpgm_core.errors import DomainError, InferenceError, OptionError, TooLarge
from dpgm_core.models.distribution import expectation, pieces_of
from dpgm_core.models.model import Model
from dpgm_core.models.queries import quote_names
from dpgm_core.pipeline.evaluation import kl_divergence
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique

__all__ = ["compare", "privacy_of"]


def compare(
    *subjects: Content | str | Path, names: Sequence[str] | None = None, domain: Domain | None = None
) -> Comparison:
    """Compare models, releases and synthetic files, each of the others with the first. Free in privacy.

    Parameters
    ----------
    *subjects : Model, NoisyTables, Synthetic, str or Path
        At least two, as objects or files (`read_subject`).
    names : sequence of str, optional
        Of the subjects; by default their files or numbers.
    domain : Domain, optional
        Of synthetic files, where no model or release is among the subjects.

    Raises
    ------
    OptionError
        Fewer than two subjects, one of them twice, a release against records, or records without a domain.
    DomainError
        Two subjects share no attribute that can be compared.

    Examples
    --------
    >>> from dpgm_core.structure import Structure
    >>> from dpgm_core.structure.tables import Tables
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> one, two = (Model(structure, Tables(structure, np.log([p, 1 - p]))) for p in (0.5, 0.25))
    >>> found = compare(one, two)
    >>> found.pairs[0].differences[0].total_variation, round(found.pairs[0].kl[0], 4)
    (0.25, 0.1438)
    """
    called = list(names or (str(one) if isinstance(one, (str, Path)) else f"#{n}" for n, one in enumerate(subjects, 1)))
    if len(subjects) < 2 or len(called) != len(subjects):
        raise OptionError(
            f"a comparison needs at least 2 subjects, each with a name; got {len(subjects)} and {len(called)} names"
        )
    _check_different(subjects, called)
    contents = [read_subject(one) if isinstance(one, (str, Path)) else one for one in subjects]
    shared_domain = domain or next(filter(None, map(_domain_of, contents)), None)
    related = next(filter(None, map(related_of, contents)), None)
    sides = [_side(one, shared_domain, name, related) for one, name in zip(contents, called, strict=True)]
    pairs = [
        _pair((called[0], contents[0], sides[0]), (name, content, side))
        for name, content, side in list(zip(called, contents, sides, strict=True))[1:]
    ]
    described = tuple(_subject(*one) for one in zip(called, contents, sides, strict=True))
    privacy = privacy_of([one.caveats for one in described]) + _trusted(contents, called)
    return Comparison(subjects=described, pairs=tuple(pairs), privacy=privacy)


def privacy_of(caveats: Sequence[Sequence[str]]) -> str:
    """Return the privacy statement of values computed from subjects with these caveats.

    >>> privacy_of([(), ()])
    'post-processing of releases, as private as they are'
    """
    distinct = dict.fromkeys(caveat for one in caveats for caveat in one)
    if not distinct:
        return "post-processing of releases, as private as they are"
    return f"post-processing of releases, and no more private than they are: {'; '.join(distinct)}"


def _trusted(contents: Sequence[Content], called: Sequence[str]) -> str:
    """Return a note that nothing proves records to be synthetic except their stamp."""
    drawn = [name for name, one in zip(called, contents, strict=True) if isinstance(one, Synthetic)]
    if not drawn:
        return ""
    are = "is synthetic is the word of its stamp" if len(drawn) == 1 else "are synthetic is the word of their stamps"
    return f"; that {quote_names(drawn)} {are}, which nothing proves: of real records all of this would be exact"


def _check_different(subjects: Sequence[object], called: Sequence[str]) -> None:
    """Refuse the same file or object twice: all its distances would be 0 and say nothing."""
    for at, one in enumerate(subjects):
        for number, before in enumerate(subjects[:at]):
            files = isinstance(one, (str, Path)) and isinstance(before, (str, Path)) and Path(one).exists()
            same = Path(str(one)).samefile(str(before)) if files and Path(str(before)).exists() else one is before
            if same or called[at] == called[number]:
                raise OptionError(f"{called[at]} and {called[number]} are the same; name two that may differ")


def _domain_of(content: Content) -> Domain | None:
    if isinstance(content, Model):
        return content.domain
    return None if isinstance(content, Synthetic) else content.structure.domain


def _side(content: Content, domain: Domain | None, name: str, related: Related | None) -> Side | None:
    """Return the side that answers about any table; None for a release."""
    if isinstance(content, Model):
        return ModelSide(model=content)
    if isinstance(content, NoisyTables):
        return None
    if domain is None:
        raise OptionError(
            f"{name} holds records, and nothing here says what labels their columns have; name the model they were "
            "drawn from first, or its domain: --domain FILE"
        )
    if (related is None) != (content.children is None):
        raise OptionError(
            f"{name} is one of two related tables, as the model or release beside it; name the folder of both"
            if related is not None
            else f"{name} is two related tables, which can be compared with their model alone; name it first"
        )
    return RecordsSide(content=content, whole=domain, related=related)


def _subject(name: str, content: Content, side: Side | None) -> Subject:
    """Its facts; of drawn records also how many there are, and of how many attributes."""
    subject = subject_of(name, content)
    if not isinstance(side, RecordsSide):
        return subject
    return evolve(subject, facts={**subject.facts, "records": side.records, "attributes": len(side.domain)})


def _pair(first: tuple[str, Content, Side | None], other: tuple[str, Content, Side | None]) -> Pair:
    """One comparison, as its two kinds can be compared."""
    contents, sides = _over_the_same_codes(first[1], other[1]), (first[2], other[2])
    if sorted(map(kind_of, contents)) == ["release", "synthetic"]:
        raise OptionError(
            f"{first[0]} and {other[0]} are a release and records, which only a model can be compared with; learn one "
            "from the release, at no cost: dpgm learn RELEASE"
        )
    domains = [_domain_of(one) or (side.domain if side else None) for one, side in zip(contents, sides, strict=True)]
    assert domains[0] is not None and domains[1] is not None  # what has no domain has a side
    unknown = list(dict.fromkeys(name for one in contents if isinstance(one, Model) for name in one.left_out))
    matched = matching(domains[0], domains[1], unknown=unknown)
    if not matched.shared:
        raise DomainError(_nothing_shared(first[0], other[0], matched))
    cliques, common, alone = _structures(contents)
    differing: list[Difference] = []
    far: list[Gap] = []
    kl, no_kl = None, None
    if isinstance(contents[0], NoisyTables) and isinstance(contents[1], NoisyTables):
        far, notes = gaps(contents[0], contents[1], matched)
    elif isinstance(contents[0], Model) and isinstance(contents[1], NoisyTables):
        differing, notes = against_model(contents[0], contents[1], matched, model_first=True)
    elif isinstance(contents[0], NoisyTables) and isinstance(contents[1], Model):
        differing, notes = against_model(contents[1], contents[0], matched, model_first=False)
    else:
        assert sides[0] is not None and sides[1] is not None  # only releases have none
        differing, notes = differences(sides[0], sides[1], matched, cliques)
    if isinstance(contents[0], Model) and isinstance(contents[1], Model):
        kl, no_kl = _kl(contents[0], contents[1], matched)
        if kl is not None and unknown:
            notes.append(f"the KL takes {quote_names(unknown)} as the models have them, as no release measured them")
    if any(isinstance(one, Synthetic) and one.children is not None for one in contents):
        notes.append(
            "roots are compared with their first child (first.), another one, drawn by the key, and the one before it "
            "(previous.); samples follow these last tables only as nearly as children drawn one after the other can"
        )
    return Pair(
        first=first[0],
        other=other[0],
        matching=matched,
        common=common,
        only_first=None if alone is None else alone[0],
        only_other=None if alone is None else alone[1],
        kl=kl,
        no_kl=no_kl,
        differences=tuple(differing),
        gaps=tuple(far),
        notes=tuple(notes),
    )


def _nothing_shared(first: str, other: str, overlap: Overlap) -> str:
    why = [f"{quote_names(list(overlap.labels))} have other labels"] if overlap.labels else []
    why += [f"of {quote_names(overlap.unmeasured)} nothing was measured"] if overlap.unmeasured else []
    why += [f"the one has {quote_names(overlap.only_first)}"] if overlap.only_first else []
    why += [f"the other {quote_names(overlap.only_other)}"] if overlap.only_other else []
    return f"{first} and {other} share no attribute with the same labels, so there is nothing to compare: " + "; ".join(
        why
    )


def _over_the_same_codes(first: Content, other: Content) -> tuple[Content, Content]:
    """A model and the release of a session that merged codes: both over the codes as they were merged."""
    if isinstance(first, Model) and isinstance(other, NoisyTables) and other.structure.domain == first.coarse.domain:
        return first.coarse, other
    if isinstance(other, Model) and isinstance(first, NoisyTables) and first.structure.domain == other.coarse.domain:
        return first, other.coarse
    return first, other


def _structures(
    contents: tuple[Content, Content],
) -> tuple[list[Clique], int | None, tuple[tuple[Clique, ...], tuple[Clique, ...]] | None]:
    """All cliques, and of two structures how many are common and which are in one alone, up to the order of names."""
    structures = [structure_of(one) for one in contents]
    cliques = [clique for one in structures if one is not None for clique in one.cliques]
    if structures[0] is None or structures[1] is None:
        return cliques, None, None
    ours, theirs = ({frozenset(clique): clique for clique in one.cliques if clique} for one in structures if one)
    alone = (
        tuple(ours[key] for key in ours if key not in theirs),
        tuple(theirs[key] for key in theirs if key not in ours),
    )
    return cliques, len(ours.keys() & theirs.keys()), alone


def _kl(first: Model, other: Model, matched: Overlap) -> tuple[tuple[float, float] | None, str | None]:
    """KL(first || other) and KL(other || first), where both are exact and over the same labels; or why not."""
    if set(matched.shared) | set(matched.unmeasured) != {*first.domain.names, *other.domain.names}:
        return None, "they are not over the same attributes and labels"
    if first.domain != other.domain and (first.domain.constraints or other.domain.constraints):
        return None, "their domains have constraints and are not the same"
    if first.latent or other.latent:
        return None, "a model with latent classes has none in closed form"
    try:
        if not (first.engine.exact and other.engine.exact):
            return None, "an engine that answers approximately has none"
        if first.domain == other.domain:
            return (kl_divergence(first, other), kl_divergence(other, first)), None
        back = matching(other.domain, first.domain)
        there = matching(first.domain, other.domain)
        return (_aligned_kl(first, other, back), _aligned_kl(other, first, there)), None
    except (TooLarge, InferenceError) as error:
        return None, str(error)


def _aligned_kl(one: Model, other: Model, back: Overlap) -> float:
    """KL(one || other) = log Z' - E_p[theta'] - H(p), the other's labels in another order; back: to that order."""
    pieces = pieces_of(other.expanded())
    cliques = list(dict.fromkeys(names for names, _ in pieces if names))
    answers = one.using(unmeasured="uniform").marginals_of(cliques)
    expected = math.fsum(
        expectation(back.aligned(names, answers[names]).reshape(-1), np.asarray(table).reshape(-1))
        if names
        else float(table)
        for names, table in pieces
    )
    return max(0.0, other.log_partition - expected - one.entropy())
