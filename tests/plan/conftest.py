"""One measuring process for the tests of a module, on the module's `MODEL` unless it says else."""

from measuring import folder, project, worker

__all__ = ["folder", "project", "worker"]
