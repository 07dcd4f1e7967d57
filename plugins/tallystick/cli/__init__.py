"""The command line: the workflows for a person at a terminal, or a program that reads JSON."""
