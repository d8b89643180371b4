"""Embeddings of a published network as data sets: any, of coughs (FSD), of CIFAR-10."""

import pathlib

from tff_het.datasets import embedding_files, files
from tff_het.datasets.dataset import Dataset

_HOW = (
    "Compute it with python -m embeddings.extract --output=<data_dir>/{name} (embeddings/README.md"
    " has the commands); if it is there but damaged, remove it first."
)


def load(data_dir: pathlib.Path | None, name: str = "embedded") -> Dataset:
    """Loads a folder of embeddings written by `embeddings.extract`.

    Args:
      data_dir: Holds `<name>/metadata.json`; for 'embedded' metadata.json itself will do.
      name: The data set's name and folder.

    Returns:
      `x` float32 [n, dimension], in the order of the examples' ids; `y` int32, the classes in the
      order of their names; `source` int32: the place that an example comes from.

    Raises:
      FileNotFoundError: A file is missing, or data_dir is None.
      ValueError: A file is truncated or corrupt.
    """
    own = embedding_files.METADATA if name == "embedded" else None
    with files.explained(_HOW.format(name=name)):
        records = embedding_files.read(files.folder(data_dir, name, own))
    columns = {"x": records.embeddings, "y": records.labels, "source": records.sources}
    train, test = (
        {key: column[records.splits == number] for key, column in columns.items()}
        for number in range(len(embedding_files.SPLITS))
    )
    return Dataset(name, train, test, records.class_names, records.origin)


def load_fsd_cough(data_dir: pathlib.Path | None) -> Dataset:
    """Loads the cough detection task of CGAU (Rieger et al. 2020): coughs against all else.

    Args:
      data_dir: Holds `fsd_cough/metadata.json`: YamNet embeddings of FSDKaggle2018, or of any other
        audio with a class `Cough` (in capitals or not).

    Returns:
      As `load`; `y` is 1 for coughs.

    Raises:
      FileNotFoundError: A file is missing, or data_dir is None.
      ValueError: A file is truncated or corrupt, or holds no coughs.
    """
    data = load(data_dir, "fsd_cough")
    with files.explained(_HOW.format(name=data.name)):
        try:
            return data.one_against_rest("cough")
        except ValueError as error:
            path = files.folder(data_dir, data.name) / embedding_files.METADATA
            found = ", ".join(data.class_names)
            raise files.corrupt(path, "a class 'Cough' among others", found) from error


def load_cifar10_embeddings(data_dir: pathlib.Path | None) -> Dataset:
    """Loads CIFAR-10 as Inception's embeddings (Rieger et al. 2020); as `load`."""
    return load(data_dir, name="cifar10_embeddings")
