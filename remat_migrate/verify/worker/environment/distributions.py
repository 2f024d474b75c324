"""The distribution that provides a module, where the two names differ."""

from __future__ import annotations

_DISTRIBUTIONS = {
    "absl": "absl-py",
    "aqt": "aqtp",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "flash_attn": "flash-attn",
    "git": "GitPython",
    "google.protobuf": "protobuf",
    "haiku": "dm-haiku",
    "hydra": "hydra-core",
    "igraph": "python-igraph",
    "kfac_jax": "kfac-jax",
    "mujoco_py": "mujoco-py",
    "OpenGL": "PyOpenGL",
    "orbax": "orbax-checkpoint",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pl_bolts": "lightning-bolts",
    "pytorch_lightning": "pytorch-lightning",
    "serial": "pyserial",
    "sentence_transformers": "sentence-transformers",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "tensorflow_addons": "tensorflow-addons",
    "tensorflow_datasets": "tensorflow-datasets",
    "tensorflow_hub": "tensorflow-hub",
    "tensorflow_probability": "tensorflow-probability",
    "tensorflow_text": "tensorflow-text",
    "tree": "dm-tree",
    "umap": "umap-learn",
    "usb": "pyusb",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}


def distribution(module: str) -> str:
    """Return what `pip install` needs to provide a module; the names differ for some."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        found = _DISTRIBUTIONS.get(".".join(parts[:end]))
        if found:
            return found
    end = 3 if parts[0] == "google" else 1
    return "-".join(parts[:end]).replace("_", "-")
