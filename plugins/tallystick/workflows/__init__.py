"""The story: effects in order, through ports. Decisions are in the domain."""
