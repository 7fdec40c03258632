"""Learners at work on arrays: descriptions, the loop over trials, techniques as nodes, one trial at a time."""
