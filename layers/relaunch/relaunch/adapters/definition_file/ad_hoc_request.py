"""A job described by command-line options, validated by the models of a definition file."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pydantic import ValidationError

from relaunch.adapters.core_schema import Plain
from relaunch.adapters.definition_file.ad_hoc_name import NAME
from relaunch.adapters.definition_file.messages import report_double_choices, report_errors, report_rule_problems
from relaunch.adapters.definition_file.models import JobModel
from relaunch.adapters.definition_file.parser import known_hardware
from relaunch.adapters.definition_file.values import MAX_RUNTIME, parse_size_mib
from relaunch.adapters.definition_file.yaml_document import Document, KeyPath, Mark, Place
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.durations import write_duration
from relaunch.core.definitions.targets import WITH_PODS
from relaunch.core.kubernetes.rules import kubernetes_revision
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import DEFAULT_ARCHITECTURE, Revision

"""The name and the family of the job; the family is never looked up."""

Value = str | Sequence[str]
"""The value of an option, or the values of one that can be repeated."""

IMAGE = "IMAGE"
"""The image of a job on Kubernetes without `--image`, in whose place its owner puts one."""

_GPU = ("accelerator", "gpu")
_NEURON = ("accelerator", "neuron")
_KUBERNETES = ("kubernetes",)
OPTIONS: Mapping[str, KeyPath] = MappingProxyType(
    {
        "--gpu": (*_GPU, "count"),
        "--gpu-memory": (*_GPU, "memory"),
        "--model": (*_GPU, "models"),
        "--compute-percent": (*_GPU, "compute_percent"),
        "--isolation": (*_GPU, "isolation"),
        "--compute-capability": (*_GPU, "compute_capability"),
        "--interconnect": (*_GPU, "interconnect"),
        "--driver": (*_GPU, "driver"),
        "--neuron-devices": (*_NEURON, "devices"),
        "--neuron-cores": (*_NEURON, "cores"),
        "--neuron-model": (*_NEURON, "models"),
        "--neuron-purpose": (*_NEURON, "purpose"),
        "--instance-type": ("accelerator", "instance_types"),
        "--disk": ("disk",),
        "--purchase": ("purchase",),
        "--max-price": ("max_price_per_hour",),
        "--estimated-duration": ("estimated_duration",),
        "--checkpoint": ("checkpoint",),
        "--target": ("target",),
    }
)
"""The options for keys of a job definition, and the paths of these keys."""

KUBERNETES_OPTIONS: Mapping[str, KeyPath] = MappingProxyType(
    {
        "--image": (*_KUBERNETES, "image"),
        "--vcpus": (*_KUBERNETES, "vcpus"),
        "--memory": (*_KUBERNETES, "memory"),
        "--model": (*_KUBERNETES, "gpu_model"),
        "--driver": (*_KUBERNETES, "gpu_driver"),
        "--gpu-resource": (*_KUBERNETES, "gpu_resource"),
        "--gpu-sharing": (*_KUBERNETES, "gpu_sharing"),
        "--gpu-placement": (*_KUBERNETES, "gpu_placement"),
        "--compute-class": (*_KUBERNETES, "compute_class"),
        "--card-memory": (*_KUBERNETES, "card_memory"),
        "--cluster-region": (*_KUBERNETES, "region"),
        "--label": (*_KUBERNETES, "labels"),
        "--node-selector": (*_KUBERNETES, "node_selector"),
        "--service-account": (*_KUBERNETES, "service_account"),
        "--working-directory": (*_KUBERNETES, "working_directory"),
        "--command": ("command",),
    }
)
"""The options for keys of the block `kubernetes`; on ECS some of them are for other keys, and others for none."""

_ON_ECS_TOO = frozenset({"--vcpus", "--memory", "--model", "--driver"})

# Values that YAML reads as numbers; others stay strings, which the models reject.
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)")
_ARCHITECTURES = ("X86_64", "ARM64")  # as in ECS
_NUMBER_OPTIONS = frozenset({"--max-price", "--vcpus"})
_PAIR_OPTIONS = frozenset({"--label", "--node-selector"})
_WHOLE_OPTIONS = frozenset({"--gpu", "--compute-percent", "--neuron-devices", "--neuron-cores"})


class AdHocRequestError(Exception):
    """Invalid options; `problems` are all problems, each with the options concerned."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True)
class AdHocRequest:
    """A job definition, and a revision with the resources that its task reserves."""

    definition: JobDefinition
    revision: Revision


def parse_request(options: Mapping[str, Value], catalogue: Mapping[str, InstanceType]) -> AdHocRequest:
    """Parse options (`{"--gpu": "1", "--model": ["A10G"]}`); options that are not given are not in the mapping.

    Raises:
        AdHocRequestError: the options are invalid.
    """
    paths = _paths(options)
    document = _write_document(options, paths)
    report_double_choices(document, (), document.value)
    model = None
    try:
        model = JobModel.model_validate(document.value, context=known_hardware(catalogue))
    except ValidationError as error:
        report_errors(document, (), error)
    if paths is not OPTIONS and model is not None:
        report_rule_problems(document, (), model.to_core(NAME))
    problems = [_in_options(problem.key_path, problem.message, options, paths) for problem in document.problems]
    if paths is not OPTIONS:
        return _kubernetes_request(model, problems)
    problems += [f"{each}: is for clusters: `--target {'`, `'.join(WITH_PODS)}`" for each in _misplaced(options)]
    vcpus = _read(options, "--vcpus", _parse_vcpus, problems)
    memory_mib = _read(options, "--memory", parse_size_mib, problems)
    architecture = _read_architecture(options, problems)
    if problems or model is None:
        raise AdHocRequestError(problems)
    # Network mode and containers are unknown, so filters that depend on them reject nothing.
    revision = Revision(
        "", "", 0, (), network_mode="", vcpus=vcpus, memory_mib=int(memory_mib), architecture=architecture
    )
    return AdHocRequest(model.to_core(NAME), revision)


def _kubernetes_request(model: JobModel | None, problems: list[str]) -> AdHocRequest:
    if problems or model is None:
        raise AdHocRequestError(problems)
    definition = model.to_core(NAME)
    return AdHocRequest(definition, kubernetes_revision(definition))


def _paths(options: Mapping[str, Value]) -> Mapping[str, KeyPath]:
    """Return the keys that options are for, which depend on the target."""
    return {**OPTIONS, **KUBERNETES_OPTIONS} if options.get("--target") in WITH_PODS else OPTIONS


def _misplaced(options: Mapping[str, Value]) -> list[str]:
    return [each for each in KUBERNETES_OPTIONS if each in options and each not in _ON_ECS_TOO]


def _write_document(options: Mapping[str, Value], paths: Mapping[str, KeyPath]) -> Document:
    """Return a document with the options as a job definition, and a place for each key."""
    job: dict[str, Plain] = {"accelerator": {}, "max_runtime": write_duration(MAX_RUNTIME)}
    job |= {"task_definition": NAME} if paths is OPTIONS else {"kubernetes": {"image": IMAGE}}
    document = Document("", job)
    for option, path in paths.items():
        if option in options:
            mapping = job
            for key in path[:-1]:
                mapping = mapping.setdefault(str(key), {})  # type: ignore[assignment]  # these keys hold mappings alone
            mapping[str(path[-1])] = _plain(option, options[option], is_one=path[-1] == "gpu_model")
            raw = options[option]
            place = Place(Mark(1, 1), Mark(1, 1), raw if isinstance(raw, str) else "")
            document.places |= {path[:length]: place for length in range(1, len(path) + 1)}
    return document


def _plain(option: str, value: Value, *, is_one: bool) -> Plain:
    if option in _PAIR_OPTIONS:
        return _read_pairs(option, _values(value))
    if option == "--command":
        return _split_command(str(value))
    if not isinstance(value, str):
        return value[0] if is_one and len(value) == 1 else list(value)
    if option in _WHOLE_OPTIONS and _WHOLE.fullmatch(value):
        return int(value)
    if option in _NUMBER_OPTIONS and _NUMBER.fullmatch(value):
        return float(value)
    return value


def _read_pairs(option: str, values: Sequence[str]) -> Plain:
    """Return the mapping of `KEY=VALUE`, as kubectl writes labels and selectors."""
    pairs = [each.partition("=") for each in values]
    if wrong := next((each for each, pair in zip(values, pairs, strict=True) if not (pair[0] and pair[1])), None):
        raise AdHocRequestError([f"{option}: `{wrong}` is not KEY=VALUE"])
    return {key: value for key, _, value in pairs}


def _split_command(text: str) -> Plain:
    """Return the words of a command, as a shell splits them."""
    try:
        return list(shlex.split(text))
    except ValueError as error:
        raise AdHocRequestError([f"--command: {str(error).lower()} in `{text}`"]) from error


def _in_options(key_path: str, message: str, options: Mapping[str, Value], paths: Mapping[str, KeyPath]) -> str:
    """Return a problem in terms of options: `--memory: …`, with all given options that it concerns.

    A value stays as it is, also one that reads like a key: that of an option, or one that is suggested in its place.
    """
    keys = tuple(re.sub(r"\[[0-9]+\]", "", key_path).split("."))
    given = [(option, path) for option, path in paths.items() if option in options]
    # The value of one may be read as several keys.
    about = [option for option, path in given if path[: len(keys)] == keys or keys[: len(path)] == path]
    values = {value for option in about for value in _values(options[option])}

    def speak(match: re.Match[str]) -> str:
        key = match[1]
        return match[0] if key is None or key in values else f"`{_option_of(key, keys, options, paths)}`"

    spoken = re.sub(r"did you mean [^?]*|`([a-z_.]+)`", speak, message)
    return f"{', '.join(about)}: {spoken}" if about else spoken


def _values(value: Value) -> Sequence[str]:
    return (value,) if isinstance(value, str) else value


def _option_of(key: str, place: KeyPath, options: Mapping[str, Value], paths: Mapping[str, KeyPath]) -> str:
    """Return the option for a key that is named at a place, preferably a given one; the key itself if there is none."""
    name = key.rpartition(".")[2]
    matching = [option for option, path in paths.items() if name in path and name not in {"accelerator", "kubernetes"}]
    exact = [option for option in matching if paths[option][-1] == name]
    # Of two keys of one name, the one beside the place.
    near = [option for option in exact if paths[option][:-1] in {place[:-1], place}]
    given = [option for option in matching if option in options]
    return next(iter((*near, *exact, *given, *matching)), key)


def _read_architecture(options: Mapping[str, Value], problems: list[str]) -> str:
    given = str(options.get("--architecture", DEFAULT_ARCHITECTURE)).upper()
    if given not in _ARCHITECTURES:
        known = ", ".join(each.lower() for each in _ARCHITECTURES)
        problems.append(f"--architecture: `{options['--architecture']}` is none of {known}")
    return given


def _parse_vcpus(value: object) -> float:
    text = str(value)
    if _NUMBER.fullmatch(text) is None or float(text) <= 0:
        raise ValueError(f"must be a number above 0, not `{text}`")
    return float(text)


def _read(options: Mapping[str, Value], option: str, parse: Callable[[object], float], problems: list[str]) -> float:
    if option not in options:
        return 0
    try:
        return parse(options[option])
    except ValueError as error:
        problems.append(f"{option}: {error}")
        return 0
