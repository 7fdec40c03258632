"""Data as users have them: votes, scores, attributes, side columns, scaling, normalization; generated problems."""
