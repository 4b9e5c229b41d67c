"""What starts a job: events from outside, and which definitions they match. Imports definitions and jobs only."""
