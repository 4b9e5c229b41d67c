"""What DynamoDB refuses, and the emulators of it take."""
