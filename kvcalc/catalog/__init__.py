"""Names, paths and texts -> models, machines and scenarios in base units."""
