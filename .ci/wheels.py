"""What a user does: `pip install dpgm` in an empty environment outside the checkout, then the README's example.

    python3 .ci/wheels.py DIST         a folder of `python wheels/build.py DIST`: whatever is ours comes from there

Says how long it took and what it takes of the disk, and fails above LIMIT. Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from versions import ROOT, plugins

#: MB of disk that a user's installation may take, with the environment and its pip.
LIMIT = 450

#: Nothing of the checkout is seen; both names are one face, and a light one.
PROBE = """
import sys
import dpgm, dpgm_core
assert "numpy" not in sys.modules, "import dpgm loads numpy"
assert dpgm.fit is dpgm_core.fit and dpgm.plots is sys.modules["dpgm.plots"]
for module in (dpgm, dpgm_core):
    assert module.__file__.startswith(sys.prefix), module.__file__
"""


def example() -> str:
    """The README's example, after what installs it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^<!-- command: example -->\n```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    installs, _, command = block.partition("-c constraints.txt && ")
    if not command:
        sys.exit(f"README.md: no command after the installation in {installs!r}")
    return command


def megabytes(folder: Path) -> float:
    """As `du` counts: whole blocks, links as links."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 2**20


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wheels = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        home, venv = Path(folder), Path(folder) / ".venv"
        shutil.copytree(
            ROOT / "docs/examples/health", home / "docs/examples/health", ignore=shutil.ignore_patterns("out")
        )
        environment = {**os.environ, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}

        def timed(what: str, *words: str) -> str:
            began = time.monotonic()
            done = subprocess.run(words, cwd=home, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)
            return done.stdout

        pip = ("pip", "install", "-q", "--find-links", str(wheels), "-c", str(ROOT / "constraints.txt"), "dpgm")
        timed("an environment", sys.executable, "-m", "venv", str(venv))
        timed("pip install dpgm", *pip)
        timed("import dpgm", "python", "-c", PROBE)
        listed = timed("dpgm plugins", "dpgm", "plugins")
        lacking = [name for name in map(os.path.basename, plugins()) if name not in listed]
        print(timed(example().strip(), "bash", "-euo", "pipefail", "-c", example()))
        size = megabytes(venv)
    print(f"installed: {size:.0f} MB, of {LIMIT} at most")
    if lacking or "broken:" in listed:
        print(f"{listed}not listed: {lacking}")
    return int(size > LIMIT or bool(lacking) or "broken:" in listed)


if __name__ == "__main__":
    sys.exit(main())
