"""EventBridge: an ended session becomes an episode."""
