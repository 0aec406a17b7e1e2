"""Engines: marginals and log-partition of a structure with potentials, exact or approximate."""
