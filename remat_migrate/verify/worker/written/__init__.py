"""Write the cases of units as tests that need neither remat-migrate nor pickles."""
