"""Writes `acp/shapes_v1.py` and `acp/shapes_v2.py` from the published schemas.

    python tests/schema/generate_tables.py PACKAGE_FOLDER [--check]

PACKAGE_FOLDER is an unpacked `@agentclientprotocol/sdk`. Types come from the unstable schema of each version;
whatever the stable one lacks is marked. `--check` writes nothing and exits 1 when a file on disk differs.

Every JSON Schema keyword is either translated, known to say nothing about validity, or an error: a new
release that uses one more keyword has to be looked at by a person. The forms of a table entry are described
in `acp/shapes.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOM = Path(__file__).resolve().parents[2] / "proxy" / "acp_proxy" / "acp"
Schema = dict[str, Any]
Node = str | tuple[Any, ...]

# Documentation, hints for code generators, and formats that a plain JSON Schema validator does not assert
# either.
SILENT = {
    "description",
    "title",
    "format",
    "default",
    "contentEncoding",
    "discriminator",
    "unevaluatedProperties",
}
FIELD_FLAGS = {"x-deserialize-default-on-error": "~", "x-deserialize-default-on-null": "0"}
SKIP_ITEMS = "x-deserialize-skip-invalid-items"
KINDS = {"Request": "request", "Notification": "notification"}


class UnexpectedSchemaError(Exception):
    """The schema says something this script cannot put into a table."""


def rules(schema: Schema) -> Schema:
    """The keywords of `schema` that decide what is valid, annotations left out."""
    return {k: v for k, v in schema.items() if k not in SILENT and not k.startswith("x-")}


def demand(fact: bool, what: str, schema: object) -> None:
    """Stop with the offending piece of schema unless `fact` holds."""
    if not fact:
        raise UnexpectedSchemaError(f"{what}: {json.dumps(schema)[:400]}")


class Tables:
    """Translates the definitions of one version."""

    def __init__(self, stable: Schema, unstable: Schema) -> None:
        self._stable = stable["$defs"]
        self._defs = unstable["$defs"]

    def methods(self) -> dict[str, tuple[tuple[str, str, str, str | None, bool], ...]]:
        """Method name → entries of (kind, side that receives it, params type, result type, unstable)."""
        found: dict[str, list[tuple[str, str, str, str | None, bool]]] = {}
        results = {}
        for name, schema in self._defs.items():
            if "x-method" in schema and name.endswith("Response"):
                results[schema["x-method"], schema["x-side"]] = name
        for name, schema in self._defs.items():
            if "x-method" not in schema or name.endswith("Response"):
                continue
            kind = next((kind for suffix, kind in KINDS.items() if name.endswith(suffix)), "")
            demand(bool(kind), f"{name} is neither request nor notification", schema)
            method, side = schema["x-method"], schema["x-side"]
            result = results[method, side] if kind == "request" else None
            found.setdefault(method, []).append((kind, side, name, result, name not in self._stable))
        return {method: tuple(sorted(entries, reverse=True)) for method, entries in sorted(found.items())}

    def types(self) -> dict[str, Node]:
        """Every type that a method, or an error answer, can carry."""
        entries = [entry for entries in self.methods().values() for entry in entries]
        waiting = ["Error", *(name for entry in entries for name in entry[2:4] if name)]
        found: dict[str, Node] = {}
        while waiting:
            name = waiting.pop()
            if name not in found:
                node, nullable = self._node(self._defs[name], self._stable.get(name))
                demand(not nullable, f"{name} may be null", self._defs[name])
                found[name] = node
                waiting.extend(names_in(node))
        refuse_cycles(found)
        return dict(sorted(found.items()))

    def _node(self, schema: Schema, stable: Schema | None = None) -> tuple[Node, bool]:
        """The table form of `schema`, and whether null is allowed besides."""
        said = rules(schema)
        if not said:
            return "any", False
        if set(said) == {"$ref"}:
            return said["$ref"].removeprefix("#/$defs/"), False
        if set(said) == {"allOf"}:
            demand(len(said["allOf"]) == 1, "several types in one", schema)
            return self._node(said["allOf"][0])
        types = said.get("type")
        if isinstance(types, list):
            demand(len(types) == 2 and types[1] == "null", "type list", schema)
            return self._node({**schema, "type": types[0]}, stable)[0], True
        if types == "object":
            return self._object(schema, stable), False
        if types == "array":
            demand(set(said) <= {"type", "items", "minItems"}, "array keywords", schema)
            item, nullable = self._node(said["items"])
            demand(not nullable, "nullable items", schema)
            return ("list", item, bool(schema.get(SKIP_ITEMS)), said.get("minItems", 0)), False
        if types is None:
            return self._alternatives(schema, stable)
        return self._scalar(said), False

    def _scalar(self, said: Schema) -> Node:
        kind = said["type"]
        if kind == "string":
            demand(set(said) <= {"type", "minLength"}, "string keywords", said)
            return (kind, said["minLength"]) if "minLength" in said else "string"
        if kind in ("integer", "number"):
            demand(set(said) <= {"type", "minimum", "maximum"}, "number keywords", said)
            low, high = said.get("minimum"), said.get("maximum")
            return kind if low is None and high is None else (kind, low, high)
        demand(kind in ("boolean", "null") and set(said) == {"type"}, "scalar", said)
        return str(kind)

    def _alternatives(self, schema: Schema, stable: Schema | None) -> tuple[Node, bool]:
        options, exclusive = alternatives(schema)
        demand(len(rules(schema)) == 1, "keywords beside alternatives", schema)
        concrete = [option for option in options if rules(option) != {"type": "null"}]
        nullable = len(concrete) < len(options)
        if nullable and len(concrete) == 1:
            return self._node(concrete[0])[0], True
        if any("const" in option for option in options):
            return self._enum(options), False
        if any(constant_property(option) for option in options):
            return self._union(schema, (), stable), False
        nodes = [self._node(option)[0] for option in options]
        if "any" in nodes:  # a last alternative that takes everything makes the others mere hints
            return "any", nullable
        return (nodes[0] if len(nodes) == 1 else ("either", exclusive, (), tuple(nodes))), False

    def _enum(self, options: list[Schema]) -> Node:
        known = [option["const"] for option in options if "const" in option]
        rest = [rules(option) for option in options if "const" not in option]
        base = options[0]["type"]
        demand(rest in ([], [{"type": base}]), "enum fallback", options)
        if base == "integer":
            demand(bool(rest), "closed integer enum", options)
            return "integer"
        return ("enum", bool(rest), tuple(known))

    def _object(self, schema: Schema, stable: Schema | None) -> Node:
        said = rules(schema)
        extra = said.get("additionalProperties", True)
        demand(
            set(said) <= {"type", "properties", "required", "additionalProperties", "anyOf", "oneOf"},
            "object keywords",
            schema,
        )
        if extra is not True:
            demand("properties" not in said, "typed extra properties beside named ones", schema)
            return ("map", self._node(extra)[0])
        fields = self._fields(schema, stable)
        if "anyOf" not in said and "oneOf" not in said:
            return ("object", fields) if fields else "object"
        options, exclusive = alternatives(schema)
        if any(constant_property(option) for option in options):
            return self._union(schema, fields, stable)
        return ("either", exclusive, fields, tuple(self._node(option)[0] for option in options))

    def _fields(self, schema: Schema, stable: Schema | None, without: str = "") -> tuple[Node, ...]:
        """(name, flags, node) of each property."""
        required = schema.get("required", [])
        known = schema.get("properties", {})
        demand(set(required) <= set(known), "required but undescribed", schema)
        fields = []
        for name, piece in known.items():
            if name == without:
                continue
            node, nullable = self._node(piece)
            flags = "!" if name in required else ""
            flags += "?" if nullable else ""
            flags += "".join(flag for key, flag in FIELD_FLAGS.items() if piece.get(key))
            flags += "u" if stable is not None and name not in stable.get("properties", {}) else ""
            list_like = node[0] == "list"
            demand("!" not in flags or "~" not in flags or list_like, f"lenient but required {name}", schema)
            fields.append((name, flags, node))
        return tuple(fields)

    def _union(self, schema: Schema, fields: tuple[Node, ...], stable: Schema | None) -> Node:
        options, _ = alternatives(schema)
        tag = next(constant_property(option) for option in options if constant_property(option))
        settled = known_tags(stable, tag) if stable is not None else known_tags(schema, tag)
        variants: list[tuple[str, str, Node]] = []
        other: Node | None = None
        untagged: Node | None = None
        for option in options:
            node = self._variant(option, tag)
            about_tag = rules(option.get("properties", {}).get(tag, {}))
            if "const" in about_tag:
                variants.append((about_tag["const"], "" if about_tag["const"] in settled else "u", node))
            elif about_tag == {"type": "string"} and "not" in option:
                demand(known_tags(option["not"], tag) == known_tags(schema, tag), "fallback excludes", option)
                other = node
            else:
                demand(
                    untagged is None and (not about_tag or about_tag == {"type": "null"}), "variant", option
                )
                untagged = node
        absent_only = any(
            rules(option.get("properties", {}).get(tag, {})) == {"type": "null"} for option in options
        )
        if other is not None and untagged is not None and not absent_only:
            demand(not fields, "fields beside an open union with an untagged form", schema)
            return ("either", False, (), (("union", tag, (), tuple(variants), other, None), untagged))
        return ("union", tag, fields, tuple(variants), other, untagged)

    def _variant(self, option: Schema, tag: str) -> Node:
        """What a variant holds besides its tag."""
        said = rules(option)
        fields = self._fields(option, None, without=tag)
        bases = [self._node(base)[0] for base in said.get("allOf", [])]
        demand(
            set(said)
            <= {"type", "properties", "required", "allOf", "not", "anyOf", "oneOf", "additionalProperties"},
            "variant keywords",
            option,
        )
        if bases:
            demand(len(bases) == 1 and not fields, "variant mixes forms", option)
            return bases[0]
        if "anyOf" in said or "oneOf" in said:
            options, exclusive = alternatives(option)
            return ("either", exclusive, fields, tuple(self._node(piece)[0] for piece in options))
        return ("object", fields) if fields else "object"


def alternatives(schema: Schema) -> tuple[list[Schema], bool]:
    """The alternatives of `schema`, and whether only one of them may hold."""
    demand(("anyOf" in schema) != ("oneOf" in schema), "alternatives", schema)
    return (schema["oneOf"], True) if "oneOf" in schema else (schema["anyOf"], False)


def constant_property(schema: Schema) -> str:
    """The property that tells this alternative from its siblings, or ""."""
    return next((name for name, piece in schema.get("properties", {}).items() if "const" in piece), "")


def known_tags(schema: Schema, tag: str) -> set[str]:
    """The tags a union lists."""
    found = (option.get("properties", {}).get(tag, {}) for option in alternatives(schema)[0])
    return {piece["const"] for piece in found if "const" in piece}


def names_in(node: object) -> Iterator[str]:
    """The type names a table entry refers to: names of types alone begin with a capital."""
    if isinstance(node, tuple):
        if node[:1] == ("enum",):
            return
        for piece in node:
            yield from names_in(piece)
    elif isinstance(node, str) and node[:1].isupper():
        yield node


def refuse_cycles(types: dict[str, Node]) -> None:
    """Stop when a type contains itself: the interpreter compiles types to the end and has no depth limit."""
    settled: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        demand(name not in above, "type contains itself", [*above, name])
        if name not in settled:
            for inner in names_in(types[name]):
                visit(inner, (*above, name))
            settled.add(name)

    for name in types:
        visit(name, ())


def module_text(version: str, package: Path) -> str:
    """The whole generated module of one version."""
    folder = package / "schema" / version
    stable, unstable = (json.loads((folder / f"schema{kind}.json").read_text()) for kind in ("", ".unstable"))
    release = json.loads((package / "package.json").read_text())["version"]
    tables = Tables(stable, unstable)
    lines = [
        f'"""Methods and types of protocol {version}, one a line; `acp/shapes.py` describes the forms.',
        "",
        f"Generated from @agentclientprotocol/sdk {release} by tests/schema/generate_tables.py: do not edit.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any",
        "",
        "METHODS: dict[str, tuple[tuple[str, str, str, str | None, bool], ...]] = {",
        *(f"    {quoted(name)}: {quoted(entries)}," for name, entries in tables.methods().items()),
        "}",
        "",
        "TYPES: dict[str, Any] = {",
        *(f"    {quoted(name)}: {quoted(node)}," for name, node in tables.types().items()),
        "}",
        "",
    ]
    return "\n".join(lines)


def quoted(piece: object) -> str:
    """`repr` with double quotes; names and tags hold no quote or backslash."""
    text = repr(piece)
    demand('"' not in text and "\\" not in text, "name needs escaping", text)
    return text.replace("'", '"')


def out_of_step(package: Path, room: Path = ROOM) -> dict[Path, str]:
    """The generated files whose text on disk differs, with the text they ought to have."""
    wanted = {room / f"shapes_{version}.py": module_text(version, package) for version in ("v1", "v2")}
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


def main(arguments: list[str]) -> int:
    """Write or check the tables; the exit status."""
    parser = argparse.ArgumentParser(
        description="Generate the tables of acp_proxy.acp from the published schemas."
    )
    parser.add_argument("package", type=Path, help="unpacked @agentclientprotocol/sdk")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 when a table is out of step"
    )
    options = parser.parse_args(arguments)
    differing = out_of_step(options.package)
    for path, text in differing.items():
        print(f"{'out of step' if options.check else 'written'}: {path.name}")
        if not options.check:
            path.write_text(text)
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
