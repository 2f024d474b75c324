"""Functions of libraries that call back to Python on the host, or print, while a program runs.

A checkpoint runs them once more when it recomputes. The JAX releases from 0.3 on, with their old
and private names: https://docs.jax.dev/en/latest/external-callbacks.html
"""

from __future__ import annotations

from .framework_layers import names

CALLBACKS = names(
    """
    jax.debug.breakpoint jax.debug.callback jax.debug.inspect_array_sharding jax.debug.log
    jax.debug.print jax.debug.visualize_array_sharding jax.pure_callback
    jax.experimental.io_callback jax.experimental.pure_callback jax.experimental.pallas.debug_print
    jax.experimental.checkify.debug_check jax.experimental.jax2tf.call_tf
    jax.experimental.host_callback.barrier_wait jax.experimental.host_callback.call
    jax.experimental.host_callback.id_print jax.experimental.host_callback.id_tap
    jax._src.callback.io_callback jax._src.callback.pure_callback jax._src.debugger.breakpoint
    jax._src.debugging.debug_callback jax._src.debugging.debug_print
    jax._src.debugging.inspect_array_sharding jax._src.debugging.visualize_array_sharding
    equinox.debug.announce_transform equinox.debug.backward_nan equinox.debug.breakpoint_if
    equinox.debug.store_dce equinox.internal.debug_backward_nan
    equinox.internal.announce_transform equinox.internal.store_dce equinox.error_if
    equinox.branched_error_if
    """
)
