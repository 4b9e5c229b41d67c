"""What a team wrote down: job definitions, accelerators, triggers, inputs. Imports nothing else of the core."""
