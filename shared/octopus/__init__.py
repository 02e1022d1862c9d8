"""Octopus: a memory that lasts for chat agents.

Four memories, one turn:

* `octopus.working`: what the model sees on this turn; assembled, budgeted, never stored
* `octopus.episodic`: what this user and this agent discussed before
* `octopus.semantic`: the agent's documents
* `octopus.procedural`: approved how-to steps
* `octopus.turn`: one turn, top to bottom
"""
