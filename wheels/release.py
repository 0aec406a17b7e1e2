"""Is this commit a release? Version, changelog, citation and tag have to say the same; else it says what does not.

python wheels/release.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def faults(root: Path, tags: Collection[str]) -> list[str]:
    """What keeps the checkout `root`, whose commit has these tags, from being the release that its version names."""
    version = stated(root / "dpgm_core/_util/version.py", r'__version__ = "(.*)"')
    section = stated(root / "CHANGELOG.md", r"## (.*)")  # the first one
    dated = stated(root / "CITATION.cff", r"date-released: (.*)")
    cited = stated(root / "CITATION.cff", r"version: (.*)")
    found = []
    if section != f"{version} - {dated}":
        found.append(f"CHANGELOG.md begins with '## {section}'; the release is '## {version} - {dated}'")
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, dpgm_core/_util/version.py {version}")
    if f"v{version}" not in tags:
        found.append(f"the commit's tags are {sorted(tags)}; git tag -a v{version}")
    return found


def stated(file: Path, line: str) -> str:
    """What the first line of this form says."""
    found = re.search(f"^{line}$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "nothing"


if __name__ == "__main__":
    words = ["git", "tag", "--points-at", "HEAD"]
    sys.exit("\n".join(faults(ROOT, subprocess.check_output(words, cwd=ROOT, text=True).split())) or None)
