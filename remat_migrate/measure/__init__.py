"""Measure the savings and costs of each checkpoint of a function, by tracing it on shapes."""
