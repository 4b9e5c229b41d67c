"""What goes wrong, drawn from the seed: capacity, prices, machines, and rarer things."""
