"""EventBridge Scheduler and operators: another embedding model for all memories."""
