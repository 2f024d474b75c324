"""Which arguments of a checkpointed function are static, and which must be."""
