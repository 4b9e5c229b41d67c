"""AWS as the simulated application meets it: SQS, Lambda, EventBridge, S3, ECR, and clients whose calls may fail."""
