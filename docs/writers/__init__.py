"""The writers of the generated pages: one module a page, each with `page() -> str`."""
