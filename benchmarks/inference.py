"""Exact marginals on a fixed structure: ours beside mbi and pyAgrum, alternating in one run on one thread.

    python -m benchmarks.inference [--smoke] [--mbi VENV] [--pyagrum VENV] [--models chain3-k10,...] [--json FILE]

Milliseconds per call, parameters changed on every call, fastest of many; the ratio is ours / fastest peer. `--only
curvature` measures second derivatives, ours alone, in inferences.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness.main import Measurement, choose, main
from benchmarks.harness.timing import cpu_seconds
from dpgm_core.domain import Domain
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

SETS, ROUNDS = 5, 6
# One thread for the peers too.
XLA = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
}


def domain(count: int, size: int) -> Domain:
    """x0, x1, ... of one size."""
    return Domain.from_sizes({f"x{i}": size for i in range(count)})


def erdos_renyi(size: int, edges: int = 18) -> Structure:
    """The first connected graph of 10 attributes with that many edges (p = 0.4, seeds in order)."""
    seed = 0
    while len((found := Structure.erdos_renyi(domain(10, size), 0.4, seed)).cliques) != edges:
        seed += 1
    return found


MODELS = {
    "chain3-k10": lambda: Structure.chain(domain(10, 10), 3),
    "chain3-k20": lambda: Structure.chain(domain(10, 20), 3),
    "er-k10": lambda: erdos_renyi(10),
    "er-k20": lambda: erdos_renyi(20),
    "chain100-k50": lambda: Structure.chain(domain(100, 50)),
    "grid10-k2": lambda: Structure.grid(domain(100, 2), 10, 10),
    "grid10-k3": lambda: Structure.grid(domain(100, 3), 10, 10),
}


class Peer:
    """A peer in its own interpreter; see `peers/marginals.py`."""

    def __init__(self, name: str, venv: Path) -> None:
        self.name = name
        script = Path(__file__).parent / "peers" / "marginals.py"
        self.process = subprocess.Popen(
            [venv / "bin" / "python", script, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | XLA,
        )

    def ask(self, **request: object) -> dict[str, list]:
        """One request, one answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended during {request}; its message is above")
        return json.loads(line)


def measure(name: str, peers: list[Peer], folder: Path, rounds: int) -> dict[str, float]:
    """Milliseconds per call of one model: "dpgm", "dpgm compile" and "PEER VARIANT"."""
    structure = MODELS[name]()
    start = time.perf_counter()
    engine = JunctionTree().compile(structure)
    result = {"dpgm compile": 1e3 * (time.perf_counter() - start)}
    theta = np.random.default_rng(0).normal(size=(SETS, structure.cells))
    sets = [Tables(structure, row) for row in theta]
    ours = engine.infer(sets[0]).marginals.values
    place = {attribute: i for i, attribute in enumerate(structure.domain.names)}
    model = folder / f"{name}.npz"
    np.savez(
        model,
        sizes=list(structure.domain.sizes.values()),
        cliques=[",".join(str(place[attribute]) for attribute in clique) for clique in structure.cliques],
        theta=theta,
    )
    for peer in peers:
        peer.ask(load=str(model))
        peer.ask(check=str(folder / "check.npz"))
        with np.load(folder / "check.npz") as found:
            for variant, marginals in found.items():
                off = float(np.abs(marginals - ours).max())
                if not off < 1e-5:
                    print(f"  {peer.name} {variant} differs from ours by {off:.1e} on {name}", file=sys.stderr)

    calls = 3 if name == "grid10-k3" else 40
    for _ in range(rounds):
        best = float("inf")
        for number in range(calls):
            start = time.perf_counter()
            engine.infer(sets[number % SETS])
            best = min(best, time.perf_counter() - start)
        result["dpgm"] = min(result.get("dpgm", float("inf")), 1e3 * best)
        for peer in peers:
            answer = peer.ask(calls=max(3, calls // 4))
            for variant, seconds in zip(answer["names"], answer["seconds"], strict=True):
                key = f"{peer.name} {variant}"
                result[key] = min(result.get(key, float("inf")), 1e3 * seconds)
    return result


def exact(asked: Namespace) -> None:
    """Milliseconds per call; fastest of each peer, and ratio = dpgm / fastest peer."""
    peers = []
    if asked.mbi:
        peers += [Peer("mbi", asked.mbi), Peer("mbi64", asked.mbi)]
    if asked.pyagrum:
        peers.append(Peer("pyagrum", asked.pyagrum))
    figures = {}
    print(f"{'model':14}{'dpgm':>9}{'compile':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name in choose("model", asked.models, list(MODELS))[: 1 if asked.smoke else None]:
            figures[name] = found = measure(name, peers, Path(folder), 1 if asked.smoke else ROUNDS)
            parts = []
            for peer in peers:
                mine = {key: value for key, value in found.items() if key.split()[0] == peer.name}
                if mine:
                    key = min(mine, key=mine.__getitem__)
                    parts.append((mine[key], f"{key} {mine[key]:.3f}"))
            ratio = f"  ratio {found['dpgm'] / min(parts)[0]:.2f}" if parts else ""
            text = ", ".join(part for _, part in parts)
            print(f"{name:14}{found['dpgm']:9.3f}{found['dpgm compile']:9.1f}  {text}{ratio}", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")


def trees_and_pairs(count: int = 40) -> Structure:
    """A random tree over attributes of 2 to 5 labels, and a fifth as many pairs besides."""
    rng = np.random.default_rng(0)
    mixed = Domain.from_sizes({f"x{i}": int(rng.choice([2, 2, 2, 3, 4, 5])) for i in range(count)})
    pairs = {(f"x{rng.integers(i)}", f"x{i}") for i in range(1, count)}
    while len(pairs) < count - 1 + count // 5:
        one, two = sorted(rng.choice(count, 2, replace=False))
        pairs.add((f"x{one}", f"x{two}"))
    return Structure(mixed, sorted(pairs))


#: What second derivatives are measured on.
CURVED = {
    "chain3-k5": lambda: Structure.chain(domain(10, 5), 3),
    "chain3-k10": MODELS["chain3-k10"],
    "chain3-k20": MODELS["chain3-k20"],
    "chain50-k20": lambda: Structure.chain(domain(50, 20)),
    "tree40": trees_and_pairs,
}


def curvature(asked: Namespace) -> None:
    """Cov(T) product / inference: CPU of preparing a map, with one product, of one product, and of one of 64 or 500."""
    columns = ("prepare", "with one", "one", "of 64", "of 500")
    print(f"{'model':14}{'cells':>7}{'infer ms':>10}" + "".join(f"{name:>10}" for name in columns))
    for name in list(CURVED)[: 1 if asked.smoke else None]:
        structure = CURVED[name]()
        engine = JunctionTree().compile(structure)
        rng = np.random.default_rng(0)
        theta = Tables(structure, rng.normal(size=structure.cells))
        one, some, many = (rng.normal(size=(structure.cells, count)) for count in (1, 64, 500))
        product = engine.curvature(theta)
        calls: list[tuple[Callable[[], object], int, int]] = [
            (lambda engine=engine, theta=theta: engine.infer(theta), 20, 1),
            (lambda engine=engine, theta=theta: engine.curvature(theta), 20, 1),
            (lambda engine=engine, theta=theta, one=one: engine.curvature(theta)(one), 20, 1),
            (lambda product=product, one=one: product(one), 20, 1),
            (lambda product=product, some=some: product(some), 3, 64),
            (lambda product=product, many=many: product(many), 1, 500),
        ]
        for call, _, _ in calls:
            call()
        seconds = [cpu_seconds(call, runs) / count for call, runs, count in calls]
        ratios = "".join(f"{part / seconds[0]:10.2f}" for part in seconds[1:])
        print(f"{name:14}{structure.cells:7}{1e3 * seconds[0]:10.3f}{ratios}", flush=True)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--mbi", type=Path, help="virtual environment with mbi 2.0 (pip install mbi)")
    parser.add_argument("--pyagrum", type=Path, help="virtual environment with pyAgrum (pip install pyagrum)")
    parser.add_argument("--models", default="*", help=f"of {', '.join(MODELS)}; separated by commas")
    parser.add_argument("--json", type=Path, help="write all figures to this file")


MEASUREMENT = Measurement(about=__doc__, parts={"exact": exact, "curvature": curvature}, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
