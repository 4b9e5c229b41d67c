"""What an AWS account needs for jobs on ECS: pure functions from what was read to checks."""
