"""Stores of the application in memory, held to the same contracts as DynamoDB's. Imports ports and the core."""
