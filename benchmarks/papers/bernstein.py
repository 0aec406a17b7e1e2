"""Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (ICML 2017)."""

STUDY = None
