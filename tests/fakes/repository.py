"""Where the files of the project lie, and what its functions are called."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FUNCTIONS = {
    "GithubWebhookFunction": "github_webhook",
    "SubmitJobFunction": "submit_job",
    "JobApiFunction": "job_api",
    "PlanApiFunction": "plan_api",
    "LaunchAttemptFunction": "launch_attempt",
    "RequestMachineFunction": "request_machine",
    "ObserveCapacityFunction": "observe_capacity",
    "ObserveTaskFunction": "observe_task",
    "ReconcileFunction": "reconcile",
    "RefreshOfferingsFunction": "refresh_offerings",
    "SendNoticesFunction": "send_notices",
}
