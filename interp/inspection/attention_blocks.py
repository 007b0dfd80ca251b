"""Which layers of a network attend over all patches, and their weights."""

import math

from torch import Tensor, nn
from torch.nn.functional import linear

from interp.errors import LayerError
from interp.models.layers import LayerInfo
from interp.models.loading import LoadedModel

MAX_BYTES = 2 * 2**30


def attention_blocks(model: LoadedModel) -> list[LayerInfo]:
    """Attention layers that run once, over tokens whose places are known."""
    found = [
        info
        for info in model.layers
        if info.calls == 1
        and not info.same_as  # a block that is counted twice would be multiplied twice
        and isinstance(model.module.get_submodule(info.path), nn.MultiheadAttention)
        and token_grid(model, info) != ((0, 0), 0)
    ]
    return sorted(found, key=lambda info: info.order)


def token_grid(model: LoadedModel, block: LayerInfo) -> tuple[tuple[int, int], int]:
    """(h, w) of the patches and how many tokens stand before them; ((0, 0), 0) where not known.

    Without `batch_first` the tokens are the first axis, and a layer before it tells their grid.
    """
    if block.grid is not None:
        return block.grid, block.extra_tokens
    count = block.shape[0] if block.shape else 0
    for info in model.layers:
        if info.layout == "tokens" and info.grid and info.shape and info.shape[1] == count:
            return info.grid, info.extra_tokens
    return (0, 0), 0


def check_size(model: LoadedModel, paths: list[str], tokens: int) -> None:
    """Refuse attention weights that would take more than 2 GiB, or differ in their heads.

    Raises
    ------
    LayerError
    """
    heads = [int(model.module.get_submodule(path).num_heads) for path in paths]  # type: ignore
    if len(set(heads)) > 1:
        raise LayerError(
            f"the attention blocks of {model.spec.name} have {heads} heads: only those of equal "
            "numbers can be shown together"
        )
    size = 4 * sum(heads) * tokens**2
    if size > MAX_BYTES:
        raise LayerError(
            f"the attention weights of {model.spec.name} would take {size / 2**30:.1f} GiB: take "
            "a ViT with fewer tokens, such as vit_b_16 with its 224 px weights"
        )


def attention_weights(part: nn.MultiheadAttention, query: Tensor, key: Tensor) -> Tensor:
    """What `part(query, key, …, need_weights=True, average_attn_weights=False)` returns beside.

    Parameters
    ----------
    query, key : Tensor
        As the module takes them: (N, T, C), or (T, N, C) without `batch_first`.

    Returns
    -------
    Tensor
        float32 (N, heads, T, S); rows sum to 1.
    """
    if not part.batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    size, heads = part.embed_dim, part.num_heads
    if part.in_proj_weight is not None:
        q_weight, k_weight = part.in_proj_weight[:size], part.in_proj_weight[size : 2 * size]
    else:
        q_weight, k_weight = part.q_proj_weight, part.k_proj_weight
    bias = part.in_proj_bias
    q_bias, k_bias = (None, None) if bias is None else (bias[:size], bias[size : 2 * size])
    q = linear(query, q_weight, q_bias).float().unflatten(-1, (heads, -1)).transpose(1, 2)
    k = linear(key, k_weight, k_bias).float().unflatten(-1, (heads, -1)).transpose(1, 2)
    return (q @ k.mT / math.sqrt(size // heads)).softmax(-1)
