"""Lambda function `submit_job`."""
