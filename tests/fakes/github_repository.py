"""A repository on GitHub as its REST API has it: files at commits, and comments of pull requests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

BOT = "github-actions[bot]"
LONGEST_BODY = 65_536
_NOT_FOUND = (404, {"Content-Type": "application/json; charset=utf-8"}, json.dumps({"message": "Not Found"}))
Answer = tuple[int, Mapping[str, str], str]


@dataclass
class FakeRepository:
    """`files` by commit and path, `parents` by commit, and `comments` as the API lists them, the oldest first."""

    name: str = "acme/vision"
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    parents: dict[str, Sequence[str]] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    page: int = 100

    def comment(self, body: str, author: str = BOT) -> int:
        """Add a comment; return its number."""
        number = 1_000 + len(self.comments)
        kind = "Bot" if author.endswith("[bot]") else "User"
        self.comments.append({"id": number, "user": {"login": author, "type": kind}, "body": body})
        return number

    def answer(self, method: str, path: str, query: Mapping[str, str], content: Any) -> Answer | None:
        """Answer a request below the repository, None if it is for something else."""
        match method, path.removeprefix(f"repos/{self.name}/").split("/"):
            case "GET", ["contents", *parts]:
                text = self.files.get((query["ref"], unquote("/".join(parts))))
                return _NOT_FOUND if text is None else (200, {"Content-Type": "application/vnd.github.raw+json"}, text)
            case "GET", ["git", "commits", sha]:
                return self._commit(sha)
            case "GET", ["issues", _, "comments"]:
                size = min(int(query.get("per_page", "30")), self.page)
                begin_at = (int(query.get("page", "1")) - 1) * size
                return _json(200, self.comments[begin_at : begin_at + size])
            case "POST", ["issues", _, "comments"]:
                return self._create(content["body"])
            case "PATCH" | "DELETE", ["issues", "comments", number]:
                return self._change(method, int(number), content)
            case _:
                return None

    def _commit(self, sha: str) -> Answer:
        found = [{"sha": each} for each in self.parents.get(sha, ())]
        return _json(200, {"sha": sha, "parents": found}) if sha in self.parents else _NOT_FOUND

    def _create(self, body: str) -> Answer:
        if len(body) > LONGEST_BODY:
            return _json(422, {"message": "Validation Failed"})
        self.comment(body)
        return _json(201, self.comments[-1])

    def _change(self, method: str, number: int, content: Any) -> Answer:
        found = next((each for each in self.comments if each["id"] == number), None)
        if found is None:
            return _NOT_FOUND
        if method == "DELETE":
            self.comments.remove(found)
            return 204, {}, ""
        found["body"] = content["body"]
        return _json(200, found)


def _json(status: int, value: object) -> Answer:
    return status, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(value)
