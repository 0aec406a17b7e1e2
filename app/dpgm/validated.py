"""The owner's note that records were compared with a domain: which domain and when, and nothing of what was found.

It is written whatever `dpgm validate` found, so that neither it nor its being there tells anything about records.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path

from dpgm_core._util.files import VALIDATED_FILE, atomic_write, bounded_bytes, check_writable
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import OptionError

__all__ = ["check_validated", "digest", "write_validated"]

_MOST_BYTES = 2**12
_SAYS = "The owner has compared the data with this domain. Nothing in this file was computed from the data."


def digest(domain: Domain) -> str:
    """What names a domain: SHA-256 of all that its file can say, in one spelling.

    >>> digest(Domain.from_sizes({"a": 2})) == digest(Domain.from_dict({"a": 2}))
    False
    >>> digest(Domain.from_sizes({"a": 2}))[:7]
    'sha256:'
    """
    spelled = json.dumps(domain.to_dict(), ensure_ascii=True, allow_nan=False)
    return f"sha256:{hashlib.sha256(spelled.encode()).hexdigest()}"


def write_validated(path: str | Path, domain: Domain) -> None:
    """Write the note; an earlier one is replaced, and nothing else. Raises ModelFileError."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    facts = {"dpgm-validated": 1, "domain": digest(domain), "date": today, "says": _SAYS}
    check_writable(path, VALIDATED_FILE)
    atomic_write(path, json.dumps(facts, separators=(",\n ", ": ")).encode() + b"\n", VALIDATED_FILE)


def check_validated(path: str | Path, domain: Domain) -> None:
    """Raise OptionError unless the note names this very domain. No record is looked at, and no finding asked for."""
    again = "run dpgm validate on this spec again, or leave `validated` out"
    try:
        facts = json.loads(bounded_bytes(Path(path), _MOST_BYTES))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OptionError(f"cannot read the validated file {path}: {reason}; dpgm validate writes one") from None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or facts.get("dpgm-validated") != 1:
        raise OptionError(f"{path} is not a file of dpgm validate; {again}")
    if facts.get("domain") != digest(domain):
        raise OptionError(f"{path} names another domain than this run has, which was edited since; {again}")
