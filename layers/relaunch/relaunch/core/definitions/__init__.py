"""Job definitions: accelerators, triggers, inputs. Imports no other package of the core."""
