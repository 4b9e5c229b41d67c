"""Output of `relaunch deploy`: what will be made, what that costs while nothing is trained, and what cannot run yet."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch_cli.deployment.findings import (
    REQUESTED_VCPUS,
    Kept,
    ParameterChange,
    QuotaRequests,
    Stack,
    Survey,
    blocked,
    role_stack_name,
)
from relaunch_cli.deployment.idle_cost import PRICES_OF, IdleCost, idle_costs, total
from relaunch_cli.views.table import PlainTable, key_values

_NODES_MEET = "NodesMeet"
_NODES_NOTE = (
    "A job of N nodes needs N times the vCPUs of one machine: `relaunch plan` and `relaunch doctor` say how many, and "
    "the command that requests them, once it is defined"
)


def render_survey(plan: Survey, changes: Sequence[ParameterChange] = ()) -> RenderableType:
    """Return what a deployment will make, what it uses that is there, and which parameters of that it `changes`."""
    parts: list[RenderableType] = [Text(f"Relaunch in account {plan.account}, {plan.region}", "bold"), Text("")]
    table = key_values()
    for name, what in _stacks(plan, changes):
        table.add_row(Text(name), Text(what))
    for name, what in _once(plan):
        table.add_row(Text(name), Text(what))
    parts += [table, Text("")]
    if changes:
        parts += [Text("PARAMETERS THAT CHANGE", "bold"), _changes(changes), Text("")]
    parts += [Text(f"note: {note}", "yellow") for note in plan.notes]
    if plan.quotas.unread:
        parts.append(Text(f"note: {plan.quotas.unread}: whether accelerators can start is not known", "yellow"))
    if plan.notes or plan.quotas.unread:
        parts.append(Text(""))
    parts.append(_cost(_items(plan)))
    if not (plan.is_on("Webhook") and plan.is_on("Uploads")):
        parts += [Text(""), _left_out(plan)]
    return Group(*parts)


def render_end(plan: Survey, requests: QuotaRequests, for_nodes: Sequence[str] = ()) -> RenderableType:
    """Return what cannot run until somebody grants it, and what to do next.

    `for_nodes` is what registered definitions of several nodes lack.
    """
    parts: list[RenderableType] = [Text(""), Text(f"{plan.stack} is deployed.", "bold")]
    parts += [Text(line) for line in requests.refused]
    waiting = blocked(plan.quotas, requests.made)
    if waiting:
        parts.append(Text("Cannot start until AWS grants a quota (`relaunch doctor` says when it has):"))
        parts += [Text(f"  {line}") for line in waiting]
    if for_nodes:
        parts.append(Text("Jobs of several nodes need the vCPUs of all of their machines at once:"))
        parts += [Text(f"  {line}") for line in for_nodes]
    stack = "" if plan.stack == "relaunch" else f" --stack {plan.stack}"
    if plan.is_new and plan.given.get(_NODES_MEET) == "on":
        parts.append(Text(_NODES_NOTE))
    if plan.is_new:
        parts.append(Text(f"Next, in the repository of your training: relaunch init{stack}"))
    else:
        parts.append(Text(f"Whether all is well: relaunch doctor{stack}"))
    return Group(*parts)


def survey_json(
    plan: Survey,
    changes: Sequence[ParameterChange] = (),
    *,
    is_deployed: bool,
    requests: QuotaRequests | None = None,
    for_nodes: Sequence[str] = (),
) -> Mapping[str, Any]:
    """Return a deployment as JSON, with the parameters that it `changes` of stacks that exist."""
    items = _items(plan)
    asked = {code: float(REQUESTED_VCPUS[code]) for code in requests.made} if requests else {}
    requested = {**plan.quotas.requested, **asked}
    refused = requests.refused if requests else ()
    return {
        "stack": plan.stack,
        "account": plan.account,
        "region": plan.region,
        "deployed": is_deployed,
        "stacks": [
            {"name": name, "exists": name in plan.before} for name, _ in _stacks(plan) if name.startswith(plan.stack)
        ],
        "changes": [asdict(each) for each in changes],
        "service_linked_roles": list(plan.roles.missing),
        "github_oidc_provider": plan.needs_github_provider,
        "quotas": [
            {"code": each.code, "name": each.name, "requested_vcpus": requested.get(each.code)}
            for each in plan.quotas.zero
        ],
        "idle_usd_per_month": round(total(items), 2),
        "idle": [{"what": each.what, "usd_per_month": round(each.usd, 2)} for each in items],
        "prices_of": PRICES_OF,
        "notes": [*plan.notes, *([plan.quotas.unread] if plan.quotas.unread else []), *refused, *for_nodes],
    }


def _stacks(plan: Survey, changes: Sequence[ParameterChange] = ()) -> Sequence[tuple[str, str]]:
    """Return the stacks, each with what it has, and whether it is made or updated."""
    rows = []
    if plan.training is not None:
        name = f"{plan.stack}-training"
        before = plan.before[name].parameters if name in plan.before else {}
        rows.append((name, _training(plan.training, before)))
    rows += [
        (role_stack_name(plan.stack, each), f"the role of the training {each}, for its own checkpoints")
        for each in plan.trainings
    ]
    rows += [(each.name, f"the roles of {each.parameters['GitHubRepository']} on GitHub") for each in plan.repositories]
    if plan.has_machines:
        rows.append((f"{plan.stack}-machines", "launch templates for GPUs and for Neuron, role, security group"))
    rows += [
        (f"{plan.stack}-{each.partition('/')[0].replace('.', '-')}-…", f"a capacity provider of {each}")
        for each in plan.given.get("Providers", "").split(",")
        if each
    ]
    rows.append((plan.stack, _application(plan)))
    # A template of another release changes more than parameters, which only a change set shows.
    there = dict.fromkeys(plan.before, "update if the template differs")
    verbs = {**there, **{each.stack: "update" for each in changes}}
    return [(name, f"{verbs.get(name, 'make')}: {what}") for name, what in rows]


def _changes(changes: Sequence[ParameterChange]) -> RenderableType:
    table = key_values()
    for each in changes:
        values = "is set again" if each.before == each.after else f"{each.before or 'empty'} → {each.after or 'empty'}"
        table.add_row(Text(each.stack), Text(f"{each.name} {values}"))
    return table


def _application(plan: Survey) -> str:
    has_webhook = plan.is_on("Webhook")
    functions = ("nine", "ten", "eleven")[has_webhook + plan.is_on("Notices")]
    optional = plan.is_on("Uploads") + plan.is_on("Notices") + plan.has_topics
    queues = ("five", "six", "seven", "eight")[optional]
    webhook = "the webhook with its secret, " if has_webhook else ""
    before = plan.before[plan.stack].parameters if not plan.is_new else {}
    lost = [
        what
        for switch, what in (("Webhook", "the webhook with all of its secrets"), ("Uploads", "the queue of uploads"))
        if not plan.is_new and before.get(switch, "on") == "on" and not plan.is_on(switch)
    ]
    removes = f"; DELETES {' and '.join(lost)}, which definitions may need" if lost else ""
    return f"{functions} functions, {queues} queues, a table, {webhook}alarms, dashboards{removes}"


def _instead_of(before: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    let_in = before.get("GitHubRepository", "")
    return f" instead of {let_in}" if let_in and let_in != wanted["GitHubRepository"] else ""


def _training(wanted: Mapping[str, str], before: Mapping[str, str]) -> str:
    zones = [name for name in wanted if name.startswith("Zone") and wanted[name]]
    parts = [
        f"a network over {len(zones)} zones" if zones else f"in {wanted.get('VpcId')}",
        _named("cluster", wanted.get("ClusterName", ""), wanted.get("ExistingCluster")),
        _named("repository", wanted.get("RepositoryName", ""), wanted.get("ExistingRepository")),
        *(
            f"your bucket {wanted[name]}" if wanted.get(name) else f"a bucket for {what}"
            for name, what in (("CheckpointBucket", "checkpoints"), ("DataBucket", "data"))
        ),
        f"{'your' if wanted.get('ExistingLogGroup') == 'true' else 'a'} log group",
        "roles",
    ]
    if wanted.get("GitHubRepository"):
        parts.append(f"a role for {wanted['GitHubRepository']} on GitHub{_instead_of(before, wanted)}")
    return ", ".join(parts)


def _named(what: str, name: str, exists: str | None) -> str:
    return f"{'your ' if exists == 'true' else ''}{what} {name}"


def _once(plan: Survey) -> Sequence[tuple[str, str]]:
    rows = []
    if plan.roles.missing:
        rows.append(("once per account", f"make: the service-linked role of {' and of '.join(plan.roles.missing)}"))
    if plan.needs_github_provider:
        rows.append(("once per account", "make: the OIDC provider of GitHub"))
    if plan.is_new and plan.quotas.to_request:
        wanted = ", ".join(f"{REQUESTED_VCPUS[each.code]} vCPUs of {each}" for each in plan.quotas.to_request)
        rows.append(("quotas that are 0", f"request: {wanted}"))
    return rows


def _items(plan: Survey) -> Sequence[IdleCost]:
    return idle_costs(
        has_machines=plan.has_machines,
        has_monitoring=plan.has_monitoring,
        has_webhook=plan.is_on("Webhook"),
        has_uploads=plan.is_on("Uploads"),
        has_notices=plan.is_on("Notices"),
        has_topics=plan.has_topics,
        has_providers=plan.has_providers,
    )


def _left_out(plan: Survey) -> RenderableType:
    """Return what the application does without, and how it gets it."""
    parts = [
        f"{what} with {switch}=on"
        for switch, what in (("Webhook", "events of GitHub by a webhook"), ("Uploads", "uploads to S3"))
        if not plan.is_on(switch)
    ]
    return Text(f"Jobs are started by images that are pushed, and by callers; by {' and by '.join(parts)}.")


def _cost(items: Sequence[IdleCost]) -> RenderableType:
    headings = ("WHILE NOTHING IS TRAINED", "USD A MONTH", "WITHOUT FREE ALLOWANCES")
    table = PlainTable(*headings, right=headings[1:], optional=headings[2:])
    for each in items:
        table.add_row(Text(each.what), f"{each.usd:.2f}", f"{each.usd_without_allowances:.2f}")
    table.add_row(
        Text(f"in all (list prices of {PRICES_OF})", "bold"),
        Text(f"{total(items):.2f}", "bold"),
        f"{sum(each.usd_without_allowances for each in items):.2f}",
    )
    return table


def render_removal(found: Sequence[Stack], kept: Sequence[Kept], account: str, region: str) -> RenderableType:
    """Return what a removal will delete, and what it will not."""
    return Group(
        Text(f"Will be deleted in account {account}, {region}, after all jobs were cancelled:", "bold"),
        *(Text(f"  the stack {each.name} ({each.status})") for each in found),
        Text("Will be kept; the command that deletes each is shown at the end:", "bold"),
        *(Text(f"  {each.what}: {each.why}") for each in kept),
    )


def render_kept(kept: Sequence[Kept]) -> RenderableType:
    """Return what is left in the account, why, and how it is deleted; names and commands are whole, to be copied."""
    parts = [Text("Removed, but for:")]
    for each in kept:
        parts.append(Text(f"- {each.what}: {each.why}"))
        # Whole, so that it can be copied.
        parts.append(Text(f"    {each.command}", no_wrap=True, overflow="ignore"))
    return Group(*parts)


def kept_json(found: Sequence[Stack], kept: Sequence[Kept]) -> Mapping[str, Any]:
    """Return a removal as JSON."""
    return {
        "deleted": [each.name for each in found],
        "kept": [{"what": each.what, "why": each.why, "command": each.command} for each in kept],
    }
