"""
Hybrid search: rank new pages
=============================

A query finds pages by words, by vectors and by links. Each of the three rates every page on its own scale, and the
pages differ from query to query, so there are no fixed classes. Pass them as ``candidates``: each rater has one
weight for all pages, learned from clicks. The scales need not be comparable.
"""

import matplotlib.pyplot as plt
import numpy as np

import linmax

QUERIES, FOUND = 1500, 10
rng = np.random.default_rng(0)
learner = linmax.Learner()
hits = {"linmax": [], "reciprocal rank fusion": [], "words": [], "vectors": [], "links": []}
for query in range(QUERIES):
    fit = rng.normal(size=FOUND)  # how well each page really fits
    scores = {
        "words": np.maximum(0, 12 * fit + 12 * rng.normal(size=FOUND)),  # as BM25: from 0 up, without a limit
        "vectors": np.tanh(0.3 * fit + 0.2 * rng.normal(size=FOUND)),  # as a cosine: between -1 and 1
        "links": np.exp(3 * rng.normal(size=FOUND)),  # popularity, over many magnitudes; it has nothing to do with fit
    }
    pages = [f"{query}/{page}" for page in range(FOUND)]
    clicked = pages[int(fit.argmax())]

    ranks = {name: (-said).argsort().argsort() for name, said in scores.items()}
    fused = sum(1 / (60 + rank) for rank in ranks.values())
    for name, said in {"reciprocal rank fusion": fused, **scores}.items():
        hits[name].append(pages[int(said.argmax())] == clicked)
    said = {name: values.tolist() for name, values in scores.items()}
    hits["linmax"].append(learner.learn(candidates=pages, scores=said, label=clicked) == clicked)

figure, axes = plt.subplots(figsize=(8, 4.5))
for name, right in hits.items():
    axes.plot(np.cumsum(right) / np.arange(1, QUERIES + 1), label=name)
    print(f"{name:24s} the clicked page first in {np.mean(right):.3f} of the queries")
axes.set(xlabel="queries", title="how often the page that was clicked came first, so far", ylim=(0, 0.7))
axes.legend(ncols=2)
plt.show()
