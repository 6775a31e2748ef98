"""Watching a proof
===================

What `progress=` is told while a component is found and proved: the objective rises, the
upper bound falls, and the answer is optimal when they meet.
"""

import matplotlib.pyplot as plt
import numpy as np

import blockspca as bs
from blockspca import plotting

X = np.random.default_rng(0).normal(size=(60, 120))
events = []
result = bs.solve(
    bs.Covariance.from_data(X),
    k=7,
    limits=bs.Limits(nodes=200_000),
    progress=events.append,
)
print(result)
print(bs.verify(result, bs.Covariance.from_data(X), max_nodes=2000))

plotting.plot_proof(events)
plt.show()
