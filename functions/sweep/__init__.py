"""EventBridge Scheduler: sessions that nobody ended, and memory past its time."""
