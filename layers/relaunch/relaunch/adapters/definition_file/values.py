"""The types of values in a job definition, and their parsers."""

import math
import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, StringConstraints, ValidationInfo, WithJsonSchema

from relaunch.adapters.input_patterns import compile_pattern
from relaunch.core.definitions.callers import CALLER_PATTERN
from relaunch.core.definitions.definition import GITHUB_REPOSITORY_PATTERN
from relaunch.core.definitions.schedule_expression import MAX_ZONE_LENGTH, TIME_ZONE_PATTERN
from relaunch.core.offerings.instance_types import nearest_names
from relaunch.core.records import dataclass
from relaunch.ports import UnsupportedPatternError

MAX_RUNTIME = timedelta(days=30)
_RESERVED_PREFIXES = ("RELAUNCH_", "ECS_")
_MIB_PER_UNIT = {"MiB": 1, "GiB": 1024, "TiB": 1024 * 1024}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)")
_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
# Numbers of more digits are none of a size or a time, and Python does not even read those of thousands.
_MOST_DIGITS = 9
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class KnownHardware:
    """The names that a definition may use, passed as the validation context."""

    instance_types: frozenset[str]
    gpu_models: frozenset[str]
    neuron_models: frozenset[str]


def suggest(name: str, known: frozenset[str] | tuple[str, ...]) -> str:
    """Return `; did you mean …?`, or an empty string without a similar known name."""
    near = nearest_names(name, known)
    if not near:
        return ""
    return "; did you mean " + " or ".join(f"`{candidate}`" for candidate in near) + "?"


def parse_size_mib(value: object) -> int:
    """Parse `16GiB` or `22888MiB` to MiB, rounded up to a whole number.

    Raises:
        ValueError: not a size, without a unit, with a decimal unit, or with a fraction of a MiB.
    """
    match = _SIZE.fullmatch(str(value))
    if match is None or isinstance(value, bool):
        raise ValueError(f"`{value}` is not a size: write it like 16GiB")
    number, unit = match.groups()
    if not unit:
        raise ValueError(f"{number} has no unit: write {number}GiB or {number}MiB")
    if len(number) > 2 * _MOST_DIGITS or len(number.partition(".")[0]) > _MOST_DIGITS:
        raise ValueError(f"`{value}` is more than any machine has, or more exact than any size")
    if unit not in _MIB_PER_UNIT:
        raise ValueError(
            f"`{value}` is not in a binary unit: write memory in GiB or MiB, not {unit}{_as_gib(number, unit)}"
        )
    mib = Decimal(number) * _MIB_PER_UNIT[unit]
    if mib <= 0 or (unit == "MiB" and mib != int(mib)):
        raise ValueError(f"`{value}` is not a whole number of MiB above 0")
    return math.ceil(mib)


def _as_gib(number: str, unit: str) -> str:
    if unit not in {"GB", "TB"}:
        return ""
    gib = float(number) * (10**9 if unit == "GB" else 10**12) / 2**30
    return f" ({number}{unit} is {gib:.4g}GiB)"


def parse_disk_gib(value: object) -> int:
    """Parse a disk size to GiB.

    Raises:
        ValueError: not a size, or not a whole number of GiB.
    """
    mib = parse_size_mib(value)
    if mib % 1024:
        raise ValueError(f"`{value}` is not a whole number of GiB: EBS volumes are sized in GiB")
    return mib // 1024


def parse_compute_capability(value: object) -> tuple[int, int]:
    """Parse `8.0`, `"8.6"` or `bf16`, which is 8.0 ("Compute Capabilities", CUDA C++ Programming Guide).

    Raises:
        ValueError: not a compute capability.
    """
    if isinstance(value, str) and value.casefold() == "bf16":
        return BF16
    match = re.fullmatch(r"([0-9]{1,2})\.([0-9])", str(value))
    if match is None:
        raise ValueError(f"`{value}` is no compute capability: write it like 8.0, or bf16")
    return int(match[1]), int(match[2])


def parse_duration(value: object) -> timedelta:
    """Parse `20h`, `30m` or `1h30m`.

    Raises:
        ValueError: not a duration, without a unit, or zero.
    """
    text = str(value)
    if text.isdecimal():
        raise ValueError(f"{text} has no unit: write {text}h or {text}m")
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"`{text}` is not a duration: write it like 20h, 30m or 1h30m")
    if any(len(part or "") > _MOST_DIGITS for part in match.groups()):
        raise ValueError(f"`{text}` is longer than {MAX_RUNTIME.days} days")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    # A timedelta has no more than 999,999,999 days.
    duration = timedelta(days=min(days, 10**6), hours=hours, minutes=minutes, seconds=seconds)
    if not duration:
        raise ValueError(f"`{text}` is no time at all")
    if duration > MAX_RUNTIME:
        raise ValueError(f"`{text}` is longer than {MAX_RUNTIME.days} days")
    return duration


def check_text(pattern: str, words: str) -> AfterValidator:
    """Return what rejects a text that is not matched by a pattern as a whole, in these words."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError(f"`{value}` is not {words}")
        return value

    return AfterValidator(check)


def _check_family(value: str) -> str:
    if value.startswith("arn:") or ":" in value:
        raise ValueError(f"`{value}`: give the family alone, without a revision: the newest ACTIVE one is used")
    return value


def _check_repository_uri(value: str) -> str:
    if ".dkr.ecr." in value:
        raise ValueError(f"`{value}`: give the repository's name alone, without the registry's address")
    return value


def _check_checkpoint(value: str) -> str:
    if _PLACEHOLDER.search(value):
        raise ValueError(f"`{value}`: no placeholders here; Relaunch adds `<job>/attempt-N/` itself")
    location = re.fullmatch(r"(?:s3|oss)://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[^\s*?]*)?)", value)
    if location is None or "//" in location[1]:
        raise ValueError(f"`{value}` is not an S3 location: write it like s3://bucket/prefix/")
    return value if value.endswith("/") else value + "/"


def parse_vcpus(value: object) -> float:
    """Parse a number of vCPUs: a multiple of 0.001 above 0, as Kubernetes takes CPUs.

    Raises:
        ValueError: not such a number.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not isinstance(value, int | float):
        raise ValueError(f"`{value}` is not a number of vCPUs: write it like 4 or 0.5")
    if value <= 0 or abs(value * 1000 - round(value * 1000)) > 1e-6:
        raise ValueError(f"`{value}` is not a number of vCPUs: it is above 0, in steps of 0.001")
    return float(value)


def _check_variable_name(value: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value) is None:
        raise ValueError(f"`{value}` is not a variable's name (letters, digits and _)")
    if value.startswith(_RESERVED_PREFIXES):
        raise ValueError(f"`{value}` is taken: names that start with {' or '.join(_RESERVED_PREFIXES)} are set for you")
    return value


def _check_prefix(value: str) -> str:
    if value.startswith(("/", "s3://")):
        raise ValueError(f"`{value}`: S3 keys do not start with a slash or a scheme")
    if "*" in value:
        raise ValueError(f"`{value}`: the text is literal, `*` has no meaning in it")
    return value


def _check_placeholders(allowed: tuple[str, ...]) -> AfterValidator:
    def check(value: str) -> str:
        for found in _PLACEHOLDER.findall(value):
            if found not in allowed:
                known = " and ".join(f"`{name}`" for name in allowed)
                raise ValueError(
                    f"unknown placeholder `{found}`: {known} {'is' if len(allowed) == 1 else 'are'} known here"
                )
        rest = _PLACEHOLDER.sub("", value)
        if "{" in rest or "}" in rest:
            raise ValueError(f"`{value}` has a brace without its partner")
        return value

    return AfterValidator(check)


def _check_instance_type(value: str, info: ValidationInfo) -> str:
    if value != value.lower():
        raise ValueError(f"`{value}`: instance types are written in lower case: `{value.lower()}`")
    known = info.context
    if isinstance(known, KnownHardware) and value not in known.instance_types:
        raise ValueError(f"unknown instance type `{value}`{suggest(value, known.instance_types)}")
    return value


def _check_gpu_model(value: str, info: ValidationInfo) -> str:
    known = info.context
    return check_model(value, known.gpu_models, "GPU") if isinstance(known, KnownHardware) else value


def _check_neuron_model(value: str, info: ValidationInfo) -> str:
    known = info.context
    return check_model(value, known.neuron_models, "Neuron") if isinstance(known, KnownHardware) else value


def check_model(value: str, models: frozenset[str], kind: str) -> str:
    """Return the name of a known model.

    Raises:
        ValueError: it is not known.
    """
    if value in models:
        return value
    spelled = {model.lower(): model for model in models}.get(value.lower())
    hint = f"; did you mean `{spelled}`?" if spelled else suggest(value, models)
    listed = f"; the models are {', '.join(sorted(models))}"
    raise ValueError(f"unknown {kind} model `{value}`{hint or listed}")


def _check_workflow_event(value: str) -> str:
    if value not in WORKFLOW_EVENTS:
        raise ValueError(f"`{value}` is no event that triggers workflows{suggest(value, WORKFLOW_EVENTS)}")
    return value


def _check_regular_expression(value: str) -> str:
    try:
        compile_pattern(value)
    except UnsupportedPatternError as error:
        raise ValueError(str(error)) from error
    return value


BF16 = (8, 0)
"""The lowest compute capability with bfloat16."""

WORKFLOW_EVENTS = (
    *("branch_protection_rule", "check_run", "check_suite", "create", "delete", "deployment", "deployment_status"),
    *("discussion", "discussion_comment", "fork", "gollum", "image_version", "issue_comment", "issues", "label"),
    *("merge_group", "milestone", "page_build", "public", "pull_request", "pull_request_review"),
    *("pull_request_review_comment", "pull_request_target", "push", "registry_package", "release"),
    *("repository_dispatch", "schedule", "status", "watch", "workflow_dispatch", "workflow_run"),
)
"""The events that start workflow runs: "Events that trigger workflows", GitHub Docs; `workflow_call` starts none."""

_SIZE_PATTERN = r"^[0-9]+(\.[0-9]+)? ?(MiB|GiB|TiB)$"
DURATION_PATTERN = r"^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"

MemoryMib = Annotated[
    int,
    BeforeValidator(parse_size_mib),
    WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN, "examples": ["16GiB"]}),
]
DiskGib = Annotated[
    int,
    BeforeValidator(parse_disk_gib),
    WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN, "examples": ["200GiB"]}),
]
ComputeCapability = Annotated[
    tuple[int, int],
    BeforeValidator(parse_compute_capability),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^([0-9]{1,2}\.[0-9]|bf16)$"}]}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["20h", "1h30m"]}),
]


def text_schema(pattern: str) -> WithJsonSchema:
    """Return the schema of texts that match a pattern as a whole."""
    return WithJsonSchema({"type": "string", "pattern": f"^(?:{pattern})$"})


_FAMILY = r"[A-Za-z0-9_-]{1,255}"
_ECR_REPOSITORY = r"(?:[a-z0-9]+(?:[._-]+[a-z0-9]+)*/)*[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_ENVIRONMENT_NAME = r"(?!RELAUNCH_|ECS_)[A-Za-z_][A-Za-z0-9_]*"
_INPUT_NAME = r"[a-z][a-z0-9_]{0,62}"
_EVENT_PATH = r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,9}"

Family = Annotated[
    str,
    AfterValidator(_check_family),
    check_text(_FAMILY, "a task definition family (letters, digits, - and _)"),
    text_schema(_FAMILY),
]
ContainerName = Annotated[str, check_text(_FAMILY, "a container name (letters, digits, - and _)"), text_schema(_FAMILY)]
GithubRepository = Annotated[
    str,
    check_text(GITHUB_REPOSITORY_PATTERN, "a GitHub repository: write it like owner/name"),
    text_schema(GITHUB_REPOSITORY_PATTERN),
]
EcrRepository = Annotated[
    str,
    AfterValidator(_check_repository_uri),
    check_text(_ECR_REPOSITORY, "an ECR repository's name"),
    text_schema(_ECR_REPOSITORY),
]
Bucket = Annotated[str, check_text(_BUCKET, "an S3 bucket's name"), text_schema(_BUCKET)]
ObjectKeyPart = Annotated[str, AfterValidator(_check_prefix)]
CheckpointUri = Annotated[
    str,
    AfterValidator(_check_checkpoint),
    WithJsonSchema({"type": "string", "pattern": f"^(s3|oss)://{_BUCKET}(/.*)?$"}),
]
ImageTag = Annotated[str, StringConstraints(min_length=1, max_length=128), _check_placeholders(("{sha}",))]
AwaitedTag = Annotated[
    str, StringConstraints(min_length=1, max_length=128), _check_placeholders(("{sha}", "{short_sha}"))
]
FilterPattern = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
InstanceTypeName = Annotated[str, AfterValidator(_check_instance_type), text_schema(r"[a-z0-9-]+\.[a-z0-9-]+")]
GpuModel = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_gpu_model)]
NeuronModel = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_neuron_model)]
RegularExpression = Annotated[
    str, StringConstraints(min_length=1, max_length=500), AfterValidator(_check_regular_expression)
]
InputName = Annotated[
    str,
    check_text(_INPUT_NAME, "an input's name (lower-case letters, digits and _, a letter first)"),
    text_schema(_INPUT_NAME),
]
EventPath = Annotated[
    str, check_text(_EVENT_PATH, "a path within the event: write it like detail.epochs"), text_schema(_EVENT_PATH)
]
TimeZone = Annotated[
    str,
    StringConstraints(max_length=MAX_ZONE_LENGTH),
    check_text(TIME_ZONE_PATTERN, "a time zone: write it like Europe/Berlin or UTC"),
    text_schema(TIME_ZONE_PATTERN),
]
Caller = Annotated[
    str,
    check_text(
        CALLER_PATTERN,
        "a caller of job_api: write it like arn:aws:iam::111122223333:role/ci-vision, where a * may follow the "
        "beginning of the name, or `invoke`",
    ),
    text_schema(CALLER_PATTERN),
]
WorkflowEvent = Annotated[
    str,
    AfterValidator(_check_workflow_event),
    WithJsonSchema({"type": "string", "enum": list(WORKFLOW_EVENTS)}),
]
EnvironmentName = Annotated[str, AfterValidator(_check_variable_name), text_schema(_ENVIRONMENT_NAME)]
Vcpus = Annotated[
    float, BeforeValidator(parse_vcpus), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.001})
]
