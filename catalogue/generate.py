"""Generate the bundled catalogue of accelerated instance types and the zones where they are offered.

Each release of moto (Apache-2.0) contains a response of DescribeInstanceTypes. Types that AWS no longer describes are
in older releases only: releases.json lists them, newest first; a type is taken from the first release that has it. The
overlay is maintained by hand and corrects wrong or missing values; every correction has a reason. Each row of the
catalogue names its source. The output depends only on these inputs.

    make catalogue                               download the releases and write the catalogue
    python catalogue/generate.py --check         compare it with the bundled one; exit status 1 when they differ

The newest release is read from where it is installed. If others have not been downloaded, `--check` keeps their rows
and reports that.
"""

import argparse
import dataclasses
import difflib
import gzip
import json
import sys
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "layers" / "relaunch"))

from relaunch.adapters.aws.ec2.instance_types import UnreadableTypeError, read_type  # noqa: E402 - after its path is added
from relaunch.adapters.offerings.bundled import read_rows  # noqa: E402
from relaunch.core.offerings.instance_types import InstanceType  # noqa: E402

OVERLAY = HERE / "overlay.json"
RELEASES = HERE / "releases.json"
WHEELS = HERE.parent / ".cache/catalogue"
DATA = HERE.parent / "layers/relaunch/relaunch/adapters/offerings/data"
TYPES_FILE, ZONES_FILE = "instance_types.json", "zones.json"
DUMP = "ec2/resources/instance_types.json"
OFFERINGS = "ec2/resources/instance_type_offerings/availability-zone/"

Dump = tuple[str, Mapping[str, Mapping[str, Any]]]


class CatalogueError(Exception):
    """The inputs are invalid; the message names the type and the error."""


class Release:
    """The package data of a moto release, installed or in its wheel."""

    def __init__(self, label: str, date: str, wheels: Path) -> None:
        self.source = f"moto {label}"
        self.date = date
        self._folder = installed_package(label)
        self._wheel = wheels / f"moto-{label}.whl"

    @property
    def is_available(self) -> bool:
        """Whether the release is installed or its wheel has been downloaded."""
        return self._folder is not None or self._wheel.exists()

    def read(self, start: str) -> dict[str, Any]:
        """Return the content of the JSON files, also compressed ones, with this path prefix by file stem."""
        found = {}
        for name, content in self._files(start):
            packed = name.endswith(".gz")
            stem = name.rsplit("/", 1)[-1].removesuffix(".gz").removesuffix(".json")
            found[stem] = json.loads(gzip.decompress(content) if packed else content)
        return found

    def dump(self) -> Dump:
        """Return its response of DescribeInstanceTypes by type."""
        return self.source, self.read(DUMP)["instance_types"]

    def _files(self, start: str) -> Iterable[tuple[str, bytes]]:
        if self._folder is not None:
            folder, _, beginning = start.rpartition("/")
            for path in sorted((self._folder / folder).glob(f"{beginning}*")):
                yield str(path), path.read_bytes()
            return
        with zipfile.ZipFile(self._wheel) as wheel:
            for name in sorted(wheel.namelist()):
                if name.startswith(f"moto/{start}"):
                    yield name, wheel.read(name)


def installed_package(label: str) -> Path | None:
    """Return the folder of the installed moto if it has this version."""
    try:
        is_wanted = version("moto") == label
    except PackageNotFoundError:
        return None
    spec = find_spec("moto")
    return Path(spec.submodule_search_locations[0]) if is_wanted and spec and spec.submodule_search_locations else None


def build_catalogue(
    dumps: Iterable[Dump], overlay: Mapping[str, Any], kept: Sequence[InstanceType] = ()
) -> list[InstanceType]:
    """Merge dumps, of which the first with a type is used, and apply the overlay; ordered by family and size.

    `kept` are existing rows that no dump has; the overlay is not applied to them.

    Raises:
        CatalogueError: a correction changes nothing or is incomplete; a type cannot be read.
    """
    rows: dict[str, InstanceType] = {}
    for source, described in dumps:
        for name in sorted(described.keys() - rows.keys()):
            try:
                row = read_type(name, described[name], source)
            except UnreadableTypeError as error:
                raise CatalogueError(f"{source}: {error}") from error
            if row:
                rows[name] = row
    finished = {row.name: row for row in kept}
    for correction in overlay.get("corrections", ()):
        for name in _names_of(correction, rows, finished):
            rows[name] = _apply_correction(name, rows.get(name), correction["set"], correction["reason"])
    return sorted(
        (finished | rows).values(), key=lambda row: (row.name.split(".")[0], row.vcpus, row.memory_mib, row.name)
    )


def _names_of(
    correction: Mapping[str, Any], rows: Mapping[str, InstanceType], finished: Mapping[str, InstanceType]
) -> list[str]:
    names = [name for name in correction.get("types", ()) if name not in finished]
    for model in correction.get("models", ()):
        named = [row.name for row in rows.values() if row.accelerator_model == model]
        if not named and all(row.accelerator_model != model for row in finished.values()):
            raise CatalogueError(f"overlay: no type has the model {model}")
        names += named
    return names


def _apply_correction(name: str, row: InstanceType | None, changes: Mapping[str, Any], reason: str) -> InstanceType:
    """Apply a correction; it must be complete for a type that no dump has."""
    fields = ", ".join(changes)
    values: dict[str, Any] = {
        field: tuple(value) if isinstance(value, list) else value for field, value in changes.items()
    }
    try:
        if row is None:
            return InstanceType(name=name, **values, source=f"overlay: {reason}")
        changed = dataclasses.replace(row, **values)
    except TypeError as error:
        raise CatalogueError(f"overlay: {name}: {error}") from error
    if changed == row:
        raise CatalogueError(f"overlay: {name}: {fields} is already in the dump; remove the entry")
    return dataclasses.replace(changed, source=f"{row.source}; overlay, {fields}: {reason}")


def render_catalogue(rows: Sequence[InstanceType]) -> str:
    """Return the catalogue: columns, sources, then one row of values per line."""
    sources = sorted({row.source for row in rows})
    columns = [field.name for field in dataclasses.fields(InstanceType)]
    lines = []
    for row in rows:
        values = dataclasses.asdict(row) | {"source": sources.index(row.source)}
        lines.append(json.dumps([values[column] for column in columns]))
    body = ",\n".join(lines)
    return f'{{"columns": {json.dumps(columns)},\n"sources": {json.dumps(sources, indent=0)},\n"rows": [\n{body}\n]}}\n'


def render_zones(
    offered: Mapping[str, Iterable[Mapping[str, str]]], names: Collection[str], source: str, date: str
) -> str:
    """Return the zones of each type in each region, without the region's name."""
    lines = []
    for region in sorted(offered):
        zones: dict[str, list[str]] = {name: [] for name in names}
        for entry in offered[region]:
            if entry["InstanceType"] in zones:
                zones[entry["InstanceType"]].append(entry["Location"].removeprefix(region))
        found = {name: " ".join(sorted(each)) for name, each in zones.items() if each}
        lines.append(f"{json.dumps(region)}: {json.dumps(found)}")
    body = ",\n".join(lines)
    return f'{{"source": {json.dumps(source)},\n"date": {json.dumps(date)},\n"regions": {{\n{body}\n}}}}\n'


def generate(releases: Sequence[Release], overlay: Mapping[str, Any], bundled: Path | None) -> dict[str, str]:
    """Return the content of the catalogue's files by name.

    The rows of releases that are not available are taken from the files in `bundled`.

    Raises:
        CatalogueError: a release is not available and `bundled` is None, or the inputs are invalid.
    """
    missing = [release.source for release in releases if not release.is_available]
    if missing and (bundled is None or releases[0].source in missing):
        raise CatalogueError(f"{', '.join(missing)}: neither installed nor downloaded; `make catalogue` downloads them")
    kept: list[InstanceType] = []
    if missing and bundled is not None:
        stored = read_rows(json.loads((bundled / TYPES_FILE).read_text()))
        kept = [row for row in stored if row.source.split(";")[0] in missing]
        sys.stdout.write(f"{len(kept)} rows of {', '.join(missing)} are kept: not downloaded\n")
    rows = build_catalogue((release.dump() for release in releases if release.is_available), overlay, kept)
    names, newest = [row.name for row in rows], releases[0]
    return {
        TYPES_FILE: render_catalogue(rows),
        ZONES_FILE: render_zones(newest.read(OFFERINGS), names, newest.source, newest.date),
    }


def main(arguments: Sequence[str]) -> int:
    """Generate or compare the catalogue; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate the bundled catalogue of accelerated instance types.")
    parser.add_argument("--check", action="store_true", help="compare only; exit status 1 when they differ")
    parser.add_argument("--overlay", type=Path, default=OVERLAY)
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="where fetch.py put the releases")
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    releases = [Release(each["version"], each["date"], options.wheels) for each in json.loads(RELEASES.read_text())]
    try:
        files = generate(releases, json.loads(options.overlay.read_text()), options.output if options.check else None)
    except (CatalogueError, OSError, ValueError) as error:
        sys.stderr.write(f"no catalogue: {error}\n")
        return 2
    if options.check:
        return max(_compare(options.output / name, text) for name, text in files.items())
    for name, text in files.items():
        (options.output / name).write_text(text)
        sys.stdout.write(f"{name} written\n")
    return 0


def _compare(output: Path, text: str) -> int:
    bundled = output.read_text() if output.exists() else ""
    if bundled == text:
        sys.stdout.write(f"{output.name} is what the releases and the overlay make\n")
        return 0
    difference = difflib.unified_diff(bundled.splitlines(), text.splitlines(), "bundled", "generated", lineterm="", n=0)
    sys.stdout.write("\n".join(difference) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
