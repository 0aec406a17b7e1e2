"""Every distribution of this repository as a wheel, the same bytes for the same sources, ready to be uploaded.

    python wheels/build.py dist        a new or an empty folder; needs requirements-dev.txt and no network

hatchling dates all files alike (SOURCE_DATE_EPOCH, or a day of its own), so that nothing of the machine is in a wheel.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def distributions() -> Iterator[Path]:
    """The folders: core, the plugins by name, and the application."""
    yield ROOT
    yield from sorted(file.parent for file in ROOT.glob("plugins/*/pyproject.toml"))
    yield ROOT / "app"


def build(source: Path, target: Path) -> None:
    """One wheel, with the hatchling that is installed."""
    words = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(source)]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{source}: no wheel\n{done.stdout}")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = Path(sys.argv[1]).resolve()
    if not find_spec("build") or not find_spec("twine"):
        sys.exit("build and twine are needed: pip install -r requirements-dev.txt -c constraints.txt")
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        sys.exit(f"{target} is not empty: wheels of another version would be uploaded with these")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda source: build(source, target), distributions()))
    wheels = sorted(str(wheel) for wheel in target.glob("*.whl"))
    # Whether a package index takes the metadata, and shows the README.
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *wheels], check=True)


if __name__ == "__main__":
    main()
