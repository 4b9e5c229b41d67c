"""Generate the bundled catalogue of accelerated instance types from DescribeInstanceTypes dumps and an overlay.

moto (Apache-2.0) ships a dump of DescribeInstanceTypes with each release; the newest one is read where it is installed.
Types that AWS no longer describes are in older releases only: name their dumps with `--dump`, newest first; a type is
taken from the first dump that has it. The overlay is kept by hand and corrects what EC2 says wrongly; every change has
its reason. Each row of the catalogue says where it comes from. The output depends on nothing but these inputs.

    python catalogue/generate.py                 write the catalogue
    python catalogue/generate.py --check         compare it with the bundled one; exit status 1 when they differ
    python catalogue/generate.py --dump 5.1.10=instance_types.json.gz
"""

import argparse
import dataclasses
import difflib
import gzip
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "layers" / "relaunch"))

from relaunch.core.catalogue import AWS_NEURON, InstanceType  # noqa: E402 - the path of our own package comes first

OVERLAY = HERE / "overlay.json"
OUTPUT = HERE.parent / "layers/relaunch/relaunch/adapters/catalogue_data/instance_types.json"

Dump = tuple[str, Mapping[str, Mapping[str, Any]]]


class CatalogueError(Exception):
    """The inputs do not make a catalogue: the message names the type and what is wrong with it."""


def installed_dump() -> tuple[str, Path]:
    """Return the version of the installed moto and the path of its dump."""
    spec = find_spec("moto")
    if spec is None or not spec.submodule_search_locations:
        raise CatalogueError("moto is not installed; name a dump with --dump VERSION=PATH")
    return version("moto"), Path(spec.submodule_search_locations[0]) / "ec2/resources/instance_types.json.gz"


def load_dump(label: str, path: Path) -> Dump:
    """Load one dump, compressed or not, as a mapping or as the list that DescribeInstanceTypes answers."""
    content = path.read_bytes()
    loaded = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    if isinstance(loaded, list):
        loaded = {each["InstanceType"]: each for each in loaded}
    return f"moto {label}", loaded


def read_type(name: str, described: Mapping[str, Any], source: str) -> InstanceType | None:
    """Read one described type; None when it has no GPU, Neuron device or inference accelerator.

    Inferentia types carry NeuronInfo and InferenceAcceleratorInfo for the same devices: the first one counts.
    """
    facts = _read_neuron(name, described) or _read_gpu(name, described) or _read_inference(name, described)
    if facts is None:
        return None
    architectures = described["ProcessorInfo"]["SupportedArchitectures"]
    return InstanceType(
        name=name,
        vcpus=described["VCpuInfo"]["DefaultVCpus"],
        memory_mib=described["MemoryInfo"]["SizeInMiB"],
        architecture="arm64" if "arm64" in architectures else "x86_64",
        source=source,
        **facts,
    )


def _read_neuron(name: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
    device = _only_one(name, described.get("NeuronInfo", {}).get("NeuronDevices", ()))
    if device is None:
        return None
    return {
        "accelerator_manufacturer": AWS_NEURON,
        "accelerator_model": device["Name"],
        "neuron_devices": device["Count"],
        "neuron_cores_per_device": device["CoreInfo"]["Count"],
        "neuron_memory_mib": device["MemoryInfo"]["SizeInMiB"],
    }


def _read_gpu(name: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read GpuInfo; dumps older than the fractional types have neither LogicalGpuCount nor GpuPartitionSize."""
    gpu = _only_one(name, described.get("GpuInfo", {}).get("Gpus", ()))
    if gpu is None:
        return None
    return {
        "accelerator_manufacturer": gpu["Manufacturer"],
        "accelerator_model": gpu["Name"],
        "gpu_count": gpu["Count"],
        "logical_gpu_count": gpu.get("LogicalGpuCount", gpu["Count"]),
        "gpu_partition_size": gpu.get("GpuPartitionSize", 1.0),
        "gpu_memory_mib": gpu["MemoryInfo"]["SizeInMiB"],
    }


def _read_inference(name: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read accelerators that jobs cannot use, so that a selection can say why it rejects them."""
    accelerator = _only_one(name, described.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()))
    if accelerator is None:
        return None
    maker = accelerator["Manufacturer"]
    if maker == AWS_NEURON:
        raise CatalogueError(
            f"{name}: this dump has no NeuronInfo, so its cores are not known; name a newer dump first"
        )
    return {
        "accelerator_manufacturer": maker,
        "accelerator_model": accelerator["Name"].removeprefix(maker).strip(),
    }


def _only_one(name: str, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(entries) > 1:
        raise CatalogueError(f"{name} has {len(entries)} kinds of accelerator; the catalogue's form holds one")
    return entries[0] if entries else None


def build_catalogue(dumps: Iterable[Dump], overlay: Mapping[str, Any]) -> list[InstanceType]:
    """Merge dumps, the first one that has a type wins, and lay the overlay over them; ordered by family and size.

    Raises:
        CatalogueError: a row of the overlay changes nothing, or does not make a whole row; a type cannot be read.
    """
    rows: dict[str, InstanceType] = {}
    for source, described in dumps:
        for name in sorted(described.keys() - rows.keys()):
            if row := read_type(name, described[name], source):
                rows[name] = row
    _rename_models(rows, overlay.get("models", {}))
    for name, entry in overlay.get("rows", {}).items():
        rows[name] = _lay_over(name, rows.get(name), entry["set"], entry["reason"])
    return sorted(rows.values(), key=lambda row: (row.name.split(".")[0], row.vcpus, row.memory_mib, row.name))


def _rename_models(rows: dict[str, InstanceType], models: Mapping[str, Mapping[str, str]]) -> None:
    for model, entry in models.items():
        named = [row for row in rows.values() if row.accelerator_model == model]
        if not named:
            raise CatalogueError(f"overlay: no type has the model {model}")
        for row in named:
            rows[row.name] = _lay_over(row.name, row, {"accelerator_model": entry["name"]}, entry["reason"])


def _lay_over(name: str, row: InstanceType | None, changes: Mapping[str, Any], reason: str) -> InstanceType:
    """Apply one entry of the overlay; a type that no dump has must be given whole."""
    fields = ", ".join(changes)
    try:
        if row is None:
            return InstanceType(name=name, **changes, source=f"overlay: {reason}")
        changed = dataclasses.replace(row, **changes)
    except TypeError as error:
        raise CatalogueError(f"overlay: {name}: {error}") from error
    if changed == row:
        raise CatalogueError(f"overlay: {name}: {fields} is what the dump says already; remove the entry")
    return dataclasses.replace(changed, source=f"{row.source}; overlay, {fields}: {reason}")


def render_catalogue(rows: Sequence[InstanceType]) -> str:
    """Write the catalogue: columns once, sources once, then one row of values per line."""
    sources = sorted({row.source for row in rows})
    columns = [field.name for field in dataclasses.fields(InstanceType)]
    lines = []
    for row in rows:
        values = dataclasses.asdict(row) | {"source": sources.index(row.source)}
        lines.append(json.dumps([values[column] for column in columns]))
    body = ",\n".join(lines)
    return f'{{"columns": {json.dumps(columns)},\n"sources": {json.dumps(sources, indent=0)},\n"rows": [\n{body}\n]}}\n'


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Generate the bundled catalogue of accelerated instance types.")
    parser.add_argument("--check", action="store_true", help="compare only; exit status 1 when they differ")
    parser.add_argument(
        "--dump",
        action="append",
        default=[],
        metavar="VERSION=PATH",
        help="an older dump beside the installed one; may be given again, newest first",
    )
    parser.add_argument("--overlay", type=Path, default=OVERLAY)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Generate or compare; return the exit status."""
    options = _parse_arguments(arguments)
    older = [(label, Path(path)) for label, _, path in (text.partition("=") for text in options.dump)]
    try:
        dumps = [load_dump(label, path) for label, path in [installed_dump(), *older]]
        rows = build_catalogue(dumps, json.loads(options.overlay.read_text()))
    except (CatalogueError, OSError, ValueError) as error:
        sys.stderr.write(f"no catalogue: {error}\n")
        return 2
    text = render_catalogue(rows)
    if options.check:
        return _compare(options.output, text)
    options.output.write_text(text)
    sys.stdout.write(f"{len(rows)} instance types written to {options.output.name}\n")
    return 0


def _compare(output: Path, text: str) -> int:
    bundled = output.read_text() if output.exists() else ""
    if bundled == text:
        sys.stdout.write(f"{output.name} is what the dumps and the overlay make\n")
        return 0
    difference = difflib.unified_diff(bundled.splitlines(), text.splitlines(), "bundled", "generated", lineterm="", n=0)
    sys.stdout.write("\n".join(difference) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
