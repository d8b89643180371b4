"""Serialize one example, and summarize many."""

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embeddings.examples import Item
from tff_het.datasets import embedding_files


def serialize(item: Item, embedding: np.ndarray) -> bytes:
    """Returns a serialized `tf.train.Example`: embedding, and id, label, split, source as text.

    Args:
      item: The example.
      embedding: float32 [dimension].
    """
    texts = {"id": item.id, "label": item.label, "split": item.split, "source": item.source}
    feature = {
        key: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
        for key, text in texts.items()
    }
    floats = tf.train.FloatList(value=embedding)
    feature["embedding"] = tf.train.Feature(float_list=floats)
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    # The checksum covers these bytes, and a protocol buffer map has no order.
    return example.SerializeToString(deterministic=True)


@dataclasses.dataclass
class Summary:
    """What became of some examples; all types are JSON types.

    Attributes:
      dimension: Dimension of the embeddings, 0 if there are none.
      counts: Number of records by split and class name.
      sources: Origins of the examples, sorted.
      checksum: Of the records, see `embedding_files.checksum`.
      files: Number of records by file name.
      padded: Number of clips that were padded.
      skipped: Id, reason and detail of each example without a record.
    """

    dimension: int = 0
    counts: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    sources: list[str] = dataclasses.field(default_factory=list)
    checksum: int = 0
    files: dict[str, int] = dataclasses.field(default_factory=dict)
    padded: int = 0
    skipped: list[dict[str, str]] = dataclasses.field(default_factory=list)

    @property
    def num_records(self) -> int:
        """Number of records in all files."""
        return sum(self.files.values())

    @property
    def skipped_by_reason(self) -> dict[str, int]:
        """Number of examples without a record, by reason, sorted."""
        return dict(sorted(collections.Counter(s["reason"] for s in self.skipped).items()))

    def description(self) -> dict[str, Any]:
        """Returns the entries of metadata.json that describe the records."""
        return {
            "dimension": self.dimension,
            "num_examples": self.num_records,
            "class_names": sorted({label for counts in self.counts.values() for label in counts}),
            "sources": self.sources,
            "counts": self.counts,
            "skipped": self.skipped_by_reason,
            "padded": self.padded,
            "checksum": embedding_files.checksum_text(self.checksum),
            "files": self.files,
        }


def summarize(name: str, serialized: Sequence[bytes]) -> Summary:
    """Summarizes the records of one file.

    Args:
      name: The file's name.
      serialized: Its records, as `serialize` returns them.
    """
    summary = Summary(checksum=embedding_files.checksum(serialized), files={name: len(serialized)})
    sources = set()
    for record in serialized:
        feature = tf.train.Example.FromString(record).features.feature
        label, split, source = (
            feature[key].bytes_list.value[0].decode() for key in ("label", "split", "source")
        )
        counts = summary.counts.setdefault(split, {})
        counts[label] = counts.get(label, 0) + 1
        sources.add(source)
        summary.dimension = len(feature["embedding"].float_list.value)
    summary.sources = sorted(sources)
    return summary


def merge(summaries: Iterable[Summary]) -> Summary:
    """Merges summaries; the result does not depend on their order.

    Raises:
      ValueError: Parts have different dimensions: the module was changed meanwhile.
    """
    total = Summary()
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for part in summaries:
        dimensions = {total.dimension, part.dimension} - {0}
        if len(dimensions) > 1:
            raise ValueError(
                f"Expected embeddings of one dimension; found {sorted(dimensions)}. Pass a module"
                " that gives the same for all examples."
            )
        total.dimension = max(total.dimension, part.dimension)
        for split, by_label in part.counts.items():
            counts[split].update(by_label)
        total.sources = sorted({*total.sources, *part.sources})
        total.checksum = embedding_files.add_checksums(total.checksum, part.checksum)
        total.files |= part.files
        total.padded += part.padded
        total.skipped += part.skipped
    total.counts = {split: dict(sorted(counts[split].items())) for split in sorted(counts)}
    total.files = dict(sorted(total.files.items()))
    total.skipped.sort(key=lambda entry: entry["id"])
    return total
