"""Published Bayesian networks and made-up ones: true tables, records drawn from them, and questions about them."""

from __future__ import annotations

import zlib
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from attrs import field, frozen

from benchmarks.cases.coded import Coded, counts
from dpgm.interop.bif import read_bif
from dpgm_core import Array, Clique, Dag, Domain, FloatArray, IntArray, Model
from dpgm_core.models.cpds import cpds_of

#: Networks that need no file, and how many attributes they have.
MADE = "made"
GENERATED = {MADE: 8, "made20": 20}
QUESTIONS = 30
#: Mixed into each row of every learned table: a divergence is infinite where the truth has mass and a model has none.
SMOOTHING = 1e-4


@frozen
class Question:
    """P(target | evidence), evidence: attribute -> code, as a record of the truth has it."""

    target: str
    evidence: dict[str, int]


@frozen(kw_only=True, eq=False)
class Network:
    """name: of the file. dag: public. truth: attribute -> P(attribute | parents), axes of the family."""

    name: str
    dag: Dag
    truth: dict[str, FloatArray] = field(repr=False)

    @cached_property
    def model(self) -> Model:
        """The truth as a model."""
        return Model.from_cpds(self.dag, self.truth)

    @cached_property
    def parents(self) -> dict[str, FloatArray]:
        """Attribute -> the true joint probability of its parents' states."""
        joints = self.model.marginals_of(self.dag.families)
        return {family[0]: joints[family].sum(axis=0) for family in self.dag.families}

    @cached_property
    def alone(self) -> dict[Clique, FloatArray]:
        """The true marginals of single attributes."""
        return dict(self.model.marginals_of([(name,) for name in self.dag.domain.names]))

    @cached_property
    def questions(self) -> list[tuple[Question, FloatArray]]:
        """The same for all methods and draws, with the true answers."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), 7])
        people = self._drawn(QUESTIONS, rng)
        found = []
        for person in people:
            target, *given = (str(name) for name in rng.choice(self.dag.domain.names, size=3, replace=False))
            asked = Question(target, {name: int(person[self.dag.domain.names.index(name)]) for name in given})
            found.append((asked, self.model.marginal((target,), given=asked.evidence)))
        return found

    def records(self, count: int, seed: int) -> IntArray:
        """Codes, (count, attributes), drawn attribute by attribute, parents first; not the generator of models."""
        return self._drawn(count, np.random.default_rng([zlib.crc32(self.name.encode()), seed]))

    def _drawn(self, count: int, rng: np.random.Generator) -> IntArray:
        names = self.dag.domain.names
        codes = np.zeros((count, len(names)), dtype=np.int64)
        for name in self.dag.order:
            table = self.truth[name]
            edges = np.cumsum(table, axis=0)[:-1].reshape(len(table) - 1, -1)
            rows = np.zeros(count, dtype=np.int64)
            for parent in self.dag.parents[name]:
                rows = rows * self.dag.domain[parent].size + codes[:, names.index(parent)]
            codes[:, names.index(name)] = (rng.random(count) >= edges[:, rows]).sum(axis=0)
        return codes

    def divergence(self, tables: dict[str, FloatArray]) -> float:
        """KL(truth || network of these tables), nats, after the same row smoothing for all.

        The sum over attributes and parents' states u of p(u) KL(p(. | u), q(. | u)).
        """
        whole = 0.0
        for name, table in row_smoothed(tables).items():
            true = self.truth[name]
            there = true > 0
            logs = np.zeros(true.shape)
            logs[there] = np.log(true[there] / table[there])
            whole += float(np.sum(self.parents[name] * (true * logs).sum(axis=0)))
        return whole

    def off_the_records(self, tables: dict[str, FloatArray], records: Array) -> float:
        """Mean over all rows with at least one record of sum_x |q(x | u) - C(x, u) / C(u)|, rows counting the same."""
        distances = []
        for name, joint in family_counts(self.dag, records).items():
            seen = joint.sum(axis=0) > 0
            exact = cpds_of({name: joint})[0][name]
            distances.append(np.abs(tables[name] - exact).sum(axis=0)[seen].reshape(-1))
        return float(np.concatenate(distances).mean())

    def answers_off(self, tables: dict[str, FloatArray]) -> dict[str, float]:
        """`alone`: mean L1 to the true marginals of single attributes. `asked`: to the true answers to the questions.
        `map`: how much less likely, in nats, the learned most probable record with that evidence is than the true one.
        """
        learned = Model.from_cpds(self.dag, row_smoothed(tables))
        alone = learned.marginals_of(list(self.alone))
        ones = [float(np.abs(alone[one] - true).sum()) for one, true in self.alone.items()]
        asked = [
            float(np.abs(learned.marginal((one.target,), given=one.evidence) - true).sum())
            for one, true in self.questions
        ]
        lost = [self._lost(learned, one.evidence) for one, _ in self.questions]
        return {name: float(np.mean(of)) for name, of in (("alone", ones), ("asked", asked), ("map", lost))}

    def _lost(self, learned: Model, evidence: dict[str, int]) -> float:
        """Nats between the most probable records of the truth and of a model, both with this evidence, in the truth."""
        labels = {name: self.dag.domain[name].labels[code] for name, code in evidence.items()}
        return self._log_weight(self.model.map_assignment(labels)) - self._log_weight(learned.map_assignment(labels))

    def _log_weight(self, record: dict[str, str]) -> float:
        """Log-probability of a record, after the row smoothing, which keeps it finite."""
        domain = self.dag.domain
        codes = {name: domain[name].labels.index(label) for name, label in record.items()}
        smooth = self._smooth
        return sum(float(np.log(smooth[one[0]][tuple(codes[name] for name in one)])) for one in self.dag.families)

    @cached_property
    def _smooth(self) -> dict[str, FloatArray]:
        return row_smoothed(self.truth)


def family_counts(dag: Dag, records: Array) -> dict[str, FloatArray]:
    """Attribute -> exact counts of its family. NOT PRIVATE."""
    table = Coded(domain=dag.domain, codes=records)
    return {family[0]: counts(table, family).astype(np.float64) for family in dag.families}


def row_smoothed(tables: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """(1 - 1e-4) q + 1e-4 / labels, row by row."""
    return {name: (1 - SMOOTHING) * table + SMOOTHING / len(table) for name, table in tables.items()}


def there(folder: Path, name: str) -> bool:
    """Whether the network is here."""
    return name in GENERATED or (folder / f"{name}.bif").is_file()


@lru_cache(maxsize=8)
def network(folder: Path, name: str) -> Network:
    """`NAME.bif` of a folder, or a made-up one. Published rows are rounded: here they sum to 1. Raises DpgmError."""
    if name in GENERATED:
        return _made(name)
    structure, potentials = read_bif(folder / f"{name}.bif")
    dag = Dag.of(structure)
    return Network(name=name, dag=dag, truth=cpds_of({one[0]: np.exp(potentials[one]) for one in dag.families})[0])


def drawn_network(kind: str, size: int, seed: int) -> Network:
    """A random network: two parents each, as far as there are two before it.

    kind: "dirichlet" has two or three labels and rows of a Dirichlet distribution of .3; "parity" has binary
    attributes, of which half are the exclusive or of their parents in nine of ten records, the others a regression.
    """
    rng = np.random.default_rng([zlib.crc32(kind.encode()), size, seed])
    sizes = {f"x{place}": 2 if kind == "parity" else int(rng.integers(2, 4)) for place in range(size)}
    domain = Domain.from_sizes(sizes)
    parents = {
        child: tuple(str(one) for one in rng.choice(domain.names[:place], size=min(place, 2), replace=False))
        for place, child in enumerate(domain.names)
    }
    dag, tables = Dag(domain, parents), {}
    for child, above in dag.parents.items():
        shape = domain.shape(above)
        if kind == "dirichlet":
            tables[child] = np.moveaxis(rng.dirichlet(np.full(sizes[child], 0.3), size=shape), -1, 0)
            continue
        odd = np.indices(shape).sum(axis=0) % 2
        logits = sum((rng.normal() * at for at in np.indices(shape)), np.full(shape, rng.normal()))
        one = np.where(odd, 0.9, 0.1) if len(above) == 2 and rng.random() < 0.5 else 1 / (1 + np.exp(-logits))
        tables[child] = np.stack([1 - one, one])
    return Network(name=f"{kind}{size}-{seed}", dag=dag, truth=cpds_of(tables)[0])


def _made(name: str) -> Network:
    """Attributes of two to four labels, up to two parents, skewed tables."""
    rng = np.random.default_rng(1)
    sizes = {f"x{place}": int(rng.integers(2, 5)) for place in range(GENERATED[name])}
    domain = Domain.from_sizes(sizes)
    parents = {
        child: tuple(str(one) for one in rng.choice(domain.names[:place], size=min(place, 2), replace=False))
        for place, child in enumerate(domain.names)
    }
    dag = Dag(domain, parents)
    tables = {
        child: np.moveaxis(rng.dirichlet(np.full(sizes[child], 0.5), size=dag.domain.shape(above)), -1, 0)
        for child, above in dag.parents.items()
    }
    return Network(name=name, dag=dag, truth=cpds_of(tables)[0])
