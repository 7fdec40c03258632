"""What users hold: `run`, `Learner`, streams, fusion, and the interfaces of scikit-learn and River."""
