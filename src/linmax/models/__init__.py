"""Interfaces for users: `run`, `Learner`, streams, fusion, and the interfaces of scikit-learn and River."""
