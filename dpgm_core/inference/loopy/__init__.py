"""Loopy belief propagation: exact on trees, approximate elsewhere."""
