"""Reports: coverage, completeness, and the document that holds them."""
