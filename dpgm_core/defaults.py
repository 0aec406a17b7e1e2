"""What is used where nothing was said."""

__all__ = ["INFERENCE", "LEARNER", "MECHANISM"]

MECHANISM = "laplace"
#: The one that wins the study untouched (benchmarks/selftuning.py, docs/which-learner.md).
LEARNER = "eb-map"
INFERENCE = "junction-tree"
