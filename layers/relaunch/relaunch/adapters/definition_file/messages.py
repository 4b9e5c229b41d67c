"""Messages for validation errors of a definition file, with their line and column."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from relaunch.adapters.acs_driver_list import load_acs_drivers
from relaunch.adapters.definition_file.accelerators import ACCELERATOR_CHOICE, NEURON_CHOICE
from relaunch.adapters.definition_file.models import JobModel
from relaunch.adapters.definition_file.triggers import GITHUB_EVENTS, TRIGGER_CHOICE
from relaunch.adapters.definition_file.values import suggest
from relaunch.adapters.definition_file.yaml_document import Document, KeyPath
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch.core.kubernetes.acs_drivers import find_strict_problems
from relaunch.core.kubernetes.pod_keys import find_pod_problems
from relaunch.core.kubernetes.rules import find_problems

# Keys that are not supported, for which a similar known key would be a misleading suggestion.
_UNSUPPORTED_KEYS = {
    "driver": "on ECS no machine can be chosen by its driver, the AMI brings it: set the AMI of the capacity provider; "
    "on ACS give `kubernetes.gpu_driver`",
    "namespace": "no definition chooses its namespace: it is the parameter KubernetesNamespace of the stack",
}
_NUMBERS = ("a whole number", "a number")
_KINDS = {
    "string_type": "text",
    "int_type": _NUMBERS[0],
    "int_from_float": _NUMBERS[0],
    "float_type": _NUMBERS[1],
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}
# Keys whose kind people get wrong, as YAML takes braces for a mapping, and GitHub a text for a group.
_EXAMPLES = {"concurrency": '{group: "{branch}"}', "group": 'write it in quotes, "{branch}"'}
_LIMITS = {
    "union_tag_not_found": f"`event` is missing: one of {', '.join(GITHUB_EVENTS)}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:,.15g} or less",
    "greater_than": "must be more than {gt:g}",
    "finite_number": "must be a finite number",
    "too_short": "is empty: leave the key out, or give it something",
    "too_long": "has more than {max_length:,} items",
    "string_too_short": "is empty: leave the key out, or give it something",
    "string_too_long": "is longer than {max_length} characters",
}


def report_errors(document: Document, base: KeyPath, error: ValidationError) -> None:
    """Add a problem for each validation error of the model at `base`."""
    for details in error.errors(include_url=False):
        path = _path_in_file(document, (*base, *details["loc"]))
        at_key = details["type"] in {"extra_forbidden", "missing"} or details["loc"][-1:] == ("[key]",)
        document.report(path, _message(document, path, details), at_key=at_key)


def report_double_choices(document: Document, base: KeyPath, job: object) -> None:
    """Add a problem for mutually exclusive keys; pydantic only reports them once their values are valid."""
    fields = job if isinstance(job, dict) else {}
    accelerator = fields.get("accelerator")
    neuron = accelerator.get("neuron") if isinstance(accelerator, dict) else None
    triggers = fields.get("on")
    places = [
        ((*base, "accelerator"), accelerator, ACCELERATOR_CHOICE),
        ((*base, "accelerator", "neuron"), neuron, NEURON_CHOICE),
    ]
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else []):
        places.append(((*base, "on", index), trigger, TRIGGER_CHOICE))
    for path, mapping, choice in places:
        if isinstance(mapping, dict) and len(choice.keys & mapping.keys()) > 1:
            document.report(path, choice.message)


def report_missing_block(document: Document, base: KeyPath, job: object) -> None:
    """Add a problem for a job without what its target runs, or with a checkpoint that it cannot have."""
    if not isinstance(job, dict):
        return
    location = str(job.get("checkpoint"))
    target = next((each for each in Target if each == job.get("target", Target.ECS)), None)
    if target is None:
        return
    if target.capabilities.runs_pods and "kubernetes" not in job:
        text = f"`kubernetes` is missing: {target} needs its image at least"
        document.report((*base, "kubernetes"), text, at_key=True)
    if target.capabilities.takes_task_definition and "task_definition" not in job:
        hint = f": with `kubernetes` alone, `target` is {_in_words(WITH_PODS)}" if "kubernetes" in job else ""
        document.report((*base, "task_definition"), f"`task_definition` is missing{hint}", at_key=True)
    if not target.capabilities.reads_oss and location.startswith("oss://"):
        text = f"`{location}` is not an S3 location: write it like s3://bucket/prefix/; oss:// is for clusters"
        document.report((*base, "checkpoint"), text)


def report_rule_problems(document: Document, base: KeyPath, definition: JobDefinition) -> None:
    """Add the problems of a definition with the rules of its target, one for each key."""
    by_key: dict[KeyPath, list[str]] = {}
    strict = find_strict_problems(definition, load_acs_drivers())
    for problem in (*find_problems(definition), *strict, *find_pod_problems(definition)):
        by_key.setdefault((*base, *problem.key), []).append(str(problem))
    for path, texts in by_key.items():
        document.report(path, "; ".join(texts), at_key=path not in document.places)


def _in_words(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _path_in_file(document: Document, location: KeyPath) -> KeyPath:
    """Return a location without what pydantic adds: the event of a discriminated union, and `[key]`."""
    path: KeyPath = ()
    for index, part in enumerate(location):
        is_last = index == len(location) - 1
        if (*path, part) in document.places or (is_last and part not in GITHUB_EVENTS and part != "[key]"):
            path = (*path, part)
    return path


def _message(document: Document, path: KeyPath, details: ErrorDetails) -> str:
    kind = details["type"]
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(str(path[-1]), details["loc"])
    if kind == "missing":
        return f"`{path[-1]}` is missing"
    if kind in _KINDS:
        return _wrong_kind(document, path, _KINDS[kind], details["input"])
    if kind == "value_error":
        return str(context["error"])
    return _other_message(details["loc"], kind, context, details["input"])


def _other_message(location: KeyPath, kind: str, context: Mapping[str, Any], value: object) -> str:
    if kind == "literal_error":
        return _not_one_of(location, value)
    if kind == "union_tag_invalid":
        return f"unknown event `{context['tag']}`{_suggest_one(str(context['tag']), tuple(GITHUB_EVENTS))}"
    words = _LIMITS.get(kind, "`{value}` is not valid here")
    return words.format(value=value, **context)


def _wrong_kind(document: Document, path: KeyPath, words: str, value: object) -> str:
    raw = document.places[path].raw if path in document.places else ""
    if path[-1] in _EXAMPLES:
        return f"must be {words}: {_EXAMPLES[str(path[-1])]}"
    # In brackets a text with spaces would be one item, as of a command.
    if words == "a list" and raw and not any(each.isspace() for each in raw):
        return f"must be a list: [{raw}]"
    if words == "text" and raw:
        return f'must be text: write it in quotes, "{raw}"'
    if isinstance(value, str) and words in _NUMBERS and raw.replace(".", "", words == _NUMBERS[1]).isdecimal():
        return f"must be {words}: write {raw} without quotes"
    return f"must be {words}" + (f", not `{raw}`" if raw else "")


def _not_one_of(location: KeyPath, value: object) -> str:
    annotation = _model_at(location[:-1])[0].model_fields[str(location[-1])].annotation
    known = _literals(annotation)
    return f"`{value}` is none of {', '.join(known)}{suggest(str(value), known)}"


def _literals(annotation: object) -> tuple[str, ...]:
    """Return the values of `Literal[...]` or `Literal[...] | None`."""
    if get_origin(annotation) is Literal:
        return tuple(str(word) for word in get_args(annotation))
    return tuple(word for inner in get_args(annotation) for word in _literals(inner))


def _unknown_key(key: str, location: KeyPath) -> str:
    if key in _UNSUPPORTED_KEYS:
        return _UNSUPPORTED_KEYS[key]
    model, event = _model_at(location[:-1])
    known = tuple(model.model_fields)
    owners = [name for name, model in GITHUB_EVENTS.items() if key in model.model_fields]
    if event and owners:
        return f"`{key}` is for {' and '.join(owners)}; {event} has no such filter"
    return f"unknown key `{key}`{_suggest_one(key, known)}"


def _suggest_one(name: str, known: tuple[str, ...]) -> str:
    hint = suggest(name, known)
    return hint or f"; known are {', '.join(f'`{one}`' for one in known)}"


def _model_at(location: KeyPath) -> tuple[type[BaseModel], str]:
    """Return the model at a location below the job's model, and its GitHub event, if any."""
    model: type[BaseModel] = JobModel
    event = ""
    for part in location:
        if part in GITHUB_EVENTS and "github" in location:
            model = GITHUB_EVENTS[str(part)]
            event = str(part)
            continue
        field = model.model_fields.get(str(part))
        inner = _model_in(field.annotation) if field else None
        model = inner or model
    return model, event


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model in an annotation: `Model`, `Model | None`, `list[Model]`, `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_in(argument)
        if found is not None:
            return found
    return None
