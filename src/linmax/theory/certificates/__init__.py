"""Certificates: the best mistake bound that given data allow, and what the learner really did.

A bound of `linmax.bounds` holds for every comparator u and every margin. `certify` looks for the pair that
makes it least, so that it says as much as theory can about these data.

How u is found. The margin in the 1-norm and the least noise at a given margin are linear programs (HiGHS).
The bound itself, as a function of u and margin, is convex over affine for the multiplicative rules and a
convex condition for the additive ones, hence has no false minima: it is minimised by L-BFGS with the hinge
softened and then made sharp in steps. The search may stop short of the best u; the certificate is valid all
the same, because margin, noise and bound are computed afterwards, exactly and on all trials, for the u that
was found.
"""

from __future__ import annotations

from linmax.theory.certificates.certificate import Certificate
from linmax.theory.certificates.certifying import certify, certify_rows
from linmax.theory.certificates.margins import hinge_noise, least_noise, widest_margin

__all__ = ["Certificate", "certify", "certify_rows", "hinge_noise", "least_noise", "widest_margin"]
