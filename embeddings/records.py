"""What a job writes of one example, and what it counts of many."""

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embeddings.examples import Item
from tff_het.datasets import embedding_files


def serialize(item: Item, embedding: np.ndarray) -> bytes:
    """A `tf.train.Example` with id, label, split and source as text and the embedding.

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
    # The checksum is over these bytes, and a map has no order of its own.
    return example.SerializeToString(deterministic=True)


@dataclasses.dataclass
class Summary:
    """What became of some examples; JSON has all its types.

    Attributes:
      dimension: Of the embeddings, 0 while there are none.
      counts: Records by split and class name.
      sources: Names of the places that examples come from, sorted.
      checksum: Over the records, see `embedding_files.checksum`.
      files: Names of written files, and records in each.
      padded: Clips that were too short and were padded.
      skipped: Id, reason and detail of each example that has no record.
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
        """Records in all files."""
        return sum(self.files.values())

    @property
    def skipped_by_reason(self) -> dict[str, int]:
        """How many examples have no record, by reason, sorted."""
        return dict(sorted(collections.Counter(s["reason"] for s in self.skipped).items()))

    def description(self) -> dict[str, Any]:
        """What metadata.json says of the records."""
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
    """The summary of the records of one file."""
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
