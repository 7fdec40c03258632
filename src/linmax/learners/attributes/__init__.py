"""The default learner for attributes: a few diverse members, fused online."""
