"""Addresses: which are understood, and that a password stays where it is."""

import sys
from types import SimpleNamespace

import pytest
from dpgm_sql.address import looked_up, read_address, with_settings

from dpgm_core.sources import SourceRefused

PLANTED = "pl4nted"


@pytest.mark.parametrize(
    ("text", "engine", "target"),
    [
        ("duckdb:///visits.db", "duckdb", "visits.db"),
        ("duckdb:////data/visits.db", "duckdb", "/data/visits.db"),
        ("sqlite:///a%20b%23.db", "sqlite", "a b#.db"),
        ("postgresql://localhost/clinic", "postgresql", "postgresql://localhost/clinic"),
        (
            "postgres://me@localhost:5433/clinic?sslmode=require",
            "postgresql",
            "postgresql://me@localhost:5433/clinic?sslmode=require",
        ),
    ],
)
def test_addresses_are_understood(text, engine, target):
    """Files are relative with three slashes and absolute with four; a server's address is the driver's."""
    address = read_address(text)
    assert (address.engine, address.target) == (engine, target)


@pytest.mark.parametrize("text", [
    f"postgresql://me:{PLANTED}@localhost/clinic", f"postgresql://:{PLANTED}@localhost/clinic",
    f"postgresql://localhost/clinic?password={PLANTED}", f"postgresql://localhost/clinic?pass%77ord={PLANTED}",
    f"postgresql://localhost/clinic?sslpassword={PLANTED}", f"postgresql://localhost/clinic?options={PLANTED}",
    f"postgresql://localhost/clinic?{PLANTED}", f"postgresql://localhost/clinic#{PLANTED}",
    f"postgresql://[{PLANTED}/clinic", f"me:{PLANTED}@localhost", f"mysql://me:{PLANTED}@localhost/clinic",
    f"host=localhost password={PLANTED}", f"duckdb:///visits.db?key={PLANTED}", f"duckdb://{PLANTED}",
    ["postgresql://me:pl4nted@localhost/clinic"], {"password": PLANTED}, 7, None, "", "duckdb:///",
    "sqlite:///:memory:", "postgresql\0://x/y", b"sqlite:///x",
])  # fmt: skip
def test_what_is_no_address_or_holds_a_password_is_refused_unquoted(text):
    """Whatever is written, the refusal shows nothing of it."""
    with pytest.raises(SourceRefused) as refused:
        read_address(text)
    assert PLANTED not in str(refused.value)
    assert refused.value.__context__ is None or PLANTED not in str(refused.value.__context__)


def test_an_address_with_a_password_is_looked_up_and_not_shown(monkeypatch):
    """From the environment or a keyring; what it is called in messages, and its repr, have only the place."""
    secret = f"postgresql://me:{PLANTED}@localhost/clinic?sslpassword={PLANTED}"
    monkeypatch.setenv("CLINIC", secret)
    stored = {("clinic/db", "me"): secret}
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda *who: stored.get(who)))
    for place in ("env:CLINIC", "keyring:clinic/db/me"):
        address = looked_up(place)
        assert address.target == secret
        assert address.where == f"the address in {place}"
        assert PLANTED not in f"{address!r}{address}{address.where}"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("env:NO_SUCH_VARIABLE", "no variable 'NO_SUCH_VARIABLE'"),
        ("keyring:clinic/nobody", "holds nothing"),
        ("keyring:clinic/broken", "cannot be read"),
        ("keyring:clinic", "must be"),
        (f"postgresql://me:{PLANTED}@h/d", "must be"),
        ("env:", "must be"),
        (7, "must be"),
    ],
)
def test_a_place_that_holds_none_is_said(monkeypatch, place, words):
    """In one line, without what a keyring says itself."""

    def get_password(service, user):
        if user == "broken":
            raise RuntimeError(PLANTED)

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=get_password))
    with pytest.raises(SourceRefused, match=words) as refused:
        looked_up(place)
    assert PLANTED not in f"{refused.value}{refused.value.__context__}{refused.value.__cause__}"


def test_a_missing_driver_says_what_to_install(monkeypatch):
    """The line names the extra."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SourceRefused, match=r"pip install 'dpgm-sql\[keyring\]'"):
        looked_up("keyring:clinic/me")


def test_settings_are_added_but_not_changed():
    """What the address says itself stays."""
    uri = with_settings("postgresql://h/d?connect_timeout=3", {"connect_timeout": "10", "keepalives_idle": "30"})
    assert uri == "postgresql://h/d?connect_timeout=3&keepalives_idle=30"
