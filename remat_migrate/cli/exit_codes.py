"""The exit codes, which scripts rely on; `docs/reference/exit-codes.md` explains them."""

CLEAN = 0  # nothing left that fails the run
FINDINGS = 1  # findings left, --diff would change something, or a plan is not met
ERROR = 2  # wrong usage, or a failure of the tool
VERIFICATION_FAILED = 3
SIGNALLED = 128  # plus the number of the signal that ended the run, as shells report it
BROKEN_PIPE = 141
