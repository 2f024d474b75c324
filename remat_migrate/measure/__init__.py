"""Measure what each checkpoint of a function saves and costs, by tracing the function on shapes."""
