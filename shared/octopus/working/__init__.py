"""Memory 1: what the model sees on this turn; assembled, budgeted, never stored."""
