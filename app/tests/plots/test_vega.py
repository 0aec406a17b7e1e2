"""Vega-Lite specifications."""

import json

import pytest

from app.tests.plots.shown import CASES, drawn


@pytest.mark.parametrize(("kind", "model"), CASES)
def test_a_specification_is_plain_json_with_what_it_names(kind, model):
    """Marks, encodings and values; each field that an encoding names is in the values; labels are printable."""
    spec = drawn(kind, model).vega()
    values = json.loads(json.dumps(spec, allow_nan=False))["data"]["values"]
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/") and values
    views = spec.get("layer", [spec])
    assert all("mark" in view for view in views)
    encodings = [spec.get("encoding", {}), *(view.get("encoding", {}) for view in views)]
    fields = {channel["field"] for encoding in encodings for channel in encoding.values()}
    assert fields and fields <= {key for value in values for key in value}
    assert all(str(part).isprintable() for value in values for part in value.values())
    assert spec["title"]["text"].isprintable() and spec["title"]["subtitle"]
