"""`Learner`: one instance at a time, by name, with its label at once or later."""

from linmax.models.online.learner import KIND, Learner

__all__ = ["KIND", "Learner"]
