"""Sparse PCA in one picture
============================

Thirteen measurements of 178 wines, standardised. Two components of three named features
each, both proved to be the best there are; what the scores separate; and how much
variance k features can reach, for every k.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import blockspca as bs
from blockspca import plotting

wine = load_wine(as_frame=True)
model = bs.SparsePCA(n_components=2, k=3, scale=True).fit(wine.data)
cov = bs.Covariance.from_data(wine.data, scale=True)
path = bs.solve_path(cov, k_max=13)
for result in model.results_:
    print(result)

figure, axes = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
plotting.plot_loadings(model.results_[0], ax=axes[0])
plotting.plot_scores(
    model.transform(wine.data), color=wine.target_names[wine.target], ax=axes[1]
)
plotting.plot_sparsity_path(path, ax=axes[2])
plt.show()
