"""A report's faces: one document, as tables and as a page for people and programs."""
