"""From a matrix to its blocks
==============================

The paper's first figure for a matrix of your own: entries up to the threshold ε are
dropped, the features fall into blocks, and the component is found in one of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import blockspca as bs
from blockspca import plotting

A, _ = bs.datasets.noisy_blocks(
    n_blocks=6, block_size=8, sigma=0.03, n_samples=12, rng=3
)
shuffled = np.random.default_rng(0).permutation(len(A))
A = A[np.ix_(shuffled, shuffled)]

result = bs.solve(A, k=5, threshold=0.14)
print(result)

plotting.plot_blocks(A, result)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
plotting.plot_largest_block(A, result=result, ax=ax)
plt.show()
