"""What ECS refuses, reads and reckons with in requests. Imports the simulator's model and errors only."""
