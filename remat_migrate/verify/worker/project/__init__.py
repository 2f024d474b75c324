"""What the user's project makes: settings, and parameters by its own initialisers."""
