"""The drawings of a job as places and words: its life to scale, and its loss over its steps."""
