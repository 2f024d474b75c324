"""Which parameters must be concrete at trace time."""
