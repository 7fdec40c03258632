"""Settings of an engine: ties, and classes that it does not know yet."""

from __future__ import annotations

from dataclasses import dataclass

from linmax.util.checks import boolean, one_of

__all__ = ["Settings", "settings_of"]


@dataclass(frozen=True)
class Settings:
    """Settings: how ties are broken, whether they update, and whether labels, or votes too, discover classes.

    With ``candidates`` the classes of a trial are those voted for in it, or as many as its column ``known`` says.
    """

    largest: bool = False
    update_on_tie: bool = True
    discover: bool = False
    by_votes: bool = False
    candidates: bool = False


def settings_of(tie: str, update_on_tie: bool, discover: bool | str) -> Settings:
    """Return settings from options of users; ``discover`` is True, False, "votes" or "labels"."""
    one_of("tie", tie, ("smallest", "largest"))
    if discover not in (True, False, "votes", "labels"):
        raise TypeError(f"discover must be True or False, 'votes' or 'labels', got {discover!r}")
    by_votes = bool(discover) and discover != "labels"
    return Settings(tie == "largest", boolean("update_on_tie", update_on_tie), bool(discover), by_votes)
