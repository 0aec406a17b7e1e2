"""The frame of a page: nothing is fetched, and only its own script may run."""

import base64
import hashlib
import re

from dpgm.report import make_report


def test_nothing_is_fetched_and_only_the_one_script_may_run(model, parsed):
    """The policy allows its script by hash; no element, style or address asks for anything."""
    page = make_report(model)
    seen = parsed(page)
    (script,) = seen.inside["script"]
    (policy,) = (one["content"] for one in seen.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in seen.elements}
    assert not any({"src", "srcset", "action", "onclick"} & one.keys() for _, one in seen.elements)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert not re.search(r"url\(|@import", page)
