"""Virtual environments of peers: what pip installs into them, and where their interpreters are.

An environment is FOLDER/NAME, where FOLDER is that of an option or of the variable DPGM_PEERS; DPGM_NAME_PYTHON names
the interpreter of another one. What is on no index is installed from a checkout in FOLDER/sources/NAME.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from benchmarks.harness.runs import say

#: The variable that names the folder of environments.
FOLDER = "DPGM_PEERS"
#: Environment -> what pip installs into it.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "mbi": ("mbi==2.0.0", "pandas", "networkx", "matplotlib"),
    "pyagrum": ("pyagrum==3.3.1",),
    "pgmpy": ("pgmpy==1.1.2",),
    "pgmax": ("pgmax==0.6.1",),
    "dpmm": ("dpmm==0.1.9",),
    "dpsynth": (
        *("jax", "absl-py", "attrs", "pandas", "pydantic", "pyyaml", "dp-accounting", "more-itertools", "networkx"),
        *("scipy", "tqdm", "chex", "optax", "etils"),
    ),
    "opendp": ("opendp[mbi,polars]==0.16.0",),
    "sdnist": ("sdnist==2.4",),  # which pins numpy 1.24, pandas 2.0 and scipy 1.10, of Python 3.11 and older
    "smartnoise": ("smartnoise-synth==1.0.8",),
    "twinify": (
        *("twinify==2.0.0", "jax==0.4.13", "jaxlib==0.4.13", "numpyro==0.11.0", "pandas<2", "numpy<2"),
        "scipy<1.13",
        "matplotlib==3.8.*",
    ),
}
#: Environment -> checkouts that are installed into it as well. dpsynth asks for Python 3.12 and runs on 3.11.
CHECKOUTS: Mapping[str, tuple[str, ...]] = {"dpsynth": ("mbi", "dpsynth")}


def python_of(name: str, folder: Path | None = None) -> Path | None:
    """Return the interpreter of an environment: that of the folder, of DPGM_NAME_PYTHON, or of DPGM_PEERS."""
    if folder is not None and (path := _python(folder / name)).is_file():
        return path
    if known := os.environ.get(f"DPGM_{name.upper()}_PYTHON"):
        return Path(known)
    if (shared := os.environ.get(FOLDER)) and (path := _python(Path(shared, name))).is_file():
        return path
    return None


def make_environments(folder: Path, names: Collection[str] = tuple(PACKAGES)) -> dict[str, str]:
    """Make the environments that the folder lacks; return why each that could not be made was not."""
    return {name: why for name in names if not _python(folder / name).is_file() and (why := _make(folder, name))}


def _make(folder: Path, name: str) -> str:
    """Make one environment; return why it was not made, "" if it was."""
    sources = [folder / "sources" / source for source in CHECKOUTS.get(name, ())]
    if missing := [str(path) for path in sources if not path.is_dir()]:
        return f"is on no index; put a checkout into {' and '.join(missing)}"
    say(f"making {folder / name}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / name], check=True)
    pip = [_python(folder / name), "-m", "pip", "install", "-q"]
    commands = [[*pip, *PACKAGES[name]]]
    if sources:
        commands.append([*pip, "--no-deps", "--ignore-requires-python", *sources])
    for command in commands:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            shutil.rmtree(folder / name)
            return f"pip could not install it: {(errors or ['no reason'])[-1]}"
    return ""


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"
