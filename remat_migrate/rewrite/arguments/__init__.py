"""Options and calls that refer to arguments by position."""
