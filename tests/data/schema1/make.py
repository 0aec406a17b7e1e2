"""Wrote the files beside it, of schema 1: run it with dpgm 0.1.0 as of commit 021e21a, the last that wrote schema 1.

    git worktree add ../schema1 021e21a && cd ../schema1
    python .../tests/data/schema1/make.py .../tests/data/schema1

All records are generated here. Noise without a seed is secret, so another run writes other numbers. Imports stand
inside the function, because what they name is gone.
"""

import sys
import tempfile
from pathlib import Path


def main(folder: Path) -> None:
    """Write every file anew."""
    import numpy as np
    import pyarrow as pa

    import dpgm_core as dpgm
    from dpgm_core import Beliefs, Budget, Domain, SeededRandomness, Structure, Tables
    from dpgm_core.contributions import Contributions
    from dpgm_core.curator import LiveCurator
    from dpgm_core.model import Model
    from dpgm_core.registry import make
    from dpgm_core.rounds import ClippedScore
    from dpgm_core.sources import as_source

    generator = np.random.default_rng(11)
    domain = Domain.from_dict(
        {"a": {"labels": ["no", "yes"], "unknown": "no"}, "b": {"labels": ["low", "mid", "high"], "unknown": "low"}}
    )
    structure = Structure(domain, [("a", "b"), ("b",)])
    tied = Structure(domain, [("b",)], tied=[[("a", "b")]])
    codes = np.stack([generator.integers(0, 2, 60), generator.integers(0, 3, 60)], axis=1)
    persons = pa.table(
        {
            "who": [f"p{number // 3}" for number in range(60)],
            "a": [domain["a"].labels[code] for code in codes[:, 0]],
            "b": [domain["b"].labels[code] for code in codes[:, 1]],
        }
    )
    one, add = Budget.pure(1), {"neighbours": "add-remove"}
    several = {"person": "who", "rows_per_person": 3}
    weights = Contributions(per="clique", grid=60)
    textbook = {"name": "laplace", "exact": False, "allow_unsafe": True}
    seeded = {"randomness": SeededRandomness(1)}

    asked = {
        "plain": (codes, structure, one, "laplace", add),
        "replace-one": (codes, structure, one, "laplace", {"neighbours": "replace-one"}),
        "gaussian": (codes, structure, Budget.zcdp("1/3"), "gaussian", add),
        "gaussian-approx": (codes, structure, Budget.approx(1, "1e-6"), "gaussian", add),
        "tied": (codes, tied, one, "laplace", add),
        "optimal": (codes, structure, one, "laplace", {**add, "split": "optimal"}),
        "public-total": (codes, structure, one, "laplace", {**add, "total": "public"}),
        "public-total-covered": (codes, structure, one, "laplace", {"neighbours": "replace-one", "total": "public"}),
        "declared-total": (codes, structure, one, "laplace", {**add, "total": 60}),
        "unit": (codes, structure, one, "laplace", {**add, "unit": "one visit"}),
        "persons": (persons, structure, one, "laplace", {**add, **several}),
        "persons-one-row": (persons, structure, one, "laplace", {**add, "person": "who"}),
        "persons-public-total": (
            persons, structure, one, "laplace", {"neighbours": "replace-one", "total": "public", **several}
        ),
        "contributions": (
            persons, structure, one, "laplace", {**add, **several, "contributions": weights}
        ),
        "contributions-empty": (
            persons, tied, Budget.zcdp(1), "gaussian",
            {**add, **several, "contributions": Contributions(per="group", grid=12, empty="low")},
        ),
        "seeded": (codes, structure, one, "laplace", {**add, **seeded}),
        "unsafe": (codes, structure, one, textbook, {**add, **seeded}),
    }  # fmt: skip
    for name, (records, over, budget, mechanism, more) in asked.items():
        dpgm.release(records, over, budget, mechanism, **more).save(folder / f"{name}.schema1")

    def curator(budget: Budget, mechanism: object = "laplace", **more: object) -> LiveCurator:
        return LiveCurator(as_source(codes), structure, make("mechanism", mechanism), budget=budget, **{**add, **more})

    shares = {("a", "b"): Budget.pure("3/4"), ("b",): Budget.pure("1/4")}
    curator(one).release(budget=shares).save(folder / "per-clique.schema1")
    with tempfile.TemporaryDirectory() as apart:
        ledger = dpgm.Ledger.create(
            Path(apart) / "l.ledger", name="census", budget=Budget.pure(5), neighbours="add-remove"
        )
        curator(one, ledger=ledger).release().save(folder / "ledger.schema1")
    mu = Beliefs(marginals=Tables(structure, np.full(structure.cells, 1 / 3)), log_partition=0.0)
    scores = {"clip": ClippedScore(norm="1/2", grid=64)}
    for name, budget, mechanism, rate, more in (
        ("pure", Budget.pure(2), "laplace", 0.25, {}),
        ("zcdp", Budget.zcdp(1), "gaussian", 1, {}),
        ("approx", Budget.approx(1, "1e-6"), "gaussian", 0.25, {}),
        ("clipped", Budget.approx(1, "1e-6"), "gaussian", 0.25, scores),
        ("clipped-pure", Budget.pure(2), "laplace", 1, scores),
    ):
        known = {"total": 60.0} if more else {}
        with curator(budget, mechanism, **known).rounds(5, sampling_rate=rate, **more) as rounds:
            rounds.next(mu if more else None)
            rounds.next(mu if more else None).save(folder / f"rounds-{name}.schema1")

    dpgm.fit(codes, structure, one, **add).model.save(folder / "model.schema1")
    simulated = dpgm.fit(codes, structure, one, **add, **seeded).model
    simulated.bootstrap(5, randomness=SeededRandomness(2)).save(folder / "model-replicates.schema1")
    dpgm.fit(
        codes,
        structure,
        Budget.approx(1, "1e-6"),
        "gaussian",
        {"name": "psgd", "epochs": 1, "sampling_rate": 0.25},
        total=60,
        **add,
    ).model.save(folder / "model-rounds.schema1")
    Model(structure, Tables(structure, np.log(np.full(structure.cells, 1 / 3))), provenance={"made": "by hand"}).save(
        folder / "model-without-release.schema1"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
