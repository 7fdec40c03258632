"""The pool for voters and raters: on-line logits with several memories, mixed by who was best lately."""

from linmax.learners.votes.pool import RunningVotes, VotesPool

__all__ = ["RunningVotes", "VotesPool"]
