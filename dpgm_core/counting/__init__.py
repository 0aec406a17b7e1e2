"""Whole-numbered sums over codes. Secret: nothing after the noise may import them; sums merge by `+`."""
