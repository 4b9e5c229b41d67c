"""Reads YAML with the line and column of every key and value, and reports ambiguous YAML."""

import re
from collections.abc import Iterator
from dataclasses import field
from typing import NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

from relaunch.adapters.core_schema import (
    MAX_CHARACTERS,
    MAX_NODES,
    MERGE_KEY,
    SCALAR_TAGS,
    STANDARD_TAG,
    TAGS,
    CoreSchemaLoader,
    Plain,
)
from relaunch.core.records import dataclass

KeyPath = tuple[str | int, ...]

# No encoding writes an unpaired surrogate, and no environment variable holds NUL; YAML's escapes make both.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")

# What `://` is in is no key.
_GLUED_KEY = re.compile(r"[ -]*([A-Za-z_][\w-]*):[^\s:/]")
_AFTER_A_TEXT = ("could not find expected ':'", "mapping values are not allowed here")


class Mark(NamedTuple):
    """A position in the file; line and column start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Place:
    """The positions of a key and its value (both that of the value for a list item), and the value as written."""

    key: Mark
    value: Mark
    raw: str = ""


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """A problem of a definition file; `key_path` is like `jobs.resnet.on[0].github`."""

    file: str
    line: int
    column: int
    key_path: str
    message: str

    def __str__(self) -> str:
        """Return `relaunch.yaml:7:5: jobs.resnet: unknown key …`."""
        where = f"{self.file}:{self.line}:{self.column}: "
        return where + (f"{self.key_path}: {self.message}" if self.key_path else self.message)


@dataclass(slots=True)
class Document:
    """The value of a file, the places of all keys and values, and the problems found."""

    file: str
    value: Plain = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[DefinitionProblem] = field(default_factory=list)
    _reported: set[str] = field(default_factory=set)

    def report(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Add a problem at a path or its nearest enclosing path in the file, unless the path already has one."""
        shown = write_path(path)
        if shown in self._reported:
            return
        place = self._nearest_place(path)
        is_there = path in self.places
        mark = place.key if at_key or not is_there else place.value
        self.report_at(mark, path, message)

    def report_at(self, mark: Mark, path: KeyPath, message: str) -> None:
        """Add a problem at a position."""
        shown = write_path(path)
        self._reported.add(shown)
        self.problems.append(DefinitionProblem(self.file, mark.line, mark.column, shown, message))

    def _nearest_place(self, path: KeyPath) -> Place:
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return Place(Mark(1, 1), Mark(1, 1))


def write_path(path: KeyPath) -> str:
    """Format a key path: `jobs.resnet.on[0].github`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def read_document(text: str, file: str) -> Document:
    """Read a YAML document; errors are added to `problems`."""
    document = Document(file)
    if len(text) > MAX_CHARACTERS:
        document.report((), f"the file is longer than {MAX_CHARACTERS:,} characters")
        return document
    try:
        loader = CoreSchemaLoader(text := text.removeprefix("\ufeff"))
    except ReaderError as error:  # it reads all of a text at once
        document.report_at(
            _mark_at(text, error.position), (), f"not valid YAML: it may not contain U+{error.character:04X}"
        )
        return document
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        _report_syntax(document, text, error)
        return document
    except (ValueError, OverflowError):  # PyYAML converts escapes (`\U00110000`) and versions unchecked
        mark = loader.get_mark()
        document.report_at(Mark(mark.line + 1, mark.column + 1), (), "not valid YAML: a number is too large here")
        return document
    if node is None:
        document.report((), "the file is empty: it needs the key `jobs`")
        return document
    document.value = _Reader(document).read_root(node)
    return document


def _mark_at(text: str, position: int) -> Mark:
    before = text[:position]
    return Mark(before.count("\n") + 1, position - before.rfind("\n"))


def _report_syntax(document: Document, text: str, error: yaml.MarkedYAMLError) -> None:
    if (forgotten := _find_glued_key(text, error)) is not None:
        place, key = forgotten
        document.report_at(place, (), f"not valid YAML: a space is missing behind `{key}:`")
        return
    mark = error.problem_mark or error.context_mark
    words = [part for part in (error.context, error.problem) if part]
    hint = " (YAML is indented with spaces, not tabs)" if "\\t" in str(error.problem) else ""
    if "got '{'" in str(error.problem):
        hint = ' (a text with braces needs quotes: "{branch}")'
    place = Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)
    document.report_at(place, (), f"not valid YAML: {', '.join(words)}{hint}")


def _find_glued_key(text: str, error: yaml.MarkedYAMLError) -> tuple[Mark, str] | None:
    """Return the key without a space behind its colon that an error is about, and its place, if it is about one.

    To YAML `key:value` is a text, which goes on on the next line, so that PyYAML sees an error only there.
    """
    mark = error.problem_mark
    if mark is None or error.problem not in _AFTER_A_TEXT:
        return None
    lines = text.splitlines()
    # The last line has none behind it; the context is where a text began.
    for number in (mark.line, (error.context_mark or mark).line, mark.line - 1):
        found = _GLUED_KEY.match(lines[number]) if 0 <= number < len(lines) else None
        if found is not None:
            return Mark(number + 1, found.start(1) + 1), found[1]
    return None


class _Reader:
    """Converts nodes to plain values and records their places."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: set[int] = set()
        self._count = 0

    def read_root(self, node: Node) -> Plain:
        mark = _start(node)
        self._document.places[()] = Place(mark, mark)
        return self._read(node, ())

    def _read(self, node: Node, path: KeyPath) -> Plain:
        self._count += 1
        if self._count > MAX_NODES or id(node) in self._open:
            if self._count <= MAX_NODES + 1:
                self._document.report(path, "anchors and aliases here expand without end")
                self._count = MAX_NODES + 1
            return None
        self._open.add(id(node))
        value = self._read_by_kind(node, path)
        self._open.discard(id(node))
        return value

    def _read_by_kind(self, node: Node, path: KeyPath) -> Plain:
        if node.tag not in TAGS[type(node)]:
            self._report_tag(node, path)
            return None
        match node:
            case MappingNode():
                return {key: self._read(value, (*path, key)) for key, value in self._entries(node, path)}
            case SequenceNode():
                return [self._read_item(item, (*path, index)) for index, item in enumerate(node.value)]
            case _:
                return self._read_scalar(node, path)

    def _report_tag(self, node: Node, path: KeyPath) -> None:
        tag = node.tag.replace(STANDARD_TAG, "!!")
        self._document.report_at(_start(node), path, f"the tag {tag} is not supported: write the plain value")

    def _read_item(self, node: Node, path: KeyPath) -> Plain:
        mark = _start(node)
        self._document.places[path] = Place(mark, mark, _raw(node))
        return self._read(node, path)

    def _entries(self, node: MappingNode, path: KeyPath) -> Iterator[tuple[str, Node]]:
        seen: dict[str, Mark] = {}
        for key_node, value_node in node.value:
            key_mark = _start(key_node)
            if not isinstance(key_node, ScalarNode):
                self._document.report_at(key_mark, path, "a key must be a single word")
                continue
            key = str(key_node.value)
            if key_node.tag not in SCALAR_TAGS:
                self._report_tag(key_node, path)
                continue
            if _UNUSABLE.search(key):
                self._document.report_at(key_mark, path, "a key has NUL or half a surrogate pair: remove its escape")
                continue
            if key == MERGE_KEY:
                self._document.report_at(
                    key_mark, path, f"merge keys (`{MERGE_KEY}`) are not supported: repeat the keys"
                )
                continue
            if key in seen:
                first = seen[key].line
                self._document.report_at(key_mark, (*path, key), f"`{key}` is here twice: line {first} has it already")
                continue
            seen[key] = key_mark
            self._document.places[(*path, key)] = Place(key_mark, _start(value_node), _raw(value_node))
            yield key, value_node

    def _read_scalar(self, node: Node, path: KeyPath) -> Plain:
        raw = str(node.value)
        match node.tag.removeprefix(STANDARD_TAG):
            case "null":
                self._document.report(path, "has no value: give it one or leave the key out", at_key=True)
                return None
            case "bool":
                return self._read_boolean(raw, path)
            case "int" | "float" as kind:
                return self._read_number(raw, kind, path)
            case _ if _UNUSABLE.search(raw):
                self._document.report(path, "has NUL or half a surrogate pair: remove its escape")
                return None
            case _:
                return raw

    def _read_boolean(self, raw: str, path: KeyPath) -> bool | None:
        if raw.lower() not in {"true", "false"}:  # with an explicit tag
            self._document.report(path, "is neither true nor false")
            return None
        return raw.lower() == "true"

    def _read_number(self, raw: str, kind: str, path: KeyPath) -> Plain:
        try:
            return int(raw) if kind == "int" else float(raw)
        except ValueError:  # an explicit tag on other text, or thousands of digits
            self._document.report(path, "is not a number")
            return None


def _start(node: Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)


def _raw(node: Node) -> str:
    return str(node.value) if isinstance(node, ScalarNode) else ""
