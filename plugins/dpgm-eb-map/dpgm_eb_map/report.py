"""Certificate and notes of a finished fit."""

from __future__ import annotations

from dpgm_eb_map.run import Run

__all__ = ["certificate", "notes"]


def certificate(run: Run) -> dict[str, float]:
    """Return the distance of the last fit from its optimum, and counts of parameters and calls."""
    return {
        "distance": run.distance,
        "parameters": run.basis.size,
        "determined_parameters": float(run.scales.determined.sum()),
        "inference_calls": run.moments.calls,
        "curvature_products": run.moments.products,
    }


def notes(run: Run) -> list[str]:
    """Sentences for the user."""
    if not run.basis.size:
        return ["every clique has one cell: there is nothing to learn"]
    path = "dense" if run.dense else "diagonal"
    determined = float(run.scales.determined.sum())
    said = [f"{path} curvature: {run.basis.size:,} parameters, {determined:.1f} of them determined by the tables"]
    like, model = ("uniform ones", "uniform") if run.base is None else ("the base's", "the base")
    if run.base is not None:
        said.append(
            f"the prior is centred on a public model, {run.base.name}: where the tables tell nothing, the model is as "
            "that one; that it is public is its owner's word"
        )
    if run.empty and not run.of_records:
        nearly = "nearly " * run.scales.has_main_effects
        said.append(
            f"the tables hardly tell the records from {like}, so the model is {nearly}{model}; more budget, or "
            "fewer and smaller tables, would tell more"
        )
    if not run.scales_converged:
        said.append(f"the prior scales still moved after {run.settings.rounds} rounds; raise rounds")
    if run.distance > run.tolerance:
        said.append(
            f"the last fit ended {run.distance:.2g} posterior standard deviations from its optimum, above "
            f"tolerance = {run.tolerance:.2g}"
        )
    return said
