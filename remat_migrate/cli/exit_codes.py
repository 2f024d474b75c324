"""The exit codes, which scripts rely on."""

CLEAN = 0  # nothing left that fails the run
FINDINGS = 1  # findings left, --diff would change something, or a plan is not met
ERROR = 2  # wrong usage, or a failure of the tool
VERIFICATION_FAILED = 3
SIGNALLED = 128  # plus the number of the signal that ended the run, as shells report it
BROKEN_PIPE = 141

# What each means, as the documentation lists them.
EXIT_CODES = {
    CLEAN: "Nothing remains that fails the run.",
    FINDINGS: "Errors or warnings remain; with `--diff`, something would change; for `plan`, no"
    " placement meets the budget, or `--apply` cannot write one.",
    ERROR: "Wrong usage, a path that does not exist, or a fault of the tool.",
    VERIFICATION_FAILED: "A verification failed: a fix was reverted, or `verify` found a"
    " difference. With `verify --strict`, also if a function was not compared.",
    SIGNALLED: "A signal ended the run, whose number is added: 130 for Ctrl-C, 143 for SIGTERM."
    " The verdicts so far are reported, and `--fix --verify` writes no file.",
}
