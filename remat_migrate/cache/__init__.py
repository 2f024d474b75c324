"""The cache: replays the output of an earlier identical run.

For a run that writes no source files, the cache stores its output and exit code together with
everything that they depend on: the command, settings and environment (`key.py`), and the state of
every file that the run read or looked for (`file_states.py`). `slot.py` compares all of that.

Nothing here imports rules, analysis or reports, which would take longer than a cached run.
"""
