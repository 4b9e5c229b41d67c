"""Parses a definition file to job definitions, or reports all problems of the file at once."""

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from relaunch.adapters.definition_file.messages import (
    report_double_choices,
    report_errors,
    report_missing_block,
    report_rule_problems,
)
from relaunch.adapters.definition_file.models import JOB_NAME_PATTERN, JobModel
from relaunch.adapters.definition_file.values import KnownHardware, suggest
from relaunch.adapters.definition_file.yaml_document import DefinitionProblem, Document, KeyPath, Mark, read_document
from relaunch.core.definitions.definition import EventBridgeTrigger, JobDefinition, Overlap, SnsTrigger, find_overlaps
from relaunch.core.offerings.instance_types import InstanceType, known_models, known_neuron_models

MAX_PROBLEMS = 200
"""After so many problems no further definition is read: nobody reads on, and to each a similar name is looked for."""


class DefinitionFileError(Exception):
    """A definition file is invalid; `problems` are all problems, in the order of the file."""

    def __init__(self, problems: Iterable[DefinitionProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def parse_definitions(
    text: str,
    file: str,
    catalogue: Mapping[str, InstanceType],
    registered: Iterable[JobDefinition] = (),
) -> list[JobDefinition]:
    """Return the definitions of a file, in its order.

    `catalogue` has the known instance types and GPU models. `registered` are the registered definitions, for checks
    between definitions; those with the name of a definition in the file are ignored.

    Raises:
        DefinitionFileError: the file is invalid.
    """
    document = read_document(text, file)
    definitions = _parse_jobs(document, known_hardware(catalogue))
    _report_overlaps(document, definitions, registered)
    if document.problems:
        raise DefinitionFileError(document.problems)
    return definitions


def problem_mark(text: str, name: str, problem: str) -> Mark:
    """Return where a problem of a definition is in the text of a file: at the first key that it names like `this`."""
    places = read_document(text, "").places
    paths = [("jobs", name, key) for key in re.findall("`([a-z_]+)`", problem)]
    return next((places[path].key for path in (*paths, ("jobs", name)) if path in places), Mark(1, 1))


def known_hardware(catalogue: Mapping[str, InstanceType]) -> KnownHardware:
    """Return the instance types and models of accelerators that definitions may name."""
    return KnownHardware(
        frozenset(catalogue), frozenset(known_models(catalogue)), frozenset(known_neuron_models(catalogue))
    )


def _parse_jobs(document: Document, known: KnownHardware) -> list[JobDefinition]:
    root = document.value
    if not isinstance(root, dict):
        if root is not None:
            document.report((), "must be a mapping with the key `jobs`")
        return []
    for key in root:
        if key != "jobs":
            document.report(
                (key,), f"unknown key `{key}`{suggest(key, ('jobs',)) or '; the only key here is `jobs`'}", at_key=True
            )
    jobs = root.get("jobs")
    if not isinstance(jobs, dict):
        is_given = "jobs" in root
        document.report(("jobs",), "must be a mapping of names to job definitions" if is_given else "`jobs` is missing")
        return []
    if not jobs:
        document.report(("jobs",), "is empty: it names no job definition")
    return list(_parse_each(document, jobs, known))


def _parse_each(document: Document, jobs: Mapping[str, object], known: KnownHardware) -> Iterator[JobDefinition]:
    for name, value in jobs.items():
        if len(document.problems) > MAX_PROBLEMS:
            document.report(("jobs", name), f"not read: more than {MAX_PROBLEMS} problems are before it", at_key=True)
            return
        definition = _parse_job(document, name, value, known)
        if definition is not None:
            yield definition


def _parse_job(document: Document, name: str, value: object, known: KnownHardware) -> JobDefinition | None:
    path = ("jobs", name)
    report_double_choices(document, path, value)
    report_missing_block(document, path, value)
    try:
        model = JobModel.model_validate(value, context=known)
    except ValidationError as error:
        report_errors(document, path, error)
        model = None
    if re.fullmatch(JOB_NAME_PATTERN, name) is None:
        words = "1 to 48 lower-case letters, digits and -, a letter first"
        document.report(path, f"`{name}` is not a name for a job definition: {words}", at_key=True)
        return None
    if model is None:
        return None
    definition = model.to_core(name)
    report_rule_problems(document, path, definition)
    _report_undeclared(document, path, definition)
    return definition


def _report_undeclared(document: Document, path: KeyPath, definition: JobDefinition) -> None:
    """Add a problem for each input that a trigger takes from events, and that the definition does not declare."""
    for index, trigger in enumerate(definition.triggers):
        source = "sns" if isinstance(trigger, SnsTrigger) else "eventbridge"
        for name, _ in trigger.inputs if isinstance(trigger, EventBridgeTrigger | SnsTrigger) else ():
            if name not in definition.inputs:
                place = (*path, "on", index, source, "inputs", name)
                document.report(place, f"`{name}` is no input: declare it under `inputs` of the job", at_key=True)


def _report_overlaps(
    document: Document, definitions: Iterable[JobDefinition], registered: Iterable[JobDefinition]
) -> None:
    ours = {definition.name: definition for definition in definitions}
    others = {definition.name: definition for definition in registered if definition.name not in ours}
    for overlap in find_overlaps((*ours.values(), *others.values())):
        if overlap.watcher in ours:
            place = ("jobs", overlap.watcher, "on", overlap.trigger_index, "s3", "prefix")
            document.report(place, str(overlap))
        elif overlap.writer in ours:
            document.report(("jobs", overlap.writer, "checkpoint"), _seen_by_registered(overlap))


def _seen_by_registered(overlap: Overlap) -> str:
    watched = f"s3://{overlap.trigger.bucket}/{overlap.trigger.prefix}"
    return (
        f"{overlap.checkpoint_uri} overlaps the trigger on {watched} of the registered definition `{overlap.watcher}`: "
        "every checkpoint would start another job"
    )
