"""Simulated AWS services (SQS, Lambda, EventBridge, S3, ECR), and clients whose calls may fail."""
