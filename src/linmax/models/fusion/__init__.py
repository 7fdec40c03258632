"""Fusion of votes and scores: the on-line model, its report, its rivals."""
