"""The language server: findings, fixes and explanations in an editor, by pygls.

```
editor ─ server ─▶ desk: open documents ─ projects ─▶ views: analyses
       ─ diagnostics, actions ─▶ editor
```

`server` is what the editor talks to; `desk` says when there is a look at a project; `projects`
looks, in a thread of its own; the others are functions of what it saw.
"""
