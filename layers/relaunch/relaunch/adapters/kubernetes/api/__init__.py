"""The Kubernetes API: a client for batch/v1 and v1, which every server from 1.20 on answers."""
