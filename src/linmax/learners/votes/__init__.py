"""The default learner for votes and scores: online logits, mixed."""
