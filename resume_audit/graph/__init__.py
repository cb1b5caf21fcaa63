"""The object graph that a job can reach: walked without touching it, compared, and set piece by piece."""
