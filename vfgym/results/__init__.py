"""Results: one row for each rollout, the run's metadata, and both on disk.

``results.jsonl`` holds one `RolloutOutput` a line, in the order in which rollouts finished; ``metadata.json`` says what was
run and sums it up.
"""

from vfgym.results.files import ResultsError, ResultsWriter, load_results
from vfgym.results.metadata import GenerateMetadata, GenerateOutputs, Run, VersionInfo
from vfgym.results.rows import ErrorInfo, RolloutOutput, rollout_output
from vfgym.results.statistics import summarize

__all__ = [
    "ErrorInfo",
    "GenerateMetadata",
    "GenerateOutputs",
    "ResultsError",
    "ResultsWriter",
    "RolloutOutput",
    "Run",
    "VersionInfo",
    "load_results",
    "rollout_output",
    "summarize",
]
