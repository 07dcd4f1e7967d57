"""What ``./tallystick`` does before anything else can run: set-up, then dispatch.

Standard library only: these modules run on the system's Python, before the virtual environment
exists.
"""
