"""How GitHub's REST API refuses a request: status, headers, body, and the page that says so.

The words of bodies are GitHub's where a page or a public report has them; none of our code decides by them but by
"rate limit".
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

_DOCS = "https://docs.github.com/en/rest"


@dataclass(frozen=True)
class Refusal:
    """A refusal; `may_pass`: the same request may be taken later."""

    status: int
    page: str
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    may_pass: bool = False
    error: str = ""

    @property
    def is_mendable(self) -> bool:
        """Return whether somebody can set right what it refuses: a missing right, or the name of a repository."""
        return not self.may_pass and self.status in (301, 403, 404)

    @property
    def body(self) -> str:
        """Return the body, which only a proxy's answer has none of."""
        errors = [{"resource": "Status", "code": "custom", "message": self.error}] if self.error else []
        content = {"message": self.message, "documentation_url": self.page, "status": str(self.status)}
        return json.dumps(content | ({"errors": errors} if errors else {}))

    @property
    def answer(self) -> tuple[int, Mapping[str, str], str]:
        """Return it as the fake answers."""
        return self.status, {"Content-Type": "application/json; charset=utf-8", **self.headers}, self.body


_TROUBLE = f"{_DOCS}/using-the-rest-api/troubleshooting-the-rest-api"
_LIMITS = f"{_DOCS}/using-the-rest-api/rate-limits-for-the-rest-api"
REFUSALS: Mapping[str, Refusal] = {
    "a-bad-token": Refusal(401, f"{_DOCS}/authentication/authenticating-to-the-rest-api", "Bad credentials"),
    "a-missing-scope": Refusal(
        403,
        f"{_TROUBLE}#resource-not-accessible",
        "Resource not accessible by integration",
        {"X-Accepted-GitHub-Permissions": "issues=write; pull_requests=write", "X-RateLimit-Remaining": "998"},
    ),
    "private-or-gone": Refusal(404, f"{_TROUBLE}#404-not-found-for-an-existing-resource", "Not Found"),
    "renamed": Refusal(
        301,
        f"{_DOCS}/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects",
        "Moved Permanently",
        {"Location": "https://api.github.com/repositories/456"},
    ),
    "gone-for-good": Refusal(410, f"{_DOCS}/issues/comments#create-an-issue-comment--status-codes", "Gone"),
    "invalid": Refusal(422, f"{_TROUBLE}#validation-failed", "Validation Failed"),
    "too-many-statuses": Refusal(
        422,
        # The words: https://github.com/palantir/policy-bot/issues/470
        f"{_DOCS}/commits/statuses#create-a-commit-status",
        "Validation Failed",
        error="This SHA and context has reached the maximum number of statuses.",
    ),
    "no-such-commit": Refusal(
        422,
        # The words: https://github.com/readthedocs/readthedocs.org/pull/9347
        f"{_DOCS}/commits/statuses#create-a-commit-status",
        "No commit found for SHA: 4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a",
    ),
    "locked": Refusal(403, f"{_DOCS}/issues/issues#lock-an-issue", "Unable to create comment because issue is locked."),
    "a-primary-limit": Refusal(
        403,
        f"{_LIMITS}#exceeding-the-rate-limit",
        "API rate limit exceeded for installation.",
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1793709103"},
        may_pass=True,
    ),
    "a-secondary-limit": Refusal(
        403,
        f"{_LIMITS}#about-secondary-rate-limits",
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        {"Retry-After": "60"},
        may_pass=True,
    ),
    "a-limit-by-429": Refusal(
        429, f"{_LIMITS}#exceeding-the-rate-limit", "Too Many Requests", {"Retry-After": "30"}, may_pass=True
    ),
    "a-limit-that-says-nothing": Refusal(429, f"{_LIMITS}#exceeding-the-rate-limit", may_pass=True),
    "an-error-of-theirs": Refusal(500, f"{_TROUBLE}#timeouts", "Server Error", may_pass=True),
    "a-gateway": Refusal(502, f"{_TROUBLE}#timeouts", "Bad Gateway", may_pass=True),
    "unavailable": Refusal(503, "https://www.githubstatus.com", "Service unavailable", may_pass=True),
}
