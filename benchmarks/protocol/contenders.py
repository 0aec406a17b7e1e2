"""The methods that are compared on one data set: a function each, data set -> {label: kl, seconds and tuning}.

What is called "oracle" was tuned by the truth and can be had by nobody; it says what a rule could reach at best.
Seconds are CPU seconds of one process on one thread. An oracle's seconds are those of one fit at the tuning it chose,
without the search for it. KL(true || learned) is in nats.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec

import numpy as np
from attrs import evolve, field, frozen
from dpgm_cgm_em.weighting import score_bound
from dpgm_naive_mle.projection import targets

from benchmarks.peers.mbi_peer import mbi_kls, mbi_missing
from benchmarks.protocol.populations import Population
from benchmarks.protocol.references import independent_model, non_private_mle, random_estimator
from dpgm_core import FloatArray, NoisyTables, SeededRandomness, Tables, learn, make
from dpgm_core._util.progress import silent
from dpgm_core.learning import Likelihood, consistent

__all__ = ["METHODS", "PLAIN_ORACLES", "DataSet", "Method", "Results"]

Results = dict[str, dict[str, float]]

# The best of these is the "plain oracle" of a data set.
PLAIN_ORACLES = (
    "naive oracle",
    "ridge oracle",
    "consistent oracle",
    "cgm-em oracle",
    "soft-sign oracle",
    "one-shot oracle",
)

_BEYOND = 1.5  # a path ends when its KL has risen this far above its least, or has not fallen for long
# Steps of tau, and how many of each: fine where the noise is large, together 10.
_STEPS = ((0.02, 10), (0.05, 16), (0.1, 90))


@frozen(kw_only=True, eq=False)
class DataSet:
    """One truth, the exact tables of its records, and one release of them. seed: for methods that draw."""

    population: Population
    codes: np.ndarray
    counts: Tables
    release: NoisyTables
    epsilon: float
    seed: int


@frozen(kw_only=True)
class Method:
    """A function of a data set; `missing` says why it cannot run here, None if it can.

    serves: which (size of an attribute, records, epsilon, noise) it is meant for. draws: at most so many by size.
    family_draws: at most so many in a cell of the families, where neither of the two counts.
    """

    function: Callable[[DataSet], Results]
    missing: Callable[[], str | None] = lambda: None
    serves: Callable[[int, int, float, str], bool] = lambda size, records, epsilon, noise: True
    draws: dict[int, int] = field(factory=dict)
    family_draws: int = 0


def uniform(data: DataSet) -> Results:
    """The uniform model: what is known without any data."""
    return {"uniform": _timed(data, lambda: np.zeros(data.population.structure.cells))}


def independent(data: DataSet) -> Results:
    """Independent attributes, from the release's own margins."""
    return {"independent": _timed(data, lambda: independent_model(data.release))}


def random(data: DataSet) -> Results:
    """The MLE of random marginals."""
    population = data.population
    return {"random": _timed(data, lambda: random_estimator(population.engine, population.structure, data.seed))}


def non_private(data: DataSet) -> Results:
    """The MLE of the exact tables; the penalty keeps cells without records finite."""
    return {"non-private": _timed(data, lambda: non_private_mle(data.population.engine, data.counts, l2=1e-7))}


def learner(data: DataSet, *, label: str, name: str, **options: object) -> Results:
    """A learner as users get it."""
    tuning: dict[str, float] = {}

    def fit() -> FloatArray:
        done = learn(data.release, make("learner", name, **options), randomness=SeededRandomness(data.seed))
        tuning.update({key: value for key, value in done.certificate.items() if key in ("l2", "tau")})
        tuning["converged"] = float(done.converged)
        values: FloatArray = done.model.potentials.values
        return values

    return {label: _timed(data, fit) | tuning}


def ridge_path(data: DataSet, *, label: str, target: Callable[[NoisyTables], Tables]) -> Results:
    """Maximum likelihood at the best L2 penalty: half decades from the strongest on, then eighths around the best."""
    problem = Likelihood(data.population.engine, target(data.release), silent)
    nowhere = np.zeros(data.population.structure.cells)

    def fit(exponent: float, start: FloatArray, tolerance: float) -> FloatArray:
        return problem.minimise(start, 10.0**-exponent, tolerance, 2000)[0]

    found: dict[float, tuple[float, FloatArray]] = {}
    theta, kls = nowhere, []
    for exponent in np.arange(-1.5, 9, 0.5):
        theta = fit(exponent, theta, 1e-5)
        kls.append(data.population.kl(theta))
        found[exponent] = kls[-1], theta
        # It hardly moves at first, then falls, then hardly moves or rises.
        if len(kls) > 1 and (kls[-1] > kls[-2] or 0.9 * kls[0] > kls[-1] > 0.999 * kls[-2]):
            break
    for half in (0.25, 0.125):
        _, best = _least(found)
        for exponent in (best - half, best + half):
            theta = fit(exponent, found[best][1], 1e-5)
            found[exponent] = data.population.kl(theta), theta
    _, best = _least(found)
    return {label: _timed(data, lambda: fit(best, nowhere, 1e-6)) | {"l2": 10.0**-best}}


def em_path(data: DataSet, *, label: str, e_step: str, to_the_end: bool) -> Results:
    """EM from the uniform model: the best point on its path and, if wanted, its end at tau = 10."""
    infer = make("collective", e_step).compile(data.population.engine, data.release).infer
    bound = score_bound(data.release)
    theta, start = Tables.zeros(data.population.structure), None
    best, now = {"kl": math.inf}, {"kl": math.inf}
    tau = spent = 0.0
    for step in (length for length, count in _STEPS for _ in range(count)):
        before = time.process_time()
        start = infer(theta, evidence_weight=step / bound, start=start).multipliers
        theta = theta + start
        spent += time.process_time() - before
        tau += step
        now = {"kl": data.population.kl(theta.values), "seconds": spent, "tau": tau}
        best = min(best, now, key=lambda point: point["kl"])
        if not to_the_end and (now["kl"] > _BEYOND * best["kl"] or tau > 2 * best["tau"] + 0.5):
            break
    return {f"{label} oracle": best} | ({f"{label} converged": now} if to_the_end else {})


def one_shot(data: DataSet) -> Results:
    """max H(n) - tau |y - n|_1, one E-step from the uniform model, at the best tau: steps of 1.3, then of 1.07."""
    infer = make("collective", "collective-dual").compile(data.population.engine, data.release).infer
    bound, uniform = score_bound(data.release), Tables.zeros(data.population.structure)
    found: dict[float, tuple[float, Tables, float]] = {}

    def add(taus: Iterable[float], start: Tables | None) -> None:
        for tau in taus:
            before = time.process_time()
            start = infer(uniform, evidence_weight=tau / bound, start=start).multipliers
            found[tau] = data.population.kl(start.values), start, time.process_time() - before
            least, at = _least(found)
            if found[tau][0] > _BEYOND * least or tau > 3 * at:
                return

    add((0.02 * 1.3**power for power in range(26)), None)
    _, best = _least(found)
    add((best * 1.07**power for power in (-2, -1, 1, 2)), found[best][1])
    kl, best = _least(found)
    return {"one-shot oracle": {"kl": kl, "seconds": found[best][2], "tau": best}}


def psgd(data: DataSet) -> Results:
    """DP-SGD at the best of three sampling rates and four learning rates; it sees the records, and draws its noise."""
    from benchmarks.protocol.dp_sgd import curator, learners
    from dpgm_core import InferenceError
    from dpgm_core.inference.junction_tree.engine import JunctionTree

    best = {"kl": math.inf}
    for name, one in learners().items():
        for rate in (0.1, 0.3, 1.0, 3.0) if name.startswith("DP-SGD") and "clipped" not in name else ():
            before = time.process_time()
            try:
                fit = evolve(one, learning_rate=rate).learn(
                    curator(data.codes, data.population, data.epsilon, data.seed),
                    JunctionTree(),
                    randomness=SeededRandomness(data.seed),
                    progress=silent,
                )
            except InferenceError:
                continue
            point = {
                "seconds": time.process_time() - before,
                "kl": data.population.kl(fit.model.potentials.values),
                "learning_rate": rate,
                "sampling_rate": one.sampling_rate,
            }
            best = min(best, point, key=lambda each: each["kl"])
    return {"psgd oracle": best}


def mbi(data: DataSet) -> Results:
    """mbi's mirror descent with L2 loss: at its default 1000 iterations, and at the best stop."""
    found = mbi_kls(data.population, data.release)
    return {"mbi": found["mbi"], "mbi oracle": found["mbi-oracle"]}


def _timed(data: DataSet, fit: Callable[[], FloatArray]) -> dict[str, float]:
    before = time.process_time()
    theta = fit()
    seconds = time.process_time() - before
    return {"kl": data.population.kl(theta), "seconds": seconds}


def _least(found: dict[float, tuple[float, ...]]) -> tuple[float, float]:
    """(least KL, where)."""
    at = min(found, key=lambda place: found[place][0])
    return found[at][0], at


def _agreed_first(release: NoisyTables) -> Tables:
    """The tables made to agree, then moved to the nearest ones without negative cells (and made to agree again)."""
    return targets(evolve(release, tables=consistent(release.tables, release.variances)), project=True)


def _laplace(size: int, records: int, epsilon: float, noise: str) -> bool:
    return noise == "laplace" and size <= 5


def _nowhere(size: int, records: int, epsilon: float, noise: str) -> bool:
    return False


def _few(size: int, records: int, epsilon: float, noise: str) -> bool:
    # Below, the paper has no DP-SGD either; its own noise is Gaussian whatever the release's is.
    return size == 5 and records <= 10**5 and epsilon >= 0.5 and noise == "laplace"


def _no_accounting() -> str | None:
    return None if find_spec("dp_accounting") else "dp-accounting is not installed (extra `accounting`)"


def _learner(label: str, name: str, **options: object) -> Method:
    return Method(function=partial(learner, label=label, name=name, **options))


def _ridge(label: str, target: Callable[[NoisyTables], Tables]) -> Method:
    return Method(function=partial(ridge_path, label=label, target=target))


def _em(e_step: str, label: str, *, to_the_end: bool) -> Method:
    return Method(function=partial(em_path, label=label, e_step=e_step, to_the_end=to_the_end))


# Draws by k, where a method is slow or varies little; the plain oracle is wanted at k = 5 only.
_SOME = {5: 2, 10: 1, 20: 1}
_ALL = 1000
_ONCE = {5: 1, 0: 1}
_FIVE = {10: 2, 20: 1}
_MOST = {5: 5, 10: 3, 20: 2}

METHODS: dict[str, Method] = {
    "uniform": Method(function=uniform, family_draws=_ALL),
    "independent": Method(function=independent, family_draws=_ALL),
    "random": Method(function=random, draws=_SOME),
    "non-private": Method(function=non_private, draws=_SOME),
    # Unpenalised maximum likelihood in all but name; it does not exist where the noise made cells negative, so that
    # the KL is that of 300 steps on the way to nowhere.
    "naive-tiny": evolve(_learner("naive tiny", "naive-mle", l2=1e-6, max_iterations=300), draws=_SOME),
    "naive-discrepancy": _learner("naive discrepancy", "naive-mle", l2="discrepancy"),
    "naive-auto": _learner("naive auto", "naive-mle", l2="auto"),
    "naive-path": evolve(_ridge("naive oracle", partial(targets, project=True)), family_draws=_ALL),
    "ridge-path": evolve(_ridge("ridge oracle", partial(targets, project=False)), draws=_SOME, family_draws=_ALL),
    "consistent-path": evolve(_ridge("consistent oracle", _agreed_first), draws=_FIVE),
    "em-plateau": _learner("cgm-em plateau", "cgm-em", tau=10.0, stop="plateau"),
    "em-auto": _learner("cgm-em auto", "cgm-em", tau="auto"),
    "em-path": _em("collective-dual", "cgm-em", to_the_end=True),
    # The same path as far as it falls, for the families.
    "em-fall": evolve(_em("collective-dual", "cgm-em", to_the_end=False), serves=_nowhere, family_draws=_ALL),
    "soft-path": evolve(_em("soft-sign", "soft-sign", to_the_end=False), draws=_FIVE),
    # Never the best, and slow where N is large. Under Gaussian noise it is the ridge on the raw tables.
    "one-shot": Method(function=one_shot, serves=_laplace, draws=_ONCE),
    "eb-map": evolve(_learner("eb-map", "eb-map"), draws={20: 2}, family_draws=_ALL),
    "psgd": Method(function=psgd, missing=_no_accounting, serves=_few, draws={5: 3}),
    "mbi": Method(function=mbi, missing=mbi_missing, draws=_MOST),
}
