"""Plans, the prices they are based on, and the explanation of one instance type."""

from collections.abc import Mapping, Sequence

from relaunch.adapters.definition_file.ad_hoc_name import NAME
from relaunch.core.lifecycle.market_choice import MarketChoice
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.selection import explain_rejection, explain_rows
from relaunch.usecases.plan_jobs import Plan
from relaunch_cli.views.json_output.definitions import accelerator_json
from relaunch_cli.views.json_output.jobs import filters_json
from relaunch_cli.views.json_output.json_time import JsonObject, json_time
from relaunch_cli.views.json_output.machines import fleet_request_json
from relaunch_cli.views.node_fit import fits_json
from relaunch_cli.views.plan import PlanBasis, find_manifest
from relaunch_cli.views.type_explanation import explain_type


def plans_json(plans: Sequence[Plan], basis: PlanBasis, explained: InstanceType | None) -> JsonObject:
    """Return the document of `plan`; `explained` is the instance type to explain."""
    prices = [
        {
            "prices": each.part.label,
            "source": each.origin.source,
            "at": json_time(each.origin.at),
            "is_stale": each.origin.is_stale(basis.at),
        }
        for each in basis.origins
    ]
    documents = [_plan_json(plan, basis, explained) for plan in plans]
    return {
        "plans": documents,
        "prices": prices,
        "price_region": basis.price_region or None,
        "is_offline": basis.is_offline,
    }


def _plan_json(plan: Plan, basis: PlanBasis, explained: InstanceType | None) -> JsonObject:
    manifest = find_manifest(plan, basis)
    selection = plan.selection
    is_named = plan.definition.name != NAME
    is_revision_named = is_named and plan.definition.target.capabilities.takes_task_definition
    rows = explain_rows(selection) if selection else ()
    rejection = explain_rejection(selection) if selection else ""
    document: JsonObject = {
        "definition": plan.definition.name if is_named else None,
        "task_definition": plan.revision.arn if plan.revision and is_revision_named else None,
        "at": json_time(plan.at),
        "target": str(plan.definition.target),
        "is_satisfiable": manifest is not None or bool(selection and selection.kept and not plan.quota_problem),
        "problem": plan.problem or rejection or plan.quota_problem or None,
        "notices": list(plan.notices),
        "accelerator": accelerator_json(plan.definition.accelerator),
        "filters": filters_json(selection.filter_counts) if selection else [],
        "offerings": [dict(row) for row in rows],
        "market": _market_json(plan, plan.market) if plan.market else None,
        "fleet_request": fleet_request_json(plan.request) if plan.request else None,
        "manifest": dict(manifest) if manifest else None,
        "nodes": None if plan.fits is None else fits_json(plan.fits),
    }
    if explained is not None and selection is not None:
        document["explained"] = _explained_json(rows, explained.name)
    return document


def _market_json(plan: Plan, market: MarketChoice) -> JsonObject:
    situation = market.situation
    return {
        "policy": str(plan.definition.policy),
        "action": str(market.choice.action),
        "pool": market.choice.pool or None,
        "reason": market.reason,
        "until": json_time(market.until),
        "spare_hours": situation.spare,
        "work_left_hours": situation.work_left,
        "overhead_hours": situation.overhead,
        "reserve_hours": situation.reserve,
    }


def _explained_json(rows: Sequence[Mapping[str, object]], instance_type: str) -> JsonObject:
    return {
        "instance_type": instance_type,
        "offerings": [
            {
                "purchase": row["purchase"],
                "zone": row["zone"],
                "capacity_provider": row["capacity_provider"],
                "rank": row["rank"],
                "passed": list(verdict.passed),
                "failed": verdict.failed or None,
                "reason": verdict.reason,
            }
            for verdict in explain_type(rows, instance_type)
            for row in verdict.rows
        ],
    }
