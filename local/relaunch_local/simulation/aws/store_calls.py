"""The calls of DynamoDB that each method of a store makes: the simulation's stores are in memory, and make none.

The contract tests of the stores hold the real adapters to it.
"""

from collections.abc import Mapping

StoreCall = tuple[str, str]
"""An operation, and the index that is queried, empty for the table; the parts of a transaction are operations."""

_GET: StoreCall = ("GetItem", "")
_PUT: StoreCall = ("PutItem", "")
_UPDATE: StoreCall = ("UpdateItem", "")
_DELETE: StoreCall = ("DeleteItem", "")
_QUERY: StoreCall = ("Query", "")
_DUE: StoreCall = ("Query", "due")
_SLOTS: StoreCall = ("Query", "slots")

STORE_CALLS: Mapping[tuple[str, str], frozenset[StoreCall]] = {
    ("budgets", "load_budgets"): frozenset({_QUERY}),
    ("budgets", "save_report"): frozenset({_UPDATE}),
    ("budgets", "set_budget"): frozenset({_UPDATE}),
    ("capacity", "count_run"): frozenset({_UPDATE}),
    ("capacity", "load_capacity"): frozenset({_QUERY}),
    ("capacity", "load_capacity_memory"): frozenset({_QUERY}),
    ("capacity", "load_pool"): frozenset({_GET}),
    ("capacity", "remember"): frozenset({_GET, _PUT}),
    ("capacity", "reopen"): frozenset({_PUT}),
    ("capacity", "forget_unready"): frozenset({_GET, _PUT}),
    ("capacity", "save_pool"): frozenset({_PUT}),
    ("rates", "load_rates"): frozenset({_QUERY}),
    ("rates", "load_rate"): frozenset({_GET}),
    ("rates", "save_rate"): frozenset({_PUT}),
    ("commit_statuses", "load_budget"): frozenset({_GET}),
    ("commit_statuses", "load_report"): frozenset({_GET}),
    ("commit_statuses", "load_shown"): frozenset({_GET}),
    ("commit_statuses", "save_budget"): frozenset({_PUT}),
    ("commit_statuses", "save_report"): frozenset({_PUT}),
    ("commit_statuses", "save_shown"): frozenset({_PUT}),
    ("definitions", "delete_definition"): frozenset({_GET, _DELETE}),
    ("definitions", "find_definitions"): frozenset({_QUERY}),
    ("definitions", "list_definitions"): frozenset({_QUERY}),
    ("definitions", "list_registered"): frozenset({_QUERY}),
    ("definitions", "load_definition"): frozenset({_GET}),
    ("definitions", "load_registered"): frozenset({_GET}),
    ("definitions", "save_definition"): frozenset({_GET, _PUT, _DELETE}),
    ("events", "begin_last_try"): frozenset({_PUT}),
    ("deliveries", "load_progress"): frozenset({_GET}),
    ("deliveries", "load_report"): frozenset({_GET}),
    ("deliveries", "save_progress"): frozenset({_PUT}),
    ("deliveries", "save_report"): frozenset({_PUT}),
    ("events", "list_events"): frozenset({_QUERY}),
    ("events", "load_dispatch_starts"): frozenset({_GET}),
    ("events", "record_event"): frozenset({_PUT}),
    ("events", "save_dispatch_starts"): frozenset({_PUT}),
    ("jobs", "create_job"): frozenset({_PUT, _UPDATE}),
    ("jobs", "list_jobs"): frozenset({("Query", "listing")}),
    ("jobs", "load_costs"): frozenset({_QUERY}),
    ("jobs", "load_due"): frozenset({_DUE}),
    ("jobs", "load_history"): frozenset({_QUERY}),
    ("jobs", "load_group"): frozenset({_GET}),
    ("jobs", "load_job"): frozenset({_QUERY}),
    ("jobs", "release_group"): frozenset({_UPDATE}),
    ("jobs", "load_on_instance"): frozenset({_QUERY}),
    ("jobs", "load_open"): frozenset({_DUE}),
    ("jobs", "load_runs"): frozenset({_QUERY}),
    ("jobs", "load_slot_holders"): frozenset({_SLOTS}),
    ("jobs", "load_waiting"): frozenset({_SLOTS}),
    ("jobs", "load_waiting_for_image"): frozenset({_QUERY}),
    ("jobs", "load_warning"): frozenset({_GET}),
    ("jobs", "save_job"): frozenset({_QUERY, _PUT, _UPDATE}),
    ("jobs", "save_warning"): frozenset({_PUT}),
    ("machines", "find_by_instance"): frozenset({_GET}),
    ("machines", "load_due"): frozenset({_DUE}),
    ("machines", "load_living"): frozenset({_DUE}),
    ("machines", "load_machine"): frozenset({_GET}),
    ("machines", "load_starts"): frozenset({_QUERY}),
    ("machines", "load_totals"): frozenset({_GET}),
    ("machines", "load_with_room"): frozenset({_SLOTS}),
    ("machines", "save_machine"): frozenset({_PUT, _UPDATE}),
    ("machines", "settle_start"): frozenset({_GET, _PUT}),
    ("maintenance", "load_maintenance"): frozenset({_GET}),
    ("maintenance", "load_revision"): frozenset({_GET}),
    ("maintenance", "save_maintenance"): frozenset({_PUT}),
    ("maintenance", "save_revision"): frozenset({_PUT}),
    ("maintenance", "take_turn"): frozenset({_UPDATE}),
    ("notice_records", "load_pause"): frozenset({_GET}),
    ("notice_records", "load_record"): frozenset({_GET}),
    ("notice_records", "save_pause"): frozenset({_PUT}),
    ("notice_records", "save_record"): frozenset({_PUT}),
}

LEADING_KEYS: Mapping[tuple[str, str], str] = {
    ("definitions", "list_definitions"): "DEFINITION",
    **{(port, method): "DELIVERIES" for port, method in STORE_CALLS if port == "deliveries"},
    **{(port, method): "STATUSES" for port, method in STORE_CALLS if port == "commit_statuses"},
    **{("commit_statuses", method): "STATUS#acme/resnet@0" for method in ("load_shown", "save_shown")},
    **{("notice_records", method): "NOTICE#resnet-0" for method in ("load_record", "save_record")},
    **{("notice_records", method): "RECEIVER#team-ml" for method in ("load_pause", "save_pause")},
}
"""The partition key of calls by functions whose role restricts them to some."""
