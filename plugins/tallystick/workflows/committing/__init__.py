"""From an attempt's files to published rows: proof, commit, publishing."""
