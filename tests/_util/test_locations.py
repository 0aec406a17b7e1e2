"""Paths and URLs: which is which, what a URL shows, and what it must not hold."""

import pickle
from pathlib import Path

import pytest

from dpgm_core._util.locations import Url, place
from dpgm_core.errors import DataError, SourceRefused
from dpgm_core.sources import as_source


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("x.csv", Path("x.csv")),
        (Path("a/x.csv"), Path("a/x.csv")),
        ("C:\\data\\x.csv", Path("C:\\data\\x.csv")),
        ("file:///a%20b/x.csv", Path("/a b/x.csv")),
        ("s3://bucket/x.csv", Url("s3://bucket/x.csv")),
        (Url("memory://x"), Url("memory://x")),
    ],
)
def test_what_is_a_path_and_what_a_url(given: str | Path | Url, found: Path | Url) -> None:
    assert place(given) == found


@pytest.mark.parametrize(
    ("url", "shown", "secret"),
    [
        ("s3://b/x.parquet", "s3://b/x.parquet", False),
        ("https://h/x.csv?X-Amz-Signature=5ECRET", "https://h/x.csv?...", True),
        ("https://h/x.csv?sv=1&SIG=5ECRET", "https://h/x.csv?...", True),
        ("https://h/x.csv?access_token=5ECRET#5ECRET", "https://h/x.csv?...", True),
        ("https://h/x.csv?token", "https://h/x.csv?...", True),
        ("https://h/x.csv?version=5ECRET", "https://h/x.csv?...", False),
        ("https://h/x.csv#5ECRET", "https://h/x.csv", False),
        ("sftp://me@h/x.csv", "sftp://me@h/x.csv", False),
    ],
)
def test_a_query_is_never_shown(url: str, shown: str, secret: bool) -> None:
    """Whatever it holds; whether it lets somebody in is told by the names in it."""
    one = Url(url)
    assert str(one) == shown and one.is_secret == secret and one.name == shown.split("/")[-1].removesuffix("?...")
    assert "5ECRET" not in repr(one) + repr(as_source(one)) and pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://me:5ECRET@h/x.csv", "must hold no password"),
        ("s3://KEY:5ECRET@bucket/x.csv", "must hold no password"),
        ("simplecache::s3://b/5ECRET.csv", "names one place"),
        ("zip://x.csv::https://h/5ECRET.zip", "names one place"),
        ("https://[h/5ECRET.csv", "cannot be read"),
    ],
)
def test_what_a_url_must_not_hold(url: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        as_source(url)
    assert "5ECRET" not in str(caught.value)


def test_a_url_that_became_a_path_is_told(tmp_path: Path) -> None:
    """Paths lose one of two slashes."""
    with pytest.raises(DataError, match="give it as a text"):
        as_source(Path("s3://bucket/x.parquet"))


def test_without_fsspec_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked of anybody."""
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    for name in ("x.csv", "x.csv.gz", "x.parquet", "x.arrow", "folder"):
        with pytest.raises(SourceRefused, match=r"install dpgm-core\[remote\], or copy it here first$"):
            as_source(f"s3://bucket/{name}").names()  # type: ignore[union-attr]
