"""One trial at a time at the price of a call: compiled code reads Python's objects, plays, counts, and answers.

An `Engine` plays slices of trials, for which Python lays out arrays; for one trial that takes longer than the trial
itself. A path lays everything out once, in memory, and has two built-in functions, ``ask`` and ``teach``.

- `built_in`: built-in functions made of compiled code
- `objects`: dicts, lists and labels, read in compiled code
- `path`: what the paths have in common
- `one_rule`: a rule without techniques
- `with_techniques`: a rule with recycling and averaging, the best of several, and a vote over either
- `numbers`: the pool for attributes, where they are numbers
- `choice`: which of them there is for an engine
"""
