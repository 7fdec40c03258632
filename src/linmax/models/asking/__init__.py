"""Whom to ask next, and how few voters are enough: what `VoteFusion` and `Learner` share."""
