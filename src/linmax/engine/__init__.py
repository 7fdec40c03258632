"""Engine of learners: from descriptions to arrays, the loops over trials, and one trial at a time.

Importing any part of it lets learners be written as text: `linmax.engine.notation` teaches `as_learner` to read it.
"""

from linmax.engine import notation as notation
from linmax.techniques import average as average
from linmax.techniques import bandit as bandit
from linmax.techniques import combine as combine
from linmax.techniques import recycle as recycle
from linmax.techniques import rivals as rivals
from linmax.techniques import selective as selective
from linmax.techniques import stack as stack
from linmax.techniques import vote as vote
