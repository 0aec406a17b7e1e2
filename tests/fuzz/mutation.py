"""How a sound file is spoiled: bytes, words, JSON values and members of archives, all drawn from one generator."""

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

_NUMBERS = ["0", "-1", "1", "2", "1e308", "1e-320", "nan", "inf", "-0.0", "1/0", "1/3", "0.5", "7" * 30, str(2**31)]
_NUMBERS += [str(2**63), str(-(2**63) - 1), "9" * 5000, "0x7", "1_0", "4194305", "1e400"]
_TEXTS = ["", " ", "\0", "\n", "\x1b[31m", "é", "\ud800", "a" * 300, '"', "'", "\\", "../x", "name", "?", "{", "]", "="]
_VALUES: list[Any] = [None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e308, 2**63, 10**40, float("nan"), float("inf")]
_VALUES += ["1/3", "", "x", "1e999999", "9" * 500, "\0", "\x1b]0;x\x07", "\ud800"]
_VALUES += [[], {}, [[]], {"": {}}, ["a", "a"], [1, "a"]]
_WORD = re.compile(rb'"[^"\n]*"|[-+.\w]+|[^\s\w]')
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


def spoil_bytes(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """One to four edits of bytes; what they were. other: a sound file of the same kind, for splices."""
    data, done = bytearray(content), []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        edit = rng.choice(_BYTE_EDITS)
        edit(rng, data, other)
        done.append(edit.__name__)
    return bytes(data), done


def _span(rng: random.Random, size: int) -> tuple[int, int]:
    start = rng.randrange(size + 1)
    return start, min(size, start + rng.choice([1, 2, 4, 16, 100, 1000]))


def flip(rng: random.Random, data: bytearray, other: bytes) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def put(rng: random.Random, data: bytearray, other: bytes) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice([0, 1, 9, 10, 13, 32, 34, 44, 48, 127, 128, 255])


def put_integer(rng: random.Random, data: bytearray, other: bytes) -> None:
    at, width = rng.randrange(len(data) + 1), rng.choice([2, 4, 8])
    value = rng.choice([0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]) % 2 ** (8 * width)
    data[at : at + width] = value.to_bytes(width, rng.choice(["little", "big"]))


def truncate(rng: random.Random, data: bytearray, other: bytes) -> None:
    del data[rng.randrange(len(data) + 1) :]


def cut(rng: random.Random, data: bytearray, other: bytes) -> None:
    start, end = _span(rng, len(data))
    del data[start:end]


def repeat(rng: random.Random, data: bytearray, other: bytes) -> None:
    start, end = _span(rng, len(data))
    at = rng.randrange(len(data) + 1)
    data[at:at] = data[start:end] * rng.choice([1, 1, 2, 50])


def splice(rng: random.Random, data: bytearray, other: bytes) -> None:
    start, end = _span(rng, len(other))
    at = rng.randrange(len(data) + 1)
    data[at : at + rng.choice([0, end - start])] = other[start:end]


def noise(rng: random.Random, data: bytearray, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 4, 30]))


def number(rng: random.Random, data: bytearray, other: bytes) -> None:
    found = list(_NUMBER.finditer(bytes(data[:50_000])))
    if found:
        one = rng.choice(found)
        data[one.start() : one.end()] = rng.choice(_NUMBERS).encode()


_BYTE_EDITS: list[Callable[[random.Random, bytearray, bytes], None]] = [flip, put, put_integer, truncate, cut]
_BYTE_EDITS += [repeat, splice, noise, number]


def spoil_binary(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """Mostly bytes overwritten where they stand, so that the rest of a file keeps its places."""
    if rng.random() < 0.3:
        return spoil_bytes(rng, content, other)
    data, done = bytearray(content), []
    for _ in range(rng.choice([1, 1, 2, 5])):
        edit = rng.choice([flip, put, put_integer])
        edit(rng, data, other)
        done.append(edit.__name__)
    return bytes(data), done


def spoil_text(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """Words and lines replaced, dropped, repeated or exchanged; now and then bytes."""
    if rng.random() < 0.3:
        return spoil_bytes(rng, content, other)
    if rng.random() < 0.3:
        lines = content.split(b"\n")
        one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
        how = rng.choice(["drop line", "repeat line", "exchange lines", "nest"])
        if how == "drop line":
            del lines[one]
        elif how == "repeat line":
            lines[one:one] = [lines[two]] * rng.choice([1, 3, 100])
        elif how == "exchange lines":
            lines[one], lines[two] = lines[two], lines[one]
        else:
            lines[one] += rng.choice([b"[", b"{", b"(", b"a.", b'"']) * rng.choice([1, 2000, 100_000])
        return b"\n".join(lines), [how]
    data, done = content, []
    for _ in range(rng.choice([1, 1, 2, 4])):
        words = list(_WORD.finditer(data[:100_000]))
        if not words:
            break
        one, two = rng.choice(words), rng.choice(words)
        fresh = rng.choice([rng.choice(_NUMBERS).encode(), two.group(), b"", _quoted(rng.choice(_TEXTS))])
        data = data[: one.start()] + fresh + data[one.end() :]
        done.append("word")
    return data, done


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")


def spoil_json(rng: random.Random, value: Any) -> tuple[Any, list[str]]:
    """The value with something inside replaced, dropped, repeated, nested or renamed. It is changed in place."""
    if not isinstance(value, (dict, list)) or not value:
        return rng.choice(_VALUES), ["value"]
    table = value
    while True:
        keys = list(table) if isinstance(table, dict) else list(range(len(table)))
        key = rng.choice(keys)
        if isinstance(table[key], (dict, list)) and table[key] and rng.random() < 0.85:
            table = table[key]
            continue
        break
    how = rng.choice(["value", "value", "value", "number", "drop", "repeat", "nest", "rename", "grow"])
    old = table[key]
    if how == "number" and isinstance(old, (int, float)) and not isinstance(old, bool):
        table[key] = rng.choice([old + 1, -old, old * 2, old / 2, old * 10**9, str(old), old + 0.5])
    elif how == "drop":
        del table[key]
    elif how == "repeat" and isinstance(table, list):
        table[key:key] = [old] * rng.choice([1, 2, 1000])
    elif how == "nest":
        for _ in range(rng.choice([1, 2, 900])):
            old = [old]
        table[key] = old
    elif how == "rename" and isinstance(table, dict):
        table[rng.choice([*keys, rng.choice(_TEXTS)])] = table.pop(key)
    elif how == "grow" and isinstance(old, str):
        table[key] = old * rng.choice([2, 1000])
    else:
        how = "value"
        table[key] = rng.choice(_VALUES)
    return value, [f"json {how}"]


def spoil_archive(rng: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """Members of a zip file: documents and arrays spoiled, members dropped, exchanged, added; now and then bytes."""
    if rng.random() < 0.25:
        return spoil_bytes(rng, content, other)
    members = _members(content)
    name = rng.choice(list(members))
    done = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        how = rng.choice(["inside", "inside", "inside", "inside", "drop", "exchange", "add"])
        name = rng.choice(list(members) or ["model.json"])
        if how == "inside" and name in members:
            members[name], inside = _spoil_member(rng, name, members[name])
            done += inside
        elif how == "drop":
            members.pop(name, None)
        elif how == "exchange":
            strange = _members(other)
            members[name] = strange[rng.choice(list(strange))]
        else:
            members[rng.choice(["release-2.json", "tables-2.npz", "x", "../x", "a/", "model.json"])] = b"{}"
        done += [] if how == "inside" else [how]
    buffer = io.BytesIO()
    odd = rng.random() < 0.03
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, inside in members.items():
            archive.writestr(zipfile.ZipInfo(name), inside, rng.choice([12, 14] if odd else [0, 8]))
    content = buffer.getvalue()
    if rng.random() < 0.1:
        content, bytewise = spoil_bytes(rng, content, other)
        done += bytewise
    return content, done


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _spoil_member(rng: random.Random, name: str, content: bytes) -> tuple[bytes, list[str]]:
    if name.endswith(".json") and rng.random() < 0.9:
        try:
            document, done = spoil_json(rng, json.loads(content))
            return json.dumps(document).encode("utf-8", "surrogatepass"), done
        except (ValueError, RecursionError):
            pass
    if name.endswith(".npz") and rng.random() < 0.6:
        size = rng.choice([0, 1, 5, 6, 7, 10**5])
        fill = rng.choice([0, 1, -1, 2**62, 1e300, np.nan, np.inf, -np.inf])
        kind = rng.choice(["i8", "f8", "f4", ">f8", "u8", "?", "c16", "S8"])
        buffer = io.BytesIO()
        with np.errstate(all="ignore"):
            values = np.full(size, complex(fill) if kind == "c16" else fill).real.astype("f8")
            values = np.nan_to_num(values).astype(kind) if kind not in ("f8", "f4", ">f8") else values.astype(kind)
        rng.choice([np.savez, np.savez, np.savez_compressed])(buffer, **{rng.choice(["values"] * 5 + ["x"]): values})
        return buffer.getvalue(), ["array"]
    return spoil_bytes(rng, content, content)
