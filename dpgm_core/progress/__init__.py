"""Progress of long work."""

from dpgm_core.progress.contract import Progress, check_progress, silent, unfailing

__all__ = ["Progress", "check_progress", "silent", "unfailing"]
