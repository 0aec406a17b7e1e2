"""Progress of long work."""

from dpgm_core.progress.contract import Progress, checked_progress, silent, unfailing

__all__ = ["Progress", "checked_progress", "silent", "unfailing"]
