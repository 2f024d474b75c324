"""Import real modules: removed names are bridged, and stand-ins take the place of missing ones."""
