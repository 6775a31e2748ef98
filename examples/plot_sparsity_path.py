"""How much each feature adds
=============================

The largest variance for every number of features, with a proof for each. With a gap of
five percent the proofs are much cheaper, and the truth lies in the shaded band.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import blockspca as bs
from blockspca import plotting

cov = bs.Covariance.from_data(load_digits().data)
exact = bs.solve_path(cov, k_max=8)
within = bs.solve_path(cov, k_max=24, limits=bs.Limits(gap=0.05))
print(exact)
print(f"half the variance of PCA with {within.smallest_k(0.5)} of 64 pixels")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plotting.plot_sparsity_path(exact, ax=left)
plotting.plot_sparsity_path(within, ax=right)
plt.show()
