"""`ranges` in a spec: planned, refused by name, measured by named cliques and by a selector, and told in a report."""

import pytest

SPEC = """
data = "ages.csv"
neighbours = "add-remove"
budget = { rho = 0.5 }
ranges = ["age"]
mechanism = "gaussian"
learner = "naive-mle"
[domain.attributes.age]
min = 0
max = 29
bins = 30
[domain.attributes.sex]
labels = ["F", "M"]
[structure]
cliques = [["age"], ["age", "sex"]]
[output]
folder = "out"
[simulation]
seed = 1
"""


@pytest.fixture
def ages(tmp_path):
    """A spec whose column of ages is asked for its ranges."""
    rows = "".join(f"{(7 * row) % 30},{'FM'[row % 3 == 0]}\n" for row in range(600))
    (tmp_path / "ages.csv").write_text("age,sex\n" + rows)
    (tmp_path / "ages.toml").write_text(SPEC)
    return tmp_path / "ages.toml"


def test_a_plan_says_how_noisy_ranges_will_be(ages, dpgm_command, refused):
    """And refuses, in a line, a column without a table, an unknown one, another split and what is no list."""
    code, out, err = dpgm_command("plan", ages)
    assert code == 0 and "age           31" in out
    (line,) = [one for one in err.splitlines() if "ranges of 'age' are measured" in one]
    numbers = [float(word) for word in line.split() if word[0].isdigit()]
    assert numbers == pytest.approx([2.874, 1.861], rel=1e-3)
    _, _, err = dpgm_command("plan", ages, "--set", "structure={ selector = 'mst' }")
    assert "the noise of a range is 0.61 times that of cells, on average, and of one value 1.32 times" in err
    pure = ("--set", "budget={epsilon=1}", "--set", "mechanism='laplace'", "--set", "structure={ selector = 'mst' }")
    assert "the noise of a range is 1.00 times" in dpgm_command("plan", ages, *pure)[2]
    laplace = ("--set", "mechanism='laplace'", "--set", "structure={ selector = 'mst' }")
    assert "the noise of a range is 1.00 times" in dpgm_command("plan", ages, *laplace)[2]
    wrong = {
        "structure.cliques=[['age','sex']]": "no clique is ['age'] alone",
        "ranges=['agee']": "did you mean 'age'?",
        "split='contrasts'": "not with split = 'contrasts'",
        "ranges='age'": "ranges must be a list of attributes",
    }
    for setting, words in wrong.items():
        assert words in refused("plan", ages, "--set", setting)
        code, out, err = dpgm_command("fit", ages, "--set", setting)
        assert (code, out) == (2, "") and words in err and not (ages.parent / "out").exists()


@pytest.mark.parametrize("structure", ["{ cliques = [['age'], ['age', 'sex']] }", "{ selector = 'mst' }"])
def test_a_fit_measures_them_and_says_so(ages, ran, structure):
    """Its guarantee, and that of the release, the report and what is learned again, names the column."""
    folder = ages.parent
    out, _ = ran("fit", ages, "--set", f"structure={structure}")
    assert "Of 'age' weighted sums over windows of values were measured" in out
    ran("learn", folder / "out" / "ages.release.dpgm", "-o", folder / "again.dpgm")
    ran("report", folder / "again.dpgm", "-o", folder / "page.html")
    assert "weighted sums over windows of values" in (folder / "page.html").read_text()
    out, _ = ran("query", folder / "again.dpgm", "age", "--statistic", "median")
    assert 12 < float(out.split("median")[1].split()[0]) < 18


@pytest.mark.parametrize(
    ("found", "more", "words"),
    [
        (
            "domain.attributes.age={ min = 0, max = 29, bins = { private = 8 } }",
            ("structure.cliques=[['age','sex']]",),
            "no clique is ['age'] alone",
        ),
        (
            "domain.attributes.sex={ labels = { private = true, keep = 3 } }",
            ("learner='psgd'", "budget={ epsilon = 3, delta = '1e-5' }"),
            "rounds give every table the same noise",
        ),
    ],
    ids=["bins", "labels"],
)
def test_what_is_refused_is_refused_before_bins_or_labels_are_paid_for(ages, dpgm_command, found, more, words):
    """A column without a table of its own, and a learner of rounds: nothing is found, nothing is written."""
    settings = [part for one in (found, *more) for part in ("--set", one)]
    code, out, err = dpgm_command("fit", ages, *settings)
    assert (code, out) == (2, "") and words in err and "paid for" not in err
    assert not (ages.parent / "out").exists()
