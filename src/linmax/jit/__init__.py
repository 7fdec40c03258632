"""Compilation: the `kernel` decorator, its cache, calls by address, and explicit vectors."""
