"""What each checkpoint of a differentiated function saves and costs, by tracing it on shapes."""
