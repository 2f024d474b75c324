"""A UNet of v-diffusion-jax for 128 by 128 pixels: Haiku, with `hk.remat` around every block."""

import os
import sys

import jax
import jax.numpy as jnp

REPOSITORY = "crowsonkb/v-diffusion-jax"
COMMIT = "f082e75aa0363bb1382ec608819ce81a6404d6e6"
PACKAGES = "dm-haiku Pillow tqdm"

sys.path.insert(0, os.environ["REPOSITORY_FOLDER"])
from diffusion.models.wikiart_128 import WikiArt128Model as Model


def loss(params, key, images, times, target):
    """Return the mean squared error of the predicted velocity."""
    return jnp.mean((Model.apply(params, key, images, times, {}) - target) ** 2)


def args(batch=16):
    """Return a batch of images with their times, and shapes of the parameters."""
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    images = jax.ShapeDtypeStruct((batch, *Model.shape), jnp.float32)
    times = jax.ShapeDtypeStruct((batch,), jnp.float32)
    return jax.eval_shape(Model.init, key, images, times, {}), key, images, times, images
