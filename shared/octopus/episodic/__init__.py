"""Memory 2: what this user and this agent discussed before."""
