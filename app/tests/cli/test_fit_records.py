"""dpgm fit of a file of records of which nothing is described, and dpgm init with the same options.

A folder that an earlier run has made: `dpgm.cli.earlier`.
"""

import io
import random
import re
import shlex
from pathlib import Path

import pytest

from dpgm_core import Ledger, load_model
from dpgm_core.domain.domain import Domain

RARE = "zz-planted-zz"


@pytest.fixture
def records(tmp_path, monkeypatch):
    """A file in UTF-16 with semicolons, decimal commas, a person's key and a label of one person, in a folder alone."""
    draw = random.Random(3)
    lines = ["id;age;ward;cost;admitted;note"]
    for number in range(3000):
        cost = f"{draw.uniform(20, 400):.2f}".replace(".", ",")
        day = f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.2018"
        ward = RARE if number == 7 else draw.choice(["surgery", "eye"])
        lines.append(f"{number // 2};{draw.randint(18, 90)};{ward};{cost};{day};text {number}")
    (tmp_path / "stays.csv").write_text("\n".join(lines) + "\n", encoding="utf-16")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "stays.csv"


SAID = ("--person", "id", "--rows-per-person", "2", "--epsilon", "30", "--delta", "1e-5")


def test_one_command_from_a_file_to_synthetic_records(records, dpgm_command):
    """Spec, domain, what was found, a model, and records that open in the same program; a second run is refused.

    Noise is fresh; shares of 1,500 persons are 20 standard deviations above every threshold.
    """
    code, out, err = dpgm_command("fit", records, *SAID, "--drop", "note")
    assert code == 0, err
    assert "dpgm: only 12 of epsilon = 30 buys less noise in a search of columns and in the tables after it" in err
    assert "of each person at most 2 rows count, and of all rows without a key together; the others are left out" in err
    folder = records.parent / "stays"
    assert "found:   types, ranges and labels of 4 columns for (epsilon, delta) = (" in out
    assert "synthetic: stays/stays.synthetic.csv" in out and "domain: stays/stays.domain.toml" in out
    head, *rows = (folder / "stays.synthetic.csv").read_text(encoding="utf-16").splitlines()
    assert head == "age;ward;cost;admitted" and 2800 < len(rows) < 3200
    first = dict(zip(head.split(";"), rows[0].split(";"), strict=True))
    assert first["ward"] in ("surgery", "eye", "other", "") and "," in first["cost"] and first["admitted"][2] == "."
    model = load_model(folder / "stays.dpgm")
    written = Domain.load(folder / "stays.domain.toml")
    assert written == model.domain and {one.values.kind for one in written} == {"integer", "text", "number", "date"}
    assert model.releases[0].terms.person == "id" and model.releases[0].terms.rows_per_person == 2
    assert not Ledger.open(folder / "stays.ledger").remaining().epsilon
    assert "were found from the records" in (folder / "stays.domain.toml").read_text()
    for file in folder.iterdir():
        content = file.read_bytes()
        assert RARE.encode() not in content and RARE.encode("utf-16-le") not in content
    assert RARE not in out + err
    again = ("fit", records, *SAID, "--drop", "note")
    for words, message in (
        (again, "its run is finished, and its model is stays/stays.dpgm, which is free to use"),
        ((*again, "--epsilon", "2"), "with (epsilon, delta) = (30, 1e-05), and not (epsilon, delta) = (2, 1e-05)"),
        ((*again, "--drop", "age"), "of other columns; name another folder, -o"),
        ((*again, "--rows-per-person", "3"), "with person = 'id', rows_per_person = 2; name another folder, -o"),
        (("fit", "stays/spec.toml"), "(0, 0) is left; nothing was charged: learn and sample from what was released"),
        (("fit", "stays/spec.toml"), "an earlier run finished, and its model is stays/stays.dpgm"),
    ):
        code, _, err = dpgm_command(*words)
        assert code == 2 and message in err
    (records.parent / "other.csv").write_bytes(records.read_bytes())
    assert "stays.csv; name another folder, -o" in dpgm_command("fit", "other.csv", *again[2:], "-o", "stays")[2]


def test_what_was_found_is_a_domain_for_later_runs(records, dpgm_command, facts):
    """The found domain in place of the one that asks for a search: no search, and no charge for one."""
    assert dpgm_command("fit", records, *SAID, "--drop", "note,age", "-o", "one")[0] == 0
    again = facts(
        "fit", "one/spec.toml", "--set", 'domain="stays.domain.toml"', "--set", 'name="again"',
        "--set", 'ledger.path="again.ledger"', "--set", 'output.folder="../two"',
    )  # fmt: skip
    assert "columns" not in again and again["spent"] == {"epsilon": "30", "delta": "1/100000"}
    assert load_model("two/again.dpgm").domain == load_model("one/stays.dpgm").domain


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "stays.csv is a table of records: say what may be spent on it, as in --epsilon 1 --delta 1e-6"),
        (("--epsilon", "1"), "say what may be spent on it"),
        (("--epsilon", "1", "--delta", "1e-6"), "say whose the rows are: --person COLUMN with --rows-per-person"),
        ((*SAID, "--one-row-each"), "say whose the rows are"),
        ((*SAID[:2], *SAID[4:]), "--person and --rows-per-person go together"),
        ((*SAID[2:], "--person", "ids"), "--person: there is no column 'ids'; did you mean 'id'?"),
        ((*SAID, "--drop", "notes"), "--drop: there is no column 'notes'"),
        ((*SAID, "--drop", "age,ward,cost,admitted,note"), "no column is left to model"),
        (("--epsilon", "x", "--delta", "1e-6", "--one-row-each"), "epsilon"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_written(records, dpgm_command, words, message):
    code, _, err = dpgm_command("fit", records, *words)
    assert code and message in err
    assert [one.name for one in records.parent.iterdir()] == ["stays.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--rows-per-person", "100000"),
            "give more budget, or fewer attributes, or fewer rows_per_person than 100,000",
        ),
        (("--set", "structure.selector=mts"), "there is no selector 'mts'; did you mean 'mst'?"),
        (("--set", "structure.selector=bayes-net"), "privbayes, research; 'bayes-net' is of kind learner"),
        (
            ("--set", "structure.selector={name='mrf-fw',width=2}"),
            "describe the columns in the domain, or choose others, such as selector = 'auto'",
        ),
        (("--epsilon", "1e400"), "at most 400 digits"),
        (("--delta", ".5"), "delta = 0.5 would allow publishing one of 2 records as it is; choose a delta far below"),
        (("--epsilon", ".001"), "persons have: give epsilon = 0.05 or more, fewer rows_per_person, or describe"),
        (("--epsilon", ".001", "--set", "records=3000"), "persons have: give epsilon = 1 or more, fewer rows"),
    ],
)
def test_a_refusal_before_the_charge_leaves_nothing(records, dpgm_command, words, message):
    """Also no folder above, so that the corrected command works; a folder that was there stays."""
    said = ("fit", records, *SAID[:4], "--epsilon", "1", "--delta", "1e-6", *words)
    code, _, err = dpgm_command(*said, "-o", "a/b")
    assert code == 2 and message in err
    assert [one.name for one in records.parent.iterdir()] == ["stays.csv"]
    (records.parent / "mine").mkdir()
    assert dpgm_command(*said, "-o", "mine")[0] == 2
    assert not list((records.parent / "mine").iterdir())


def test_few_are_enough_that_the_spec_expects_so_many_records(records, dpgm_command):
    """A search for a small epsilon is refused unless the spec expects many records; a simulation is not."""
    small = ("fit", records, "--one-row-each", "--drop", "note,id", "--epsilon", ".002", "--delta", "1e-9")
    code, _, err = dpgm_command(*small)
    assert code == 2 and "or say how many there are: --set records=" in err
    said = shlex.split(err.split("how many there are: ")[1])
    for more in (said, ["--set", "simulation.seed=1"]):
        code, _, err = dpgm_command(*small, *more, "-o", f"few{len(more[1])}")
        assert code == 1 and "nothing was found of the 4 columns of any type" in err


def test_a_search_that_was_killed_says_how_to_spend_what_is_left(records, dpgm_command, killed):
    """The command that it prints works, for the command that was killed as for its spec, and finishes the run."""
    words = ("fit", records, *SAID, "--drop", "note")
    killed("dpgm_core.curator.labels:draw_columns", *words)
    said = [dpgm_command(*one)[2] for one in (words, ("fit", "stays/spec.toml"), ("fit", "stays/spec.toml", "--again"))]
    commands = [shlex.split(one.split("what is left can be spent with: dpgm ")[1]) for one in said]
    assert commands[0] == commands[1] == [one for one in commands[2] if one != "--again"] != commands[2]
    assert dpgm_command(*commands[0])[0] == 0
    assert "its run is finished, and its model is stays/stays.dpgm" in dpgm_command(*words)[2]


def test_a_run_that_was_killed_before_its_charge_or_after_its_search_says_how_to_go_on(records, dpgm_command, killed):
    words = ("fit", records, *SAID, "--drop", "note")
    killed("dpgm_core.curator.labels:persons_by_label", *words)
    assert "nothing is charged yet; go on with: dpgm fit stays/spec.toml" in dpgm_command(*words)[2]
    killed("dpgm_core.pipeline.run:Run._learn", "fit", "stays/spec.toml")
    for one in (words, ("fit", "stays/spec.toml")):
        err = dpgm_command(*one)[2]
        assert "the labels in stays/stays.labels.json are paid for" in err
        command = shlex.split(err.split("go on with: dpgm ")[1].split(". To spend")[0])
        assert command[:3] == ["fit", "stays/spec.toml", "--set"]
    assert dpgm_command(*command)[0] == 0


def test_a_run_that_was_killed_after_all_was_charged_names_no_way_on_that_is_refused(records, dpgm_command, killed):
    """Its tables were drawn and not saved, so that its labels have no budget left."""
    words = ("fit", records, *SAID, "--drop", "note")
    killed("dpgm_core.curator.funds:Receipt.save", *words)
    for one in (words, ("fit", "stays/spec.toml")):
        err = dpgm_command(*one)[2]
        assert "(epsilon, delta) = (0, 0) left, too little for them; another run needs another folder" in err
        assert "labels_from" not in err and "--again" not in err


def test_options_of_records_do_not_go_with_a_spec(records, dpgm_command):
    assert dpgm_command("init", records, "--private", "--epsilon", "3", "--delta", "1e-6", "-o", "run")[0] == 0
    for words in (["--epsilon", "2"], ["--share", "1/5"], ["--ask"], ["--one-row-each"]):
        code, _, err = dpgm_command("fit", "run/spec.toml", *words)
        assert code and "a spec says itself whose its rows are" in err


def test_init_leaves_to_the_run_what_nothing_describes(records, dpgm_command):
    """With a codebook for one column; the plan states what the search needs."""
    (records.parent / "codes.toml").write_text('[attributes.ward]\nlabels = ["surgery", "eye"]\n')
    words = ("--codebook", "codes.toml", "--private", "--drop", "note", *SAID, "-o", "run")
    code, out, err = dpgm_command("init", records, *words)
    assert code == 0 and "4 columns, 4 settled, 0 to do" in out, err
    text = (records.parent / "run" / "domain.toml").read_text()
    assert text.count("private = true") == 3 and "note" not in text and 'labels = ["surgery", "eye"]' in text
    code, out, err = dpgm_command("plan", "run/spec.toml", "--records", "3000")
    assert code == 0 and "types, ranges and labels of 3 columns are found first" in out + err
    refused = dpgm_command("init", records, "--private", "-o", "other")
    assert refused[0] and "columns found privately have labels, which cost a delta too" in refused[2]


def test_init_asks_for_what_nothing_describes(records, dpgm_command, monkeypatch):
    """Answers that cannot be are asked for again; the files are those of the options."""
    answers = ["ids", "id", "2", "integer 0 x", "integer 0 120", "labels surgery, eye", "", "later", "text", "drop"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))
    told = dpgm_command("init", records, "--ask", "--epsilon", "3", "--delta", "1e-6", "-o", "run")
    assert told[0] == 0, told[2]
    assert "there is no column 'ids'; did you mean 'id'?" in told[2] and "'text' is no answer" in told[2]
    domain = (records.parent / "run" / "domain.toml").read_text()
    assert '[attributes.age]\ntype = "integer"\nmin = 0\nmax = 120' in domain and "[attributes.note]" not in domain
    assert 'labels = ["surgery", "eye"]' in domain and "[attributes.cost]\nprivate = true" in domain
    assert "[attributes.admitted]\ntodo = " in domain
    assert 'person = "id"\nrows_per_person = 2' in (records.parent / "run" / "spec.toml").read_text()


@pytest.mark.parametrize("answers", ["", "id\n", "id\n2\n", "\nprivate\n"])
def test_input_that_ends_before_the_answers(records, dpgm_command, monkeypatch, answers):
    """As without a terminal: the options that replace answers are named, and no charge, which init never makes."""
    for command in ("init", "fit"):
        monkeypatch.setattr("sys.stdin", io.StringIO(answers))
        code, _, err = dpgm_command(command, records, "--ask", "--epsilon", "3", "--delta", "1e-6", "-o", "run")
        assert code == 2 and "the input ended before --ask had its answers, so nothing was written" in err
        assert "--person" in err and "--private" in err and "charged" not in err
        assert not (records.parent / "run").exists()


def test_an_interrupted_question_names_charges_only_where_there_are_some(records, dpgm_command, monkeypatch):
    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    for command, charges in (("init", False), ("fit", True)):
        code, _, err = dpgm_command(command, records, "--ask", "--epsilon", "3", "--delta", "1e-6", "-o", "run")
        assert code == 1 and ("what was charged stays charged" in err) is charges and "interrupted" in err


def test_a_file_in_the_way_is_looked_for_before_the_charge(records, dpgm_command):
    """And a found domain never replaces a file of that name."""
    (records.parent / "run").mkdir()
    (records.parent / "run" / "stays.synthetic.csv").write_text("mine\n")
    code, _, err = dpgm_command("fit", records, *SAID, "--drop", "note,age,cost", "-o", "run")
    assert code and "stays.synthetic.csv" in err and not (records.parent / "run" / "stays.ledger").exists()
    (records.parent / "run" / "stays.synthetic.csv").unlink()
    (records.parent / "run" / "stays.domain.toml").write_text("# mine\n")
    code, out, err = dpgm_command("fit", records, *SAID, "--drop", "note,age,cost", "-o", "run")
    assert code == 0 and "domain: run/stays.domain-2.toml" in out, err
    assert (records.parent / "run" / "stays.domain.toml").read_text() == "# mine\n"


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["with_goodness_of_fit", "Run._learn"])
def test_an_interrupted_run_gives_domain_and_records_by_the_commands_that_it_names(
    records, dpgm_command, ran, refused, monkeypatch, where
):
    """After its release was saved, and after the labels alone were."""
    with monkeypatch.context() as patch:
        patch.setattr(f"dpgm_core.pipeline.run.{where}", interrupted)
        code, _, err = dpgm_command("fit", records, *SAID, "--drop", "note")
        assert code == 1 and ": ;" not in err
    words = shlex.split(refused("fit", "stays/spec.toml").split("with: ")[1].split(". To spend")[0])
    learned = where == "with_goodness_of_fit"
    out, err = ran(*words[1:])
    assert "earlier run" not in err  # the labels have the first name
    assert ("stays.labels.json is there, with the labels of a run that did not finish" in err) is not learned
    domain = Path(out.split("\ndomain: ")[1].splitlines()[0])
    words = shlex.split(err.split("synthetic records are drawn with: ")[1].splitlines()[0].split(";")[0])
    ran(*words[1:], *(("--dialect", "stays/spec.toml") if learned else ()))
    path = domain.with_name(domain.name.replace(".domain.toml", ".synthetic.csv"))
    head, *rows = path.read_text(encoding="utf-16").splitlines()
    assert head == "age;ward;cost;admitted" and 2800 < len(rows) < 3200
    assert Domain.load(domain) == load_model(str(domain).replace(".domain.toml", ".dpgm")).domain


def test_learning_again_writes_the_same_domain_once(records, dpgm_command, facts):
    assert dpgm_command("fit", records, *SAID, "--drop", "note,age,cost")[0] == 0
    words = ("learn", "stays/stays.release.dpgm", "-o", "stays/stays.dpgm")
    assert facts(*words)["domain"] == facts(*words)["domain"] == "stays/stays.domain.toml"


def test_one_column_and_a_larger_share(records, dpgm_command):
    """There are no pairs to choose from; a fifth of the account goes to the search."""
    words = (*SAID, "--drop", "note,cost,age,admitted", "--share", "1/5")
    code, out, err = dpgm_command("fit", records, *words)
    assert code == 0 and "labels of 1 column" in out, err
    code, _, err = dpgm_command("fit", records, *SAID, "--share", "2", "-o", "other")
    assert code and "share must be above 0 and below 1" in err


def test_a_header_over_two_lines_is_refused_and_a_quote_that_is_a_letter_is_not(tmp_path, monkeypatch, dpgm_command):
    """A quoted name that does not end would make columns that are none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text('a,"b\nc",d\nx,u,s\n')
    code, _, err = dpgm_command("fit", "two.csv", "--one-row-each", "--epsilon", "1", "--delta", "1e-6")
    assert code and "a quoted name does not end in the first line" in err and not (tmp_path / "two").exists()
    (tmp_path / "inch.csv").write_text('a,5" pipe\nx,u\n')
    assert dpgm_command("init", "inch.csv", "-o", "inch")[0] == 0


def test_a_constraint_of_labels_that_were_not_found_is_named(records, dpgm_command):
    """It is left out of the model's domain, which is said."""
    (records.parent / "domain.toml").write_text(
        '[attributes.ward]\nlabels = { private = true, keep = 8, share = 0.4 }\n[attributes.age]\n'
        'type = "integer"\nmin = 0\nmax = 99\nbins = 4\n[constraints.rule]\ncolumns = ["ward", "age"]\n'
        'impossible = [["no ward", "0-24"]]\n'
    )  # fmt: skip
    (records.parent / "spec.toml").write_text(
        'name = "x"\ndata = { source = "csv", path = "stays.csv", delimiter = ";", encoding = "utf-16" }\n'
        'domain = "domain.toml"\nneighbours = "add-remove"\nperson = "id"\nrows_per_person = 2\ntotal = "estimated"\n'
        'budget = { epsilon = 20, delta = 1e-5 }\nmechanism = "gaussian"\nstructure = { cliques = [["ward", "age"]] }\n'
        'ledger = { path = "x.ledger", budget = { epsilon = 20, delta = 1e-5 }, create = true }\n'
    )
    code, _, err = dpgm_command("fit", "spec.toml")
    assert code == 0, err
    assert "constraint 'rule' does not apply to the labels that were found, and is left out" in err


def test_what_was_not_found_and_what_is_missing_is_said(tmp_path, monkeypatch, dpgm_command):
    """Texts among numbers are said to be missing, a column whose values are too rare to be described by its owner.

    Noise is fresh; 900 persons are above every threshold, and 3, of 1,200 labels each, five standard deviations below,
    which noise reaches in one test of 20,000.
    """
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{'>=800' if number % 4 == 0 else 200 + number % 599},k{number % 1200},x,"
        f"{'about ' if number % 25 == 0 else ''}{number % 3599},{number % 90}"
        for number in range(3600)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["pay,key,mark,stay,age", *rows]) + "\n")
    code, out, err = dpgm_command("fit", "a.csv", "--one-row-each", "--epsilon", "30", "--delta", "1e-5", "-o", "a")
    assert code == 0, err
    domain = (tmp_path / "a" / "a.domain.toml").read_text()
    said = {
        "pay": r"'>=800' taken as missing, of about [89]\d\d persons",
        "stay": r"texts taken as missing, of about 1\d\d",
    }
    for name, note in said.items():
        assert re.search(f"\n +{name}: {note}", out) and re.search(f"# {note}.*\n.attributes.{name}.", domain)
    assert (
        "\n         texts among numbers, dates and times count as missing\n" in out and "at most 64 of a column" in out
    )
    assert "Here texts among numbers," in domain.replace("\n# ", " ")
    assert (
        "nearly all of 'key' is 'other'" in err
        and "too rare to be found, or the search does not know their format" in err
    )
    assert "see dpgm validate" not in err


def test_fit_takes_names_that_look_like_values(tmp_path, monkeypatch, dpgm_command):
    """As init does, where its refusal names the option; a spec has its names already."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,2018\n" + "x,y\nz,y\n" * 300)
    words = ("fit", "a.csv", "--one-row-each", "--epsilon", "30", "--delta", "1e-5")
    code, _, err = dpgm_command(*words)
    assert code and "say --first-line-is-names" in err and not (tmp_path / "a").exists()
    code, _, err = dpgm_command(*words, "--first-line-is-names")
    assert code == 0, err
    assert load_model("a/a.dpgm").domain.names == ("id", "2018")
    code, _, err = dpgm_command("fit", "a/spec.toml", "--first-line-is-names")
    assert code and "a spec says itself" in err


def test_an_encoding_goes_to_the_spec(tmp_path, monkeypatch, dpgm_command):
    """The first line of the file is ASCII and others are not, which nothing but the owner can say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_bytes("town,age\nOrl\xe9ans,young\nParis,old\n".encode("latin-1") * 300)
    words = ("--epsilon", "30", "--delta", "1e-5", "--encoding")
    code, _, err = dpgm_command("fit", "a.csv", "--one-row-each", *words, "latin1")
    assert code and "must be 'utf-8' or 'utf-16' or " in err and "did you mean 'latin-1'?" in err
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
    code, _, err = dpgm_command("fit", "a.csv", "--one-row-each", *words, "cp1252")
    assert code == 0, err
    assert "Orl\xe9ans" in load_model("a/a.dpgm").domain["town"].labels
    assert dpgm_command("init", "a.csv", "-o", "b", "--private", *words, "cp1252")[0] == 0
    assert 'encoding = "cp1252"' in (tmp_path / "b" / "spec.toml").read_text()
    for words in (("a.csv", "a.csv"), ("b/domain.toml",)):
        code, _, err = dpgm_command("init", *words, "-o", "c", "--encoding", "cp1252", "--delta", "1e-6")
        assert code and "--encoding is for" in err and not (tmp_path / "c").exists()


def test_lines_that_are_unknown_in_all_columns_are_said(tmp_path, monkeypatch, dpgm_command):
    """A third of the lines is not UTF-8; noise is fresh, and 1,000 of 3,000 persons are far above 30 %, 900."""
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{town},{number % 60},{'xyz'[number % 3]}"
        for number in range(1000)
        for town in ("Orl\xe9ans", "Paris", "Metz")
    ]
    (tmp_path / "a.csv").write_text("\n".join(["town,age,kind", *rows]) + "\n", encoding="latin-1")
    words = ("fit", "a.csv", "--one-row-each", "--epsilon", "30", "--delta", "1e-5", "-o")
    code, _, err = dpgm_command(*words, "a")
    assert code == 0 and "rows count" not in err and "in every column at least 3" in err and "--encoding" in err, err
    code, _, err = dpgm_command(*words, "b", "--encoding", "latin-1")
    assert code == 0 and "in every column" not in err, err
