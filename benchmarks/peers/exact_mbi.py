"""mbi's oracles, jitted and warm, on device arrays that are ready."""

import warnings

import numpy as np

from benchmarks.peers.served import Variant, tables

ORACLES = ("fast", "implicit", "hugin", "shafer_shenoy", "stable")


def variants(model, only=None, *, wide):
    """One for each oracle, jitted; wide: 64 bits, its default is 32; only "NAME plain": that one, not jitted."""
    import jax

    jax.config.update("jax_enable_x64", wide)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
        from mbi import marginal_oracles

    domain = mbi.Domain([f"x{i}" for i in range(len(model.sizes))], model.sizes)
    names = [tuple(f"x{i}" for i in clique) for clique in model.cliques]
    kind = "float64" if wide else "float32"
    sets = []
    for row in model.theta:
        arrays = zip(names, tables(model, row), strict=True)
        factors = {
            name: mbi.Factor(domain.project(name), jax.numpy.asarray(array, dtype=kind)) for name, array in arrays
        }
        sets.append(mbi.CliqueVector(domain, names, factors))
    jax.block_until_ready(sets)

    def read(result):
        return [np.asarray(result[name].datavector(flatten=False)) for name in names], None

    def calling(oracle):
        return lambda number: jax.block_until_ready(oracle(sets[number]))

    if only is not None and only.endswith(" plain"):
        return [Variant(only, calling(getattr(marginal_oracles, "message_passing_" + only.split()[0])), read)]
    return [
        Variant(name, calling(jax.jit(getattr(marginal_oracles, f"message_passing_{name}"))), read)
        for name in ORACLES
        if only in (None, name)
    ]
