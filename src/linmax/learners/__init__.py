"""Learners that are not rules: they use all classes of a trial, or none of its sub-experts."""
