"""How a project makes its modules and configurations: constructor calls found in its source."""
