"""Compiled kernels (numba), and their cache."""
