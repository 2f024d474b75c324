"""What the code means to JAX: names, Apis, sites, calls, which arguments Python must know."""
