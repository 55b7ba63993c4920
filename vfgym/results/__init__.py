"""Results: one row for each rollout, the run's metadata, and both on disk.

``results.jsonl`` holds one `RolloutOutput` a line; ``metadata.json`` says what was run and sums it up (``docs/results.md`` has
every key). A run that was stopped is resumed with `Earlier`.
"""

from vfgym.results.comparison import Comparison, compare
from vfgym.results.dataset import push_to_hub, results_dataset
from vfgym.results.export import Exported, export
from vfgym.results.files import ResultsError, ResultsWriter
from vfgym.results.fingerprints import fingerprint_of
from vfgym.results.frames import dataframe
from vfgym.results.merging import Merged, merge
from vfgym.results.metadata import GenerateMetadata, GenerateOutputs, Run, VersionInfo
from vfgym.results.reading import load_results
from vfgym.results.reducing import Reduced, reduce_rollouts
from vfgym.results.resume import EarlierRun, Slot, find_incomplete
from vfgym.results.rows import ErrorInfo, RolloutOutput, rollout_output
from vfgym.results.summary import summarize
from vfgym.results.tokens import ProcessedOutputs, processed_outputs

__all__ = [
    "Comparison",
    "EarlierRun",
    "ErrorInfo",
    "Exported",
    "GenerateMetadata",
    "GenerateOutputs",
    "Merged",
    "ProcessedOutputs",
    "Reduced",
    "ResultsError",
    "ResultsWriter",
    "RolloutOutput",
    "Run",
    "Slot",
    "VersionInfo",
    "compare",
    "dataframe",
    "export",
    "find_incomplete",
    "fingerprint_of",
    "load_results",
    "merge",
    "processed_outputs",
    "push_to_hub",
    "reduce_rollouts",
    "results_dataset",
    "rollout_output",
    "summarize",
]
