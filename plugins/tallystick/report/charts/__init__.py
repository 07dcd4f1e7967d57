"""The drawings of a report as plain numbers and words: a template makes SVG of them."""
