"""A panel of measurements, around those that are there
=======================================================

Which measurements of 569 tumours should be kept, if two are recorded anyway, no
quantity is to be taken in all its three forms (mean, error, worst), and three
components of the panel are to say as much as possible? `solve_shared` looks for one set
of features for all components, with a bound on every other set that keeps these
constraints.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import blockspca as bs

data = load_breast_cancer(as_frame=True).data
cov = bs.Covariance.from_data(data, scale=True)
quantities = [
    name.removeprefix("mean ").removeprefix("worst ").removesuffix(" error")
    for name in data.columns
]
wanted = bs.Constraints(
    include=["mean texture", "mean smoothness"], groups=quantities, max_per_group=2
)
path = bs.solve_shared_path(
    cov,
    [4, 6, 8, 12, 16],
    n_components=3,
    constraints=wanted,
    limits=bs.Limits(gap=0.02, nodes=200),
)
for panel in path.values():
    print(panel, panel.features)

figure, ax = plt.subplots(layout="constrained")
ks = list(path)
total = cov.diagonal().sum()
ax.plot(ks, [path[k].objective / total for k in ks], "o-", label="found")
ax.plot(ks, [path[k].upper_bound / total for k in ks], "--", label="at most")
ax.set(xlabel="features in the panel", ylabel="share of the variance")
ax.legend()
plt.show()
