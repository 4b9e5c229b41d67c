"""Lambda function `job_api`."""
