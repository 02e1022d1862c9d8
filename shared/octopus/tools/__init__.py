"""Tools: what an agent can do, and the loop that lets the model do it."""
