"""The core schema of YAML 1.2, within limits, with which everything is read here that somebody else wrote.

PyYAML implements YAML 1.1, in which `on` is true, `1:30` is 90 and merge keys (`<<`) copy mappings, which may double
them with every line.
"""

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml
from yaml.composer import ComposerError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]

STANDARD_TAG = "tag:yaml.org,2002:"
SCALAR_TAGS = {f"{STANDARD_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null")}
TAGS: dict[type[Node], set[str]] = {
    MappingNode: {f"{STANDARD_TAG}map"},
    SequenceNode: {f"{STANDARD_TAG}seq"},
    ScalarNode: SCALAR_TAGS,
}
"""The tags that are read, by the kind of the node."""
# PyYAML takes about a second for as much text, and for as many values.
MAX_CHARACTERS = 250_000
MAX_NODES = 20_000  # in the text, and again with every alias expanded
MAX_DEPTH = 50
MERGE_KEY = "<<"


class PlainYamlError(ValueError):
    """A text is not valid YAML, or has what is not supported; the message has nothing of the text."""


class CoreSchemaLoader(yaml.SafeLoader):
    """A loader with the YAML 1.2 core schema; merge keys and timestamps are strings."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own class attribute

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._count = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose a node while depth and number are within the limits; the text is scanned no further than needed."""
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"nested deeper than {MAX_DEPTH} levels")
        if self._count > MAX_NODES:
            self._refuse(f"more than {MAX_NODES:,} values")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, problem: str) -> NoReturn:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        raise ComposerError(None, None, problem, event.start_mark)


for _kind, _pattern, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+\Z", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", "-+.0123456789"),
):
    CoreSchemaLoader.add_implicit_resolver(f"{STANDARD_TAG}{_kind}", re.compile(_pattern), _first)

CORE_SCHEMA_RESOLVERS = CoreSchemaLoader.yaml_implicit_resolvers
"""What plain scalars are in the core schema, by their first character."""


def read_plain(text: str, max_characters: int = MAX_CHARACTERS) -> Plain:
    """Read a document, None if it is empty; keys are texts.

    Raises:
        PlainYamlError: it is not valid YAML, beyond the limits, or has merge keys, other tags or a key twice.
    """
    if len(text) > max_characters:
        raise PlainYamlError(f"it is longer than {max_characters:,} characters")
    try:
        node = CoreSchemaLoader(text.removeprefix("\ufeff")).get_single_node()
    except (yaml.YAMLError, ValueError, OverflowError):  # PyYAML converts escapes (`\U00110000`) and versions unchecked
        # Not chained: the error quotes the text.
        raise PlainYamlError("it is not valid YAML, or has too many values") from None
    return None if node is None else _PlainReader().read(node)


class _PlainReader:
    """Converts nodes to plain values."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: Node) -> Plain:
        self._count += 1
        if self._count > MAX_NODES or id(node) in self._open or len(self._open) > MAX_DEPTH:
            raise PlainYamlError("its anchors and aliases expand without end")
        if node.tag not in TAGS[type(node)]:
            raise PlainYamlError("it has tags (`!`), which are not supported: write the plain values")
        self._open.add(id(node))
        value = self._read_by_kind(node)
        self._open.discard(id(node))
        return value

    def _read_by_kind(self, node: Node) -> Plain:
        match node:
            case MappingNode():
                return dict(self._entries(node))
            case SequenceNode():
                return [self.read(each) for each in node.value]
            case _:
                return _scalar(node.tag.removeprefix(STANDARD_TAG), str(node.value))

    def _entries(self, node: MappingNode) -> Iterator[tuple[str, Plain]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, ScalarNode) else ""
            if not isinstance(key_node, ScalarNode) or key_node.tag not in SCALAR_TAGS:
                raise PlainYamlError("it has a key that is no single word")
            if key == MERGE_KEY:
                raise PlainYamlError(f"merge keys (`{MERGE_KEY}`) are not supported: repeat the keys")
            if key in seen:
                raise PlainYamlError("it has a key twice in one mapping")
            seen.add(key)
            yield key, self.read(value_node)


def _scalar(kind: str, raw: str) -> Plain:
    match kind:
        case "null":
            return None
        case "bool" if raw.lower() in {"true", "false"}:
            return raw.lower() == "true"
        case "int" | "float":
            return _number(kind, raw)
        case "str":
            return raw
        case _:
            raise PlainYamlError("it has a tag of another kind than its value")


def _number(kind: str, raw: str) -> Plain:
    try:
        return int(raw) if kind == "int" else float(raw)
    except ValueError:  # an explicit tag on other text, or thousands of digits
        raise PlainYamlError("it has a number that is none, or is too long") from None
