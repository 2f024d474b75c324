"""Outcomes of runs, kept: what a run over the same files with the same options printed.

A run that writes no source files is kept as a whole: what it wrote where, and its exit code. What
it depends on is kept beside it: the command, settings and surroundings as a *key* (`key.py`), and
the *state* of every file that it read, or looked for in vain (`states.py`). An outcome is played
back only if all of that is the same (`recall.py`). `kept.py` is what a command asks.

Nothing here imports the rules, the model or the reports: that takes longer than a run may that is
known already.
"""
