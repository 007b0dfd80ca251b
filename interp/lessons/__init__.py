"""Lessons that teach hooks by running them."""
