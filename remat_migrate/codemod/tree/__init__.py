"""What remains of a syntax tree once some of its nodes are removed."""
