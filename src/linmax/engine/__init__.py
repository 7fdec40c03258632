"""Engine of learners: from descriptions to arrays, the loops over trials, and one trial at a time.

Importing any part of it lets learners be written as text: `linmax.engine.notation` teaches `as_learner` to read it.
"""

from linmax.engine import notation as notation
