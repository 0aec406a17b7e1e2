"""The machine is run from the checkout, not installed: its root has to be importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
