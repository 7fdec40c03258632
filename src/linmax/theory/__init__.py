"""What can be promised: certificates, adversaries, and hypotheses with a guarantee."""
