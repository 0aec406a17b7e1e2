"""dpgm select."""

from __future__ import annotations

from pathlib import Path

import click

from dpgm_core.cli.common import json_option, print_json, progress_bar, say, settings_option, stamp, validated_option
from dpgm_core.cli.outcome import labels_facts, print_chosen, print_labels, session_facts
from dpgm_core.cli.output import reserved
from dpgm_core.cli.run import opened_ledger, paid, say_remarks, say_where, selector_of, telling_what_is_kept

__all__ = ["select"]


@click.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@settings_option
@validated_option
@json_option
@click.pass_obj
def select(obj: dict[str, bool], spec: Path, settings: tuple[str, ...], validated: Path | None, as_json: bool) -> None:
    """Choose a structure for SPEC and release its noisy tables, to learn from later with `dpgm learn`.

    It is charged like a fit, and saved with every step. SPEC says `select` under [structure]; a [workload] says what
    the model is wanted for.
    """
    from dpgm_core.errors import OptionError
    from dpgm_core.pipeline import select as select_records
    from dpgm_core.releases.release import total_cost
    from dpgm_core.releases.stamps import caveats_of, stamp_of
    from dpgm_core.spec import load_spec

    run = load_spec(spec, settings, validated)
    if run.select is None:
        raise OptionError(
            f"spec {spec.name} names its cliques, so there is nothing to choose; run dpgm release, or say "
            "--set structure={select='auto'}"
        )
    with reserved(run) as (saved, _), opened_ledger(run) as ledger, progress_bar() as progress:
        say_remarks(run)
        with telling_what_is_kept():
            noisy, selection = select_records(
                run.data,
                run.select,
                run.budget,
                learner=run.learner,
                inference=run.inference,
                save_release=saved,
                ledger=ledger,
                progress=progress,
                **paid(run),
            )
        say_where(run, saved, [noisy])
        spent, left = total_cost([noisy]), None if ledger is None else ledger.remaining()
    if as_json:
        print_json(
            {
                "release": str(noisy.saved_as),
                "spent": spent.to_dict(),
                "left": None if left is None else left.to_dict(),
                "selector": selector_of(run),
                "structure": [list(clique) for clique in selection.structure.cliques],
                "notes": [*run.remarks, *selection.notes],
                "rounds": list(selection.trace),
                **session_facts([noisy]),
                **labels_facts([noisy]),
                "unmeasured": list(noisy.structure.untold),
                **stamp_of([noisy], noisy.guarantee()),
            }
        )
        return
    stamp(noisy.saved_as or saved, caveats_of([noisy]))
    say(f"release: {noisy.saved_as}")
    say(f"spent:   {spent}" + ("" if left is None else f"; left in the ledger: {left}"))
    print_labels([noisy])
    print_chosen(selection.structure, [noisy], verbose=obj["verbose"], selector=selector_of(run), notes=selection.notes)
    say()
    say(noisy.guarantee())
