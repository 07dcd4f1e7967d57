"""What attempts have left behind: asked, committed after all, or swept."""
