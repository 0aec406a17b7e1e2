"""Exact inference on the junction tree: a contraction is planned once, and executed again and again."""
