"""Agents: a name, a system prompt, a model and a memory configuration."""
