"""The names of the modules that Flax, Haiku and Equinox provide.

`tests/analysis/test_module_kinds.py` compares them with what is installed, both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Framework = Literal["linen", "nnx", "haiku", "equinox"]


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# The packages with each framework's own modules, including their base class.
PACKAGES: Mapping[Framework, tuple[str, ...]] = {
    "linen": ("flax.linen",),
    "nnx": ("flax.nnx",),
    "haiku": ("haiku", "haiku.nets"),
    "equinox": ("equinox", "equinox.nn"),
}
LAYERS: Mapping[Framework, frozenset[str]] = {
    "linen": names(
        """
        BatchNorm Bidirectional Conv ConvLSTMCell ConvLocal ConvTranspose Dense DenseGeneral Dropout
        Einsum Embed Fp8DirectDotGeneralOp Fp8DotGeneral Fp8DotGeneralOp Fp8Einsum GRUCell GroupNorm
        InstanceNorm LSTMCell LayerNorm MGUCell Module MultiHeadAttention
        MultiHeadDotProductAttention NANOOFp8DotGeneralOp OptimizedLSTMCell PReLU RMSNorm RNN
        RNNCellBase SelfAttention Sequential SimpleCell SpectralNorm WeightNorm
        """
    ),
    "nnx": names(
        """
        BatchNorm Bidirectional Conv ConvTranspose Dict Dropout Einsum Embed GRUCell GroupNorm
        InstanceNorm LSTMCell LayerNorm Linear LinearGeneral List LoRA LoRALinear Module
        MultiHeadAttention OptimizedLSTMCell PReLU RMSNorm RNN RNNCellBase RoPE Sequential
        SimpleCell SpectralNorm WeightNorm
        """
    ),
    "haiku": names(
        """
        AvgPool BatchNorm Bias Conv1D Conv1DLSTM Conv1DTranspose Conv2D Conv2DLSTM Conv2DTranspose
        Conv3D Conv3DLSTM Conv3DTranspose ConvND ConvNDTranspose DeepRNN DepthwiseConv1D
        DepthwiseConv2D DepthwiseConv3D EMAParamsTree Embed ExponentialMovingAverage Flatten GRU
        GroupNorm IdentityCore InstanceNorm LSTM LayerNorm Linear MLP MaxPool MobileNetV1 Module
        MultiHeadAttention RMSNorm RNNCore ResNet ResNet101 ResNet152 ResNet18 ResNet200 ResNet34
        ResNet50 ResetCore Reshape SNParamsTree SeparableDepthwiseConv2D Sequential SpectralNorm
        VanillaRNN VectorQuantizer VectorQuantizerEMA
        """
    ),
    "equinox": names(
        """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AdaptivePool AvgPool1d AvgPool2d AvgPool3d BatchNorm Conv Conv1d Conv2d
        Conv3d ConvTranspose ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout Embedding
        GRUCell GroupNorm Identity LSTMCell Lambda LayerNorm Linear MLP MaxPool1d MaxPool2d
        MaxPool3d Module MultiheadAttention PReLU Partial Pool RMSNorm RotaryPositionalEmbedding
        Sequential Shared SpectralNorm StateIndex StatefulLayer WeightNorm
        """
    ),
}
# Equinox layers that hold arrays whatever they are constructed with.
WITH_ARRAYS = names(
    """
    Conv Conv1d Conv2d Conv3d ConvTranspose ConvTranspose1d ConvTranspose2d ConvTranspose3d
    Embedding GRUCell LSTMCell Linear MLP MultiheadAttention PReLU
    """
)
