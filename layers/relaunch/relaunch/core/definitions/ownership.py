"""The owner of a registered definition: the file that it comes from, and who applied it.

It keeps files from replacing each other's definitions by mistake. It is no permission: whoever may write the table may
write any owner, too.
"""

import re

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.records import dataclass

# The forms of git's remotes ("GIT URLS", git-fetch): a URL, or user@host:path. Names and tokens of users are left out.
_URL = re.compile(r"(?:https?|ssh|git)://(?:[^/]*@)?(?P<host>[^/:@]+)(?::[0-9]*)?/(?P<path>.+)")
_SCP = re.compile(r"(?:[^/:@]+@)?(?P<host>[^/:@]{2,}):(?P<path>[^:].*)")
# arn:aws:sts::111122223333:assumed-role/<role>/<session> ("IAM identifiers").
_SESSION = re.compile(r"(?P<role>arn:[^:]+:sts::[0-9]+:assumed-role/[^/]+)/.+")


@dataclass(frozen=True, slots=True)
class Owner:
    """Where a definition comes from.

    `repository` is that of the file, as `repository_of` names it, empty if it is in none; `file` is the path of the
    file in the repository, or else its name. `caller` is who applied it, as `caller_of` names them.
    """

    repository: str
    file: str
    caller: str

    def __str__(self) -> str:
        """Return the file, with its repository if it is in one."""
        return f"{self.repository}:{self.file}" if self.repository else self.file


@dataclass(frozen=True, slots=True)
class RegisteredDefinition:
    """A definition as it is registered, and its owner; None: it was registered before definitions had owners.

    `version` is another one after each registration.
    """

    definition: JobDefinition
    owner: Owner | None
    version: int


def is_same_owner(one: Owner, other: Owner) -> bool:
    """Return whether two owners are one: the same file of a repository, applied by whomever in the same account.

    A file that is in no repository is only known by its name: the caller must be the same, too.
    """
    if (one.repository, one.file) != (other.repository, other.file):
        return False
    if one.repository:
        return _account(one.caller) == _account(other.caller)
    return one.caller == other.caller


def repository_of(remote: str) -> str:
    """Return host and path of a git remote in lower case, the same for all its URLs; empty if it has no host.

    Example:
        >>> repository_of("git@github.com:acme/vision.git")
        'github.com/acme/vision'
    """
    match = _URL.fullmatch(remote) or (None if "://" in remote else _SCP.fullmatch(remote))
    if match is None:
        return ""
    path = match["path"].strip("/").removesuffix(".git")
    return f"{match['host']}/{path}".lower()


def caller_of(arn: str) -> str:
    """Return the ARN of GetCallerIdentity, of an assumed role without its session: its sessions are one caller."""
    match = _SESSION.fullmatch(arn)
    return match["role"] if match else arn


def _account(arn: str) -> str:
    return arn.split(":")[4]
