"""Reports for reviewers: HTML pages and Markdown comments."""
