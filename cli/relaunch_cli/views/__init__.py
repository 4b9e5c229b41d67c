"""What the command prints: tables for people, JSON for machines. Imports the core; calls nothing."""
