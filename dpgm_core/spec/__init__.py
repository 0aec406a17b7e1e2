"""A run as one TOML file, the settings put over it, and the owner's note that its domain was compared with records."""

from dpgm_core.spec.run import IntervalsSpec, LedgerSpec, Spec, load_spec, read_spec

__all__ = ["IntervalsSpec", "LedgerSpec", "Spec", "load_spec", "read_spec"]
