"""Theory: bounds of rules and learners on data, regret, certificates, adversaries, hypotheses with a guarantee.

`rows` and `bounding` are below the rules, which state their bounds with them; `mistake_bounds` and `regret` serve
traces of models; certificates, conversions and adversaries run models.
"""
