"""The simulator's ways in: HTTP for boto3 and scripts, and clients in process. Imports the engine."""
