"""How long work says how far it is, and how people see it: a bar in a terminal or notebook, plain lines in a log.

>>> with shown("none") as progress:
...     progress("learning", 1, 10)
"""

from dpgm_core.progress.contract import Progress, checked_progress, silent, unfailing
from dpgm_core.progress.screens import How, shown

__all__ = ["How", "Progress", "checked_progress", "shown", "silent", "unfailing"]
