"""Choosing k
=============

Five of thirty features share a factor. The permutation reference asks how far the data
are from data without correlations; cross-validation asks what holds on other samples.
"""

import matplotlib.pyplot as plt
import numpy as np

import blockspca as bs
from blockspca import plotting

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 30))
X[:, :5] += 1.5 * rng.normal(size=(80, 1))

choice = bs.choose_k(X, k_max=12)
print(choice.reason)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plotting.plot_permutation_reference(choice.reference, ax=left)
plotting.plot_cross_validation(bs.cross_validate(X, k_max=12), ax=right)
plt.show()
