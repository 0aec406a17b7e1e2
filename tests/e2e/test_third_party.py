"""Third parties for real: the example plugins and the ten-minute path, from wheels, outside the checkout."""

import re
import shutil
from pathlib import Path

import pytest

from tests.fixtures import outside

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "plugins"
THIRD = ("dpgm-opendp", "dpgm-trw")
FIRST = ("dpgm-laplace", "dpgm-eb-map", "dpgm-naive-mle")
PAIRS = '[["visits", "coinsurance"], ["visits", "health"], ["health", "coinsurance"], ["diseases", "health"]]'

pytestmark = pytest.mark.landing


@pytest.fixture(scope="module")
def scripts(wheel_of, environment_with, tmp_path_factory):
    """The programs of an environment with core, application, kit, three of our plugins and the examples, as wheels."""
    pytest.importorskip("opendp")
    sources = [ROOT, ROOT / "app", ROOT / "plugins/dpgm-testing", *(ROOT / "plugins" / name for name in FIRST)]
    sources += [EXAMPLES / name for name in THIRD]
    return environment_with(tmp_path_factory.mktemp("third-party"), [wheel_of(source) for source in sources])


@pytest.fixture
def in_environment(scripts, tmp_path):
    """Runs a command of that environment beside a copy of the health example; pip finds everything installed."""
    shutil.copytree(
        ROOT / "docs/examples/health", tmp_path / "docs/examples/health", ignore=shutil.ignore_patterns("out")
    )
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return lambda *command: outside(*command, cwd=tmp_path, scripts=scripts, **offline)


def test_only_what_was_installed_is_listed(in_environment):
    """The environment knows these six distributions and nothing of the checkout."""
    listed = in_environment("dpgm", "plugins")
    assert set(re.findall(r"\bdpgm-[a-z-]+", listed)) == {"dpgm-core", *FIRST, *THIRD}
    assert "broken:" not in listed and str(ROOT) not in in_environment("python", "-c", "import sys; print(sys.path)")


@pytest.mark.parametrize(("name", "least"), [("dpgm-opendp", 36), ("dpgm-trw", 15)])
def test_examples_pass_the_conformance_kit(name, least, in_environment):
    """`pytest --dpgm-plugin DIST` from an empty folder: the header names versions, many checks run, none fails."""
    said = in_environment("pytest", "-p", "no:cacheprovider", "--dpgm-plugin", name)
    header = said.split("collected")[0]
    assert f"{name} 0.1.0" in header and "dpgm-core" in header and "profile default" in header
    assert int(re.search(r"(\d+) passed", said)[1]) >= least and "failed" not in said


@pytest.mark.parametrize("name", THIRD)
def test_examples_pass_their_own_tests(name, in_environment, tmp_path):
    """Doctests of the installed modules' sources and the plugin's own tests, with our warnings as errors."""
    shutil.copytree(EXAMPLES / name / "tests", tmp_path / "tests")
    ours = "filterwarnings=error:::(dpgm_|test_)\ndefault::DeprecationWarning"
    command = ("pytest", "-p", "no:cacheprovider", "-o", ours, "--doctest-modules", "tests")
    assert " passed" in in_environment(*command, "--pyargs", name.replace("-", "_"))


@pytest.mark.parametrize(
    "settings",
    [
        ("mechanism=opendp-gaussian", "budget={rho = 0.5}", "ledger.budget={rho = 1}"),
        ("mechanism=opendp-laplace", "inference=trw-bp", f"structure.cliques={PAIRS}"),
    ],
    ids=["gaussian", "laplace and trw"],
)
def test_the_health_example_is_fitted_with_them(settings, in_environment):
    """Each part swapped by a setting; the model says what was spent, and finds that free care means more visits.

    The noise on a table of 30 cells has a standard deviation below 10 among 20,190 rows, the gap in P(no visit) is
    0.17: the false alarm probability is below 1e-9.
    """
    words = [word for setting in (*settings, "intervals.replicates=2") for word in ("--set", setting)]
    said = in_environment("dpgm", "fit", "docs/examples/health/health.toml", *words)
    assert "left in the ledger" in said and "NOT PRIVATE" not in said and "UNSAFE" not in said
    query = ("dpgm", "query", "docs/examples/health/out/health.dpgm", "visits", "--json", "--given")
    free, dear = (in_environment(*query, f"coinsurance={share}") for share in ("0%", "95%"))
    none = [float(re.search(r'"0"[^}]*?"probability": ([\d.e-]+)', text, re.DOTALL)[1]) for text in (free, dear)]
    assert none[0] < none[1] - 0.05


def test_a_seed_is_refused_with_what_would_do(in_environment):
    """A simulation with OpenDP's noise ends in one line, because no seed can steer it."""
    with pytest.raises(AssertionError, match="OpenDP draws its own randomness and takes no seed"):
        in_environment(
            "dpgm", "fit", "docs/examples/health/health.toml",
            "--set", "mechanism=opendp-laplace", "--set", "simulation.seed=1",
        )  # fmt: skip


def test_the_ten_minute_path_word_for_word(in_environment):
    """Every command of the page's first part, as printed, one shell after the other; the broken noise is caught."""
    pytest.importorskip("editables")  # what hatchling needs for `pip install -e`
    page = (ROOT / "docs" / "write-a-plugin.md").read_text(encoding="utf-8")
    path = page.split("## The ten-minute path")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", path, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    said = [in_environment("bash", "-euo", "pipefail", "-c", block) for block in blocks]
    assert "made ./dpgm-coin" in said[0]
    # what is printed is what the page's next blocks do
    assert 'pip install -e "./dpgm-coin[testing]" && dpgm check dpgm-coin' in said[0].splitlines()
    (broken,) = (text for block, text in zip(blocks, said, strict=True) if "! dpgm check" in block)
    assert re.search(r"^samples-follow-logpdf +failed", broken, re.MULTILINE)
    assert [text for text in said if re.search(r"^\d+ passed", text, re.MULTILINE)]
    assert "left in the ledger" in said[-1]
