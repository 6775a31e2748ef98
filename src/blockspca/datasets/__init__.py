"""The matrices of the paper: its data sets, and Model 1 with random noise."""

from .catalogue import PAPER_SETS, DataSetNotFound, PaperSet, data_folder
from .download import DownloadError, download_paper_set
from .paper_sets import load_paper_set
from .synthetic import noisy_blocks

__all__ = [
    "PAPER_SETS",
    "DataSetNotFound",
    "DownloadError",
    "PaperSet",
    "data_folder",
    "download_paper_set",
    "load_paper_set",
    "noisy_blocks",
]
