"""One trial at a time at the price of a call: Python reads names, compiled code plays, counts and returns a class.

An `Engine` plays slices of trials, for which Python lays out arrays; for one trial that takes longer than the trial
itself. A path lays everything out once, in memory, and has two functions, ``ask`` and ``teach``.

- `path`: reading an instance, and arguments of kernels in memory
- `rules`: rules with their techniques, the best of several, and a vote over either
- `numbers`: the pool for attributes, where they are numbers
- `choice`: the path of an engine
"""
