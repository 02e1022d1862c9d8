"""Memory 3: the agent's documents."""
