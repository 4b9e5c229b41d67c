"""Lambda function `launch_attempt`."""
