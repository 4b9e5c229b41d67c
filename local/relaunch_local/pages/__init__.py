"""Pages of docs/ that are written from the code, and tested to be current."""
