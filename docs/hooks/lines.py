"""Where lines of code may break: MkDocs calls `on_page_content` with the HTML of each page.

A browser breaks after every hyphen, so that `--codebook` ends as "-" and "-codebook", or `1e-6` as "1e-" and "6". Words
with a hyphen are kept whole in commands and in running text. What a command prints is cut at the right of its box: its
sentences wrap instead, and its tables, which would lose their columns, still scroll.
"""

from __future__ import annotations

import re

__all__ = ["on_page_content"]

_CODE = re.compile(r"(<code\b[^>]*>)(.*?)(</code>)", re.DOTALL)
_TEXT = re.compile(r"(?<=>)[^<]+")
_BLOCK = re.compile(r'(<div class="[^"]*\blanguage-(sh|text)\b[^"]*">.*?<code>)(.*?)(</code>)', re.DOTALL)
_HYPHENS = re.compile(r"[^\s<>]*-[^\s<>]*")
#: A longer word, such as a path, may break where there is no room for it.
_LONGEST = 32
#: What a line of a message may begin with: "spent:   ", or blanks.
_BEGINNING = re.compile(r"\s*(\w+( \w+)*:\s+)?")
_LINE = re.compile(r"^((?:<[^>]*>)*)([^<\n]+)$", re.MULTILINE)


def on_page_content(html: str, **_: object) -> str:
    """Return the page with marks for `docs/css/extra.css`: `whole` does not break, `message` wraps."""
    html = _BLOCK.sub(_block, html)
    parts = re.split(r"(<pre\b.*?</pre>)", html, flags=re.DOTALL)
    return "".join(part if part.startswith("<pre") else _CODE.sub(_inline, part) for part in parts)


def _block(found: re.Match[str]) -> str:
    start, language, body, end = found.groups()
    if language == "text":
        return start + _LINE.sub(_message, body) + end
    return start + _whole(body) + end


def _inline(found: re.Match[str]) -> str:
    start, body, end = found.groups()
    return start + _whole(body) + end


def _whole(body: str) -> str:
    """Mark the words with a hyphen in the texts between tags."""
    return _TEXT.sub(lambda text: _HYPHENS.sub(_marked, text[0]), f">{body}")[1:]


def _marked(word: re.Match[str]) -> str:
    return f'<span class="whole">{word[0]}</span>' if 1 < len(word[0]) <= _LONGEST else word[0]


def _message(found: re.Match[str]) -> str:
    before, line = found.groups()
    start = _BEGINNING.match(line)
    if start is not None and "  " in line[start.end() :].rstrip():
        return found[0]
    return f'{before}<span class="message">{line}</span>'
