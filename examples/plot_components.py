"""Two components of named features
===================================

Thirty measurements of 569 tumours. Two components of five features each, both proved
optimal: the first is about size, the second about shape.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import blockspca as bs
from blockspca import plotting

data = load_breast_cancer(as_frame=True)
model = bs.SparsePCA(n_components=2, k=5, scale=True).fit(data.data)
for result in model.results_:
    print(result)

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(14, 4), layout="constrained"
)
plotting.plot_loadings(model.results_[0], ax=left)
plotting.plot_loadings(model.results_[1], ax=middle)
plotting.plot_scores(
    model.transform(data.data), color=data.target_names[data.target], ax=right
)
plt.show()
