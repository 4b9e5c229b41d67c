"""A receiver that sets statuses of commits, with its store, at a fake of GitHub."""

from typing import Any

from fakes.clock import FakeClock
from fakes.commit_changes import make_change
from fakes.github_api import Answer, GithubApi, InProcessApi
from relaunch.adapters.github.commit_statuses import GithubCommitStatuses
from relaunch.core.notices.notice import Notice
from relaunch.ports.notices import Outcome
from relaunch_local.in_memory.commit_statuses import InMemoryCommitStatuses
from relaunch_local.internet.github_statuses import GithubStatuses
from relaunch_local.simulation.github import GithubWebhooks


class World:
    """A receiver of a stack, and GitHub."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.github = GithubStatuses(self.clock.now)
        webhooks = GithubWebhooks(self.clock.now, lambda _webhook, _guid: None)
        self.api = GithubApi(webhooks, statuses=self.github)
        self.store = InMemoryCommitStatuses()
        self.receiver = GithubCommitStatuses(InProcessApi(self.api), self.store, self.clock, **options)

    def deliver(self, receiver: GithubCommitStatuses | None = None, **fields: Any) -> Outcome:
        change = make_change(**{"time": self.clock.now(), **fields})
        return (receiver or self.receiver).deliver(Notice(kind=None, event=change), "")

    def answer(self, answer: Answer) -> None:
        self.github.refuse = lambda: answer
