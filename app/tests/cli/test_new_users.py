"""What users have found wanting in messages: each says what it was, and what would do, in the words of a spec."""

import pytest


@pytest.fixture
def refused(refused):
    """The line that refuses, without its end."""
    return lambda *words: refused(*words).removesuffix("\n")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["mechanism=gaussian"],
            "mechanism 'gaussian' was asked for epsilon = 1, but Gaussian noise is never purely private; say budget = "
            "{ rho = ... } or { epsilon = ..., delta = ... }, or mechanism = 'laplace' (in Python Budget.zcdp or "
            "Budget.approx)",
        ),
        (
            ["budget={epsilon=1, delta=1e-6}", "ledger.budget={epsilon=9, delta=1e-3}"],
            "mechanism 'laplace' was asked for (epsilon, delta) = (1, 1e-06), but its privacy is pure and has no use "
            "for delta; say budget = { epsilon = ... } or { rho = ... }, or mechanism = 'gaussian' (in Python "
            "Budget.pure or Budget.zcdp)",
        ),
        (
            ["epsilon=2", "delta=0.1"],
            "spec visits.toml has epsilon = 2, delta = 0.1 at its top level; write budget = { epsilon = 2, "
            "delta = 0.1 }",
        ),
        (
            ["structure={cliques=['sex', 'age']}"],
            "cliques: a clique must be a list of attribute names, got 'sex'; write cliques = [[...]] with a list for "
            "each clique",
        ),
        (
            ["structure=auto"],
            "a structure must be a table such as { graph = 'chain' }, or { selector = 'auto' } to have it chosen, got "
            "'auto'",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_specs_are_answered_in_keys_of_specs(spec, refused, settings, said):
    """The exact sentence, before any charge."""
    words = [word for setting in settings for word in ("--set", setting)]
    assert refused("fit", spec, *words) == f"dpgm: {said}"
    assert not list(spec.parent.glob("out/*.dpgm"))


def test_a_file_in_another_dialect_is_answered_with_the_line_to_write(spec, refused):
    """Semicolons and UTF-16, by the first line alone."""
    path = spec.parent / "visits.csv"
    text = path.read_text()
    path.write_text(text.replace(",", ";"))
    line = f'say data = {{ source = "csv", path = "{path}", '
    semicolons = f"dpgm: {path}: read with ';' between fields, the first line names the columns; {line}"
    assert refused("fit", spec) == f'{semicolons}delimiter = ";" }}'
    assert refused("validate", spec) == f'{semicolons}delimiter = ";" }}'
    path.write_text(text, encoding="utf-16")
    said = f'dpgm: {path}: read in UTF-16, the first line names the columns; {line}encoding = "utf-16" }}'
    assert refused("fit", spec) == said
    path.write_text(text, encoding="utf-16")
    assert not list(spec.parent.glob("out/*"))


@pytest.mark.parametrize(
    "command", [("query",), ("sample", "-n", 1, "-o", "x.csv"), ("compare",), ("export", "--bif", "x.bif")]
)
def test_records_are_no_model(spec, refused, command):
    path = spec.parent / "visits.csv"
    said = refused(command[0], path, *command[1:])
    assert said == (
        f"dpgm: {path} is a table of records by its name, and not a model file; a spec that names it makes one: "
        "dpgm fit SPEC"
    )


def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path, refused):
    path = tmp_path / "visits.xlsx"
    path.write_bytes(b"PK")
    for words in ((), ("--epsilon", "1", "--delta", "1e-9", "--one-row-each")):
        assert refused("fit", path, *words) == (
            f"dpgm: {path} is a table of another program by its name, and not a spec; save it as CSV there, and name "
            "the CSV file here"
        )


def test_files_in_each_others_place(spec, refused, dpgm_command):
    folder = spec.parent
    assert dpgm_command("fit", spec)[0] == 0
    model, ledger, domain = folder / "out/visits.dpgm", folder / "out/visits.ledger", folder / "domain.toml"
    bif = folder / "x.bif"
    bif.write_text("network x {}")
    by_name = "by its name, and not"
    assert refused("query", spec) == (
        f"dpgm: {spec} is a spec or domain {by_name} a model file; a spec makes one, and says where: dpgm fit {spec}"
    )
    assert refused("query", ledger) == (
        f"dpgm: {ledger} is a ledger {by_name} a model file; show it with: dpgm ledger show {ledger}"
    )
    assert refused("query", bif).startswith(f"dpgm: {bif} is a network of other programs {by_name} a model file; ")
    assert refused("learn", folder / "visits.csv").startswith(
        f"dpgm: {folder}/visits.csv is a table of records {by_name} a rel"
    )
    said = refused("fit", folder / "visits.csv")
    assert said.startswith(f"dpgm: {folder}/visits.csv is a table of records: say what may be spent on it")
    assert said.endswith(f"or write a spec with: dpgm init {folder}/visits.csv")
    assert refused("plan", model) == (
        f"dpgm: {model} is a model or release {by_name} a spec; show a model with: dpgm query {model}"
    )
    assert refused("fit", ledger).startswith(f"dpgm: {ledger} is a ledger {by_name} a spec; show it with: dpgm ledger")
    assert refused("validate", domain) == (
        f"dpgm: {domain} is a domain file, not a spec: it has [attributes]. Name it in a spec: domain = 'domain.toml'"
    )
    assert refused("query", folder / "out/visits") == (
        f"dpgm: there is no file {folder}/out/visits; did you mean {folder}/out/visits.dpgm?"
    )
    assert refused("plugins", model) == (
        f"dpgm: dpgm plugins shows components, and {model} is a file; dpgm query MODEL says what a model is"
    )
    assert refused("smaple", model) == "dpgm: there is no command 'smaple'; did you mean 'sample'? (try dpgm --help)"


def test_a_name_that_is_spent_is_explained(spec, dpgm_command, refused):
    """Where it is printed, by fit and release; not by a run that is refused."""
    assert "earlier run" not in dpgm_command("fit", spec)[2]
    said = (
        "dpgm: visits.dpgm is there from an earlier run, or its release is; what was paid for is never replaced, so "
        "these files are visits-{}\n"
    )
    for number, command in enumerate(("fit", "release"), start=2):
        code, out, err = dpgm_command(command, spec, "--set", "budget.epsilon=0.1")
        assert code == 0 and f"visits-{number}" in out and said.format(number) in err
    assert "earlier run" not in refused("fit", spec, "--set", "mechanism=gaussian")


ONE_LABEL = """[attributes]
sex = { labels = ["F", "M"], unknown = "F" }
age = { labels = ["any"], unknown = "any" }
"""


def test_what_is_measured_to_no_purpose_is_told(spec, dpgm_command):
    """Cliques named again, in any order, and columns of one label; by plan and fit, and where a structure is chosen."""
    (spec.parent / "domain.toml").write_text(ONE_LABEL)
    twice = "dpgm: [structure] names the clique of age and sex more than once; it is measured once\n"
    single = (
        "dpgm: column age has one label only, so nothing can be learned of it; leave it out of the domain, as its "
        "tables are paid for all the same\n"
    )
    asked = ("--set", "structure={cliques=[['sex','age'],['age','sex'],['sex','age']]}")
    for command in ("plan", "fit"):
        code, _, err = dpgm_command(command, spec, *asked)
        assert code == 0 and err.count(twice) == err.count(single) == 1
    alone = dpgm_command("fit", spec, "--set", "structure={cliques=[['sex']]}", "--set", "budget.epsilon=0.1")[2]
    assert twice not in alone and single not in alone
    assert single in dpgm_command("plan", spec, "--set", "structure={selector='auto'}")[2]


def test_what_most_columns_of_a_header_tell_is_said_before_a_ledger_appears(spec, refused):
    """A column that is not there, one that stands twice, a file without records, one without a byte."""
    data = spec.parent / "visits.csv"
    spec.write_text(spec.read_text().replace('graph = "chain"', "singletons = true"))
    (spec.parent / "domain.toml").write_text("[attributes]\nsex.size = 2\nage.size = 2\njob.size = 2\n")
    for content, said in (
        ("sex,age,jobb\n0,1,1\n", "visits.csv has no column 'job'"),
        ("sex,age,job,job\n0,1,1,0\n", "has column 'job' more than once"),
        ("sex,age,job\n", "has no record behind the line that names its columns"),
        ("", "visits.csv is empty"),
    ):
        data.write_text(content)
        assert said in refused("fit", spec)
        assert not (spec.parent / "out").exists()


def test_expected_records_and_columns_mostly_missing_are_said_with_a_fit(spec, dpgm_command, facts):
    """In what is printed, in JSON, and of a release alone; `records` changes nothing else."""
    (spec.parent / "visits.csv").write_text("sex,age\n" + "f,30\nm,50\nm,60\n" * 400)
    (spec.parent / "domain.toml").write_text('[attributes]\nsex.labels = ["F", "M"]\nage.bins = [0, 40, 99]\n')
    words = ("--set", "records=9000", "--set", "budget.epsilon=0.8")
    code, _, err = dpgm_command("fit", spec, *words)
    assert code == 0 and "9,000 records were expected" in err and "mostly missing: sex (" in err
    notes = facts("fit", spec, *words)["notes"]
    assert [one.split(" ")[1] for one in notes if "expected" in one or "mostly" in one] == ["records", "missing:"]
    assert "9,000 records were expected" in dpgm_command("release", spec, *words)[2]
    assert "records must be the number of rows" in dpgm_command("plan", spec, "--set", "records=many")[2]
    planned = facts("plan", spec, "--set", "records=1200")
    assert planned["tables"] == facts("plan", spec, "--records", 1200)["tables"]


def test_init_asks_for_what_times_and_money_need(tmp_path, dpgm_command):
    """No ends of a day; the decimals of a number are asked for by plan; quotes are said to be read."""
    (tmp_path / "x.csv").write_text("at,cost\n12:30,1.50\n")
    (tmp_path / "mine.toml").write_text(
        '[attributes.at]\ntype = "time"\n[attributes.cost]\ntype = "number"\nmin = 0\nmax = 9\n'
    )
    words = ("init", tmp_path / "x.csv", "--codebook", tmp_path / "mine.toml", "-o", tmp_path)
    assert "2 settled, 0 to do" in dpgm_command(*words)[1]
    assert "quoting = true, which needs no word" in (tmp_path / "spec.toml").read_text()
    plan = ("plan", tmp_path / "spec.toml", "--set", "structure={singletons=true}")
    (tmp_path / "spec.toml").write_text((tmp_path / "spec.toml").read_text().replace("[workload]", ""))
    assert "samples will write cost with as many decimals as the bins tell apart" in dpgm_command(*plan)[2]
    (tmp_path / "domain.toml").write_text((tmp_path / "domain.toml").read_text() + "decimals = 2\n")
    assert "decimals" not in dpgm_command(*plan)[2]
