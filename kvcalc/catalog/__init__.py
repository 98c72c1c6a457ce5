"""Names and paths -> profiles, shapes and scenarios."""
