"""Kernels that numba compiles (extra `fast`), once per machine, and whether there are any. Nothing here needs numba."""
