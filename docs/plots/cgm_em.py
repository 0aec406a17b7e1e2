"""The plot of docs/cgm-em.md: KL along tau for CGM-EM and along the penalty for naive MLE, at two noise levels.

python -m docs.plots.cgm_em        (from the root of a checkout; needs matplotlib, extra `plots`)
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.protocol.populations import Population, draw_release, path, structure_of
from dpgm_core import SeededRandomness, learn, make

RECORDS, SEED = 10**5, 1
PENALTIES = 10.0 ** np.arange(-1.5, -5.6, -0.5)


def panel(axes, population: Population, epsilon: float) -> None:
    """One noise level: both learners' paths, and where the defaults stop."""
    noisy = draw_release(population, RECORDS, epsilon, SEED)
    rows = list(path(population, noisy, make("collective", "collective-dual"), tau=6.0, step=0.1))
    taus, kls = [row[0] for row in rows], [row[1] for row in rows]
    axes.plot(taus, kls, color="C0", label="CGM-EM, by capacity tau (below)")
    stopped = learn(noisy, make("learner", "cgm-em"), randomness=SeededRandomness(SEED))
    axes.plot(
        stopped.certificate["tau"],
        population.kl(stopped.model.potentials.values),
        "o",
        color="C0",
        label="its own choice",
    )
    above = axes.twiny()
    fits = [learn(noisy, make("learner", "naive-mle", l2=float(l2), tolerance=1e-5)) for l2 in PENALTIES]
    naive = [population.kl(fit.model.potentials.values) for fit in fits]
    above.plot(PENALTIES, naive, color="C1", label="naive MLE, by penalty (above)")
    chosen = learn(noisy, make("learner", "naive-mle"), randomness=SeededRandomness(SEED))
    above.plot(
        chosen.certificate["l2"], population.kl(chosen.model.potentials.values), "s", color="C1", label="its own choice"
    )
    above.set_xscale("log")
    above.invert_xaxis()
    above.set_xlabel("l2")
    axes.set_yscale("log")
    axes.set_ylim(0.8 * min(*kls, *naive), 1.1 * kls[0])
    axes.set_xlabel("tau")
    axes.set_title(f"epsilon = {epsilon:g}")
    handles = [*axes.get_legend_handles_labels()[0], *above.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, fontsize=8, loc="upper center")


def main() -> None:
    """Write cgm_em.svg beside this file."""
    plt.rcParams |= {"svg.hashsalt": "dpgm", "svg.fonttype": "none"}  # the same picture is the same file
    population = Population.draw(structure_of("chain3", 5), 0)
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for axes, epsilon in zip(panels, (0.1, 1.0), strict=True):
        panel(axes, population, epsilon)
    panels[0].set_ylabel("KL(true || learned), nats")
    figure.savefig(Path(__file__).with_name("cgm_em.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
