"""The tool on real repositories: what it promises of any, and what was recorded of each."""
