"""Checks of what users add: a rule against its contract."""

from __future__ import annotations

from linmax.rules.check import check_rule

__all__ = ["check_rule"]
