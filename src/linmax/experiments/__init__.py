"""Experiments of Mesterharm and Hsu, repeated: ``python -m linmax.experiments --help``."""
