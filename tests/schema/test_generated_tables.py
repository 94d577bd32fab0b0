"""The generated tables say what the published schemas say."""

from __future__ import annotations

from pathlib import Path

import pytest
from generate_tables import Tables, UnexpectedSchemaError, main, module_text, out_of_step, refuse_cycles

from schema_cache import package_dir

pytestmark = pytest.mark.peers


def test_tables_on_disk_are_in_step_with_the_package() -> None:
    assert out_of_step(package_dir()) == {}
    assert main([str(package_dir()), "--check"]) == 0


def test_a_changed_or_missing_table_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "shapes_v1.py").write_text(
        module_text("v1", package_dir()).replace("required", "optional") + "#"
    )
    differing = out_of_step(package_dir(), tmp_path)
    assert sorted(path.name for path in differing) == ["shapes_v1.py", "shapes_v2.py"]
    for path, text in differing.items():
        path.write_text(text)
    assert out_of_step(package_dir(), tmp_path) == {}


def translated(schema: dict[str, object]) -> object:
    defs = {
        "ThingRequest": {"x-method": "thing", "x-side": "agent", **schema},
        "ThingResponse": {"x-method": "thing", "x-side": "agent", "type": "object"},
        "Error": {"type": "object"},
    }
    return Tables({"$defs": defs}, {"$defs": defs}).types()["ThingRequest"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^x"},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"type": "object", "minProperties": 1},
        {"type": "integer", "multipleOf": 2},
        {"type": ["string", "integer"]},
        {"type": "object", "properties": {}, "required": ["a"]},
    ],
)
def test_a_keyword_the_tables_cannot_express_stops_the_script(schema: dict[str, object]) -> None:
    with pytest.raises(UnexpectedSchemaError):
        translated(schema)


def test_annotations_become_flags() -> None:
    fields = {
        "a": {"type": "string"},
        "b": {"type": ["integer", "null"], "minimum": 0, "x-deserialize-default-on-error": True},
        "c": {"type": "array", "items": {"type": "boolean"}, "x-deserialize-default-on-null": True},
    }
    assert translated({"type": "object", "properties": fields, "required": ["a"]}) == (
        "object",
        (("a", "!", "string"), ("b", "?~", ("integer", 0, None)), ("c", "0", ("list", "boolean", False, 0))),
    )


def test_a_type_that_contains_itself_is_refused() -> None:
    with pytest.raises(UnexpectedSchemaError):
        refuse_cycles({"A": ("list", "B", False, 0), "B": ("object", (("a", "", "A"),))})
