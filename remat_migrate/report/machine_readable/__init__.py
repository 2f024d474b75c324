"""Reports for other programs: JSON, SARIF, JUnit, and code review services."""
