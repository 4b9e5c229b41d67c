"""The simulator's interfaces: HTTP server, in-process clients, IAM policies. Imports the engine and errors."""
