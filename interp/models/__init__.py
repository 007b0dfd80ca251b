"""Models: which there are, where their weights come from, and how they are loaded and copied."""
