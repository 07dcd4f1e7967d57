"""The protocols between the story and the world. Workflows know these; adapters fulfil them."""
