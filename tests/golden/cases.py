"""All cases; importing this module registers them in `golden.record.CASES`."""

from __future__ import annotations

from golden import (
    play_bounds,
    play_cli,
    play_estimators,
    play_fusion,
    play_learner,
    play_merging,
    play_river,
    play_run,
    play_service,
    play_stream,
    play_threshold,
)

FACES = [
    face
    for module in (
        play_run,
        play_learner,
        play_stream,
        play_fusion,
        play_estimators,
        play_river,
        play_threshold,
        play_bounds,
        play_merging,
        play_service,
        play_cli,
    )
    for face in module.FACES
]
