"""Memory 4: approved how-to steps."""
