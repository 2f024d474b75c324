"""The language server: findings, fixes and explanations in an editor, with pygls.

`server` talks to the editor, `document_scheduler` decides when to analyse a project, and `projects`
analyses it in a thread of its own. The other modules turn an analysis into protocol messages.
"""
