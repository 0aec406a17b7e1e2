"""Addresses of databases: written in a spec, or looked up and never shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from attrs import field, frozen

from dpgm_core.sources import SourceRefused
from dpgm_sql.dialect import Engine
from dpgm_sql.session import driver

__all__ = ["Address", "is_place", "looked_up", "read_address"]

_FORMS = "duckdb:///FILE, sqlite:///FILE or postgresql://HOST/DATABASE (four slashes before an absolute path)"
_SECRETS = (
    "keep the password in ~/.pgpass or in the variable PGPASSWORD, or the whole address in an environment variable or "
    "a keyring: address_from = 'env:NAME' or 'keyring:SERVICE/USER'"
)
#: What an address may set besides; passwords are not among them, nor what would change what a session may do.
_SETTINGS = {
    *("host", "hostaddr", "port", "user", "dbname", "application_name", "channel_binding", "gssencmode", "krbsrvname"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "ssl_min_protocol_version", "target_session_attrs"),
    *("passfile", "service", "connect_timeout"),
}
_OF_PASSWORDS = {"password", "sslpassword"}
#: Names alone: somebody may put the address itself here, or what else libpq takes for one, with its password.
_PLACE = re.compile(r"env:[\w.-]+|keyring:(?!.*(://|password\s*=)).+/[^/]+", re.DOTALL)


@frozen(kw_only=True)
class Address:
    """An engine and what its driver is given: a file's path, or a URI, which may hold a password and is not shown.

    where: how messages call it, a text without secrets.
    """

    engine: Engine
    where: str
    target: str = field(repr=False)


def read_address(text: object, where: str | None = None) -> Address:
    """An address as it is written in a spec. where: its name, if it is one that nobody may see.

    Raises SourceRefused, which never quotes the address: it may hold a password.

    >>> read_address("duckdb:///visits.db").target
    'visits.db'
    >>> read_address("postgresql://me:secret@localhost/clinic")
    Traceback (most recent call last):
    dpgm_core.errors.SourceRefused: database holds a password, which a spec must not; keep the password in ~/.pgpass...
    """
    own = "database" if where is None else where
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise SourceRefused(f"{own} must be a text such as {_FORMS}")
    scheme, mark, rest = text.partition("://")
    scheme = "postgresql" if scheme == "postgres" else scheme
    if not mark or scheme not in ("duckdb", "sqlite", "postgresql"):
        raise SourceRefused(f"{own} is no address of a database that is known here; write {_FORMS}")
    if scheme == "postgresql":
        shown, target = _server(rest, own, may_hold_password=where is not None)
    else:
        shown = target = _file(rest, own, scheme)
        shown = f"{scheme}:///{shown}"
    return Address(engine=cast(Engine, scheme), where=shown if where is None else where, target=target)


def is_place(name: object) -> bool:
    """Whether it is 'env:NAME' or 'keyring:SERVICE/USER', so that it may be shown.

    >>> is_place("env:CLINIC"), is_place("env:host=clinic password=secret")
    (True, False)
    """
    return isinstance(name, str) and _PLACE.fullmatch(name) is not None


def looked_up(name: object) -> Address:
    """The address that `address_from` names, looked up now. Raises SourceRefused, which quotes the name alone."""
    kind, _, place = name.partition(":") if isinstance(name, str) and is_place(name) else ("", "", "")
    if kind == "env":
        text = os.environ.get(place)
        if text is None:
            raise SourceRefused(f"the environment has no variable {place!r}, where the database's address should stand")
        return read_address(text, where=f"the address in env:{place}")
    service, _, user = place.rpartition("/")
    if kind == "keyring":
        address = _from_keyring(service, user)
        if address is None:
            raise SourceRefused(f"the keyring holds nothing for {user!r} of {service!r}; store the address there first")
        return read_address(address, where=f"the address in keyring:{service}/{user}")
    # Not quoted: somebody may have put the address itself here.
    raise SourceRefused("address_from must be 'env:NAME' or 'keyring:SERVICE/USER'")


def _from_keyring(service: str, user: str) -> str | None:
    keyring = driver("keyring", "keyring", "keyring")
    try:
        secret: str | None = keyring.get_password(service, user)
        return secret
    except Exception:  # of any backend; its words may hold what it was asked for
        pass
    raise SourceRefused("the keyring cannot be read; unlock it, or use address_from = 'env:NAME'")


def _file(rest: str, own: str, scheme: str) -> str:
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or not path or "?" in path or path == ":memory:":
        raise SourceRefused(
            f"{own} must name the file behind three slashes, {scheme}:///FILE, without settings; a database in memory "
            "has no records to count"
        )
    return str(Path(path))


def _server(rest: str, own: str, *, may_hold_password: bool) -> tuple[str, str]:
    """Return how it is shown, and the URI for the driver."""
    split = _split(rest)
    if split is None:
        raise SourceRefused(f"{own} is no address of PostgreSQL; write postgresql://HOST/DATABASE")
    parts, settings = split
    user, password = parts.username, parts.password
    if not may_hold_password and (password is not None or _OF_PASSWORDS & set(settings)):
        raise SourceRefused(f"{own} holds a password, which a spec must not; {_SECRETS}")
    unknown = set(settings) - _SETTINGS - (_OF_PASSWORDS if may_hold_password else set())
    if unknown or parts.fragment:
        raise SourceRefused(
            f"{own} has a setting that is not known here; those of PostgreSQL that may be given are "
            f"{', '.join(sorted(_SETTINGS))}"
        )
    hosts = parts.netloc.rpartition("@")[2]
    name = "" if user is None else quote(unquote(user), safe="") + "@"
    return f"postgresql://{name}{hosts}{parts.path}", f"postgresql://{rest}"


def _split(rest: str) -> tuple[SplitResult, dict[str, str]] | None:
    """The parts of a URI and its settings; None for what is none. The errors of the parsers quote what they read."""
    try:
        parts = urlsplit(f"postgresql://{rest}")
        return parts, dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        return None


def with_settings(uri: str, settings: dict[str, str]) -> str:
    """A URI of PostgreSQL with settings that it does not have yet."""
    present = {name for name, _ in parse_qsl(urlsplit(uri).query, keep_blank_values=True)}
    more = urlencode({name: value for name, value in settings.items() if name not in present})
    return f"{uri}{'&' if '?' in uri else '?'}{more}" if more else uri
