"""What the tests of installed distributions share: wheels, and environments that see nothing of the checkout."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def outside(*command: str | Path, cwd: Path, scripts: Path | None = None, **more: str) -> str:
    """Run a command far from the checkout; returns what it printed, which is the reason if it fails.

    scripts: the folder of an environment's programs, put first on the path. more: environment variables.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DPGM", "PYTEST"))}
    if scripts is not None:
        inherited["PATH"] = f"{scripts}{os.pathsep}{inherited['PATH']}"
        inherited["VIRTUAL_ENV"] = str(scripts.parent)
    done = subprocess.run(
        command, cwd=cwd, env=inherited | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def run_outside() -> Callable[..., str]:
    """`outside`, for test files."""
    return outside


@pytest.fixture(scope="session")
def wheel_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Builds the wheel of a source folder, once per session and without network."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    built: dict[Path, Path] = {}

    def build(source: Path) -> Path:
        if source not in built:
            folder = tmp_path_factory.mktemp("wheel")
            outside(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
            (built[source],) = folder.glob("*.whl")
        return built[source]

    return build


@pytest.fixture(scope="session")
def environment_with() -> Callable[..., Path]:
    """Makes a virtual environment in a folder, installs wheels into it, and returns the folder of its programs.

    It sees the third parties' libraries of the interpreter that runs the tests, so nothing is downloaded, but no dpgm
    distribution: neither their code nor their metadata.
    """

    def make(folder: Path, wheels: list[Path]) -> Path:
        libraries = folder / "libraries"
        libraries.mkdir(parents=True)
        for site in (Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))):
            for entry in site.iterdir():
                ours = entry.name.lower().startswith(("dpgm", "_dpgm", "__editable__"))
                if not ours and entry.suffix != ".pth" and not (libraries / entry.name).exists():
                    (libraries / entry.name).symlink_to(entry)
        venv = folder / "venv"
        outside(sys.executable, "-m", "venv", venv, cwd=folder)
        scripts = venv / "bin"
        pip = ("pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
        outside(*pip, *wheels, cwd=folder, scripts=scripts)
        site = outside(
            "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder, scripts=scripts
        )
        (Path(site.strip()) / "libraries.pth").write_text(f"{libraries}\n")
        program = scripts / "pytest"  # the libraries' own one would start the interpreter that they belong to
        program.write_text(f"#!{scripts / 'python'}\nimport sys\nimport pytest\nsys.exit(pytest.main())\n")
        program.chmod(0o755)
        return scripts

    return make
