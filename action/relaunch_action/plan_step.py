"""What the step does in the mode `plan`: shows what a pull request changes of a definition file, and starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_action.errors import ActionError
from relaunch_action.github import Github
from relaunch_action.inputs import Inputs
from relaunch_action.job_api import JobApi
from relaunch_action.plan_text import (
    LONGEST_COMMENT,
    LONGEST_SUMMARY,
    PlannedFile,
    marker_of,
    render_comparison,
    render_fork,
)
from relaunch_action.pull_request import PullRequest
from relaunch_action.workflow_commands import Runner
from relaunch_action.workflow_run import WorkflowRun

MAX_CHARACTERS = 250_000
"""As long as a definition file may be; plan_api refuses a longer one."""
_PARENTS_OF_A_MERGE = 2


@dataclass(frozen=True)
class PlanStep:
    """A step of the workflow of a pull request; `can_sign_in`: it has what credentials of AWS are got with."""

    inputs: Inputs
    workflow_run: WorkflowRun
    pull_request: PullRequest
    plan_api: JobApi
    github: Github
    runner: Runner
    can_sign_in: bool

    def run(self) -> None:
        """Write the plan into the summary and into one comment.

        Raises:
            ActionError: there is no plan, or a job of the file could never run; the message says what to do.
        """
        path = self.inputs.definition_file
        if self.pull_request.is_from_fork and not self.can_sign_in:
            self.runner.summarize(render_fork(path))
            self.runner.warning(
                f"{path} is not planned: the pull request comes from a fork, whose workflow gets no token"
            )
            return
        base_sha = self._find_base()
        text = self.github.read_file(path, self.pull_request.merge_sha)
        base = self.github.read_file(path, base_sha)
        self._check_texts(text, base)
        comparison = self.plan_api.compare(text, base)
        file = PlannedFile(path, self.pull_request.head_sha, base_sha, self.workflow_run.url)
        self.runner.summarize(render_comparison(comparison, file, LONGEST_SUMMARY))
        if self.inputs.comment:
            self._comment(comparison, file)
        self._judge(comparison)

    def _find_base(self) -> str:
        """Return the commit of the base branch that was merged; the event may name an older one."""
        try:
            parents = self.github.find_parents(self.pull_request.merge_sha)
        except ActionError as error:
            self.runner.log(f"{error}; compared with the base branch as the event has it")
            return self.pull_request.base_sha
        return parents[0] if len(parents) == _PARENTS_OF_A_MERGE else self.pull_request.base_sha

    def _check_texts(self, text: str | None, base: str | None) -> None:
        path = self.inputs.definition_file
        if text is None and base is None:
            raise ActionError(
                f"neither the pull request nor its base branch has {path}: check the input definition-file, and give "
                "the job `permissions: {contents: read}`"
            )
        for each, where in ((text, "the pull request"), (base, "the base branch")):
            if each is not None and len(each) > MAX_CHARACTERS:
                raise ActionError(f"{path} of {where} is longer than {MAX_CHARACTERS:,} characters")

    def _comment(self, comparison: Mapping[str, Any], file: PlannedFile) -> None:
        """Comment; whatever keeps us from it, the summary has the plan."""
        marker = marker_of(self.workflow_run.repository, file.path, self.inputs.url)
        body = render_comparison(comparison, file, LONGEST_COMMENT, marker)
        try:
            done = self.github.keep_comment(
                self.pull_request.number, marker, body, is_new_wanted=_changes_anything(comparison)
            )
        except ActionError as error:
            self.runner.warning(
                f"the plan is in the summary, and not in a comment: {error}; the job needs `permissions: "
                "{pull-requests: write}`, or set comment: false"
            )
            return
        self.runner.log(done)

    def _judge(self, comparison: Mapping[str, Any]) -> None:
        problems = comparison.get("problems")
        if isinstance(problems, list) and problems:
            raise ActionError(f"the definition file is invalid: {problems[0]}")
        for each in _definitions(comparison):
            plan = each.get("plan")
            plan = plan if isinstance(plan, dict) else {}
            about = f"{each.get('definition')} is {each.get('kind')}"
            if problem := plan.get("problem"):
                raise ActionError(f"{about}, and its jobs cannot run: {problem}")
            if rejection := plan.get("rejection"):
                self.runner.warning(f"{about}, and its jobs would wait: {rejection}")
            else:
                self.runner.log(about)


def _definitions(comparison: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = comparison.get("definitions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _changes_anything(comparison: Mapping[str, Any]) -> bool:
    return bool(comparison.get("problems")) or any(each.get("kind") != "unchanged" for each in _definitions(comparison))
