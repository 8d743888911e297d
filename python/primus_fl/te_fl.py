"""A vendor of TransformerEngine-FL: TE_FL_PLUGIN_MODULES=primus_fl.te_fl registers it as ``primus``.

Its functions have the names, the order of arguments and the results of TransformerEngine-FL. What
an op here does not offer, such as quantizers, raises NotImplementedError before anything is written,
and TransformerEngine-FL goes on to its next implementation. TransformerEngine-FL follows the TE_FL_*
variables; the ops are dispatched here once more, under the policy in the file that PRIMUS_POLICY
names, and manager() explains and counts that.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Optional

import torch

from . import ops as _ops
from . import torch as functions
from ._library import Unsupported
from ._manager import Manager, Saved

VENDOR = "primus"
PRIORITY = 100

_DTYPES = {
    "kFloat32": torch.float32,
    "kFloat16": torch.float16,
    "kBFloat16": torch.bfloat16,
}
_NUMBERS = {4: torch.float32, 5: torch.float16, 6: torch.bfloat16}


@functools.lru_cache(maxsize=None)
def manager() -> Manager:
    """Return the manager that serves TransformerEngine-FL."""
    return Manager(variables=False)


class _Dispatched:
    """The functions of primus_fl.ops under that manager, which the first call opens."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = getattr(_ops, name)

        def call(*operands: Any, **arguments: Any) -> Any:
            return op(*operands, manager=manager(), **arguments)

        setattr(self, name, call)
        return call


ops = _Dispatched()


def _dtype(given: Any, otherwise: Any) -> Any:
    """Return the dtype of torch for a DType of TransformerEngine, by its name, or for its number."""
    if given is None:
        return otherwise
    if isinstance(given, torch.dtype):
        return given
    name = getattr(given, "name", None)
    found = _DTYPES.get(name) if name is not None else _NUMBERS.get(int(given))
    if found is None:
        raise Unsupported(f"results of dtype {given!r}")
    return found


def _plain(*operands: Any, quantizer: Any = None) -> None:
    """Decline a call with quantized operands, or with some that are not in host memory."""
    if quantizer is not None:
        raise Unsupported("quantizers")
    for x in operands:
        if x is not None and (not isinstance(x, torch.Tensor) or type(x) not in (torch.Tensor, torch.nn.Parameter)):
            raise Unsupported(f"an operand of type {type(x).__name__}")
        if x is not None and not x.is_cpu:
            raise Unsupported(f"an operand on {x.device}")


def _activation(name: str) -> Callable[..., Any]:
    op = getattr(ops, name)

    def forward(input: Any, quantizer: Any = None) -> Any:
        _plain(input, quantizer=quantizer)
        return op(input)

    return forward


def _activation_gradient(name: str) -> Callable[..., Any]:
    op = getattr(ops, name)

    def backward(grad: Any, fwd_input: Any, quantizer: Any = None) -> Any:
        _plain(grad, fwd_input, quantizer=quantizer)
        return op(grad, fwd_input)

    return backward


def _bias_gradient(name: str) -> Callable[..., Any]:
    op = getattr(ops, name)

    def backward(grad: Any, fwd_input: Any, quantizer: Any = None) -> Any:
        _plain(grad, fwd_input, quantizer=quantizer)
        results = op(grad, fwd_input, output=torch.empty_like(fwd_input), dbias=grad.new_empty(grad.shape[-1]))
        by_size = sorted(results, key=lambda t: -t.dim())
        return by_size[0], by_size[1]

    return backward


def clamped_swiglu(
    input: Any, quantizer: Any = None, limit: float = 7.0, alpha: float = 1.702, glu_linear_offset: float = 1.0
) -> Any:
    _plain(input, quantizer=quantizer)
    return ops.clamped_swiglu(input, limit=limit, alpha=alpha, glu_linear_offset=glu_linear_offset)


def clamped_dswiglu(
    grad: Any,
    fwd_input: Any,
    quantizer: Any = None,
    limit: float = 7.0,
    alpha: float = 1.702,
    glu_linear_offset: float = 1.0,
) -> Any:
    _plain(grad, fwd_input, quantizer=quantizer)
    return ops.clamped_dswiglu(grad, fwd_input, limit=limit, alpha=alpha, glu_linear_offset=glu_linear_offset)


def _rows(x: Any) -> Any:
    """Return statistics of rows as the ops here have them: in f32, of any shape."""
    return x.float().contiguous()


def layernorm_fwd(
    input: Any,
    weight: Any,
    bias: Any,
    eps: float,
    ln_out: Any,
    quantizer: Any,
    otype: Any,
    sm_margin: int = 0,
    zero_centered_gamma: bool = False,
) -> Any:
    _plain(input, weight, bias, ln_out, quantizer=quantizer)
    output = ln_out if ln_out is not None else torch.empty(input.shape, dtype=_dtype(otype, input.dtype))
    return ops.layernorm_fwd(input, weight, bias=bias, output=output, eps=eps, zero_centered_gamma=zero_centered_gamma)


def layernorm_bwd(
    dz: Any, x: Any, mu: Any, rsigma: Any, gamma: Any, sm_margin: int = 0, zero_centered_gamma: bool = False
) -> Any:
    _plain(dz, x, mu, rsigma, gamma)
    return ops.layernorm_bwd(
        dz,
        x,
        _rows(mu),
        _rows(rsigma),
        gamma,
        dbeta=torch.empty_like(gamma),
        zero_centered_gamma=zero_centered_gamma,
        saved=Saved(),
    )


def rmsnorm_fwd(
    input: Any,
    weight: Any,
    eps: float,
    ln_out: Any,
    quantizer: Any,
    otype: Any,
    sm_margin: int = 0,
    zero_centered_gamma: bool = False,
) -> Any:
    _plain(input, weight, ln_out, quantizer=quantizer)
    output = ln_out if ln_out is not None else torch.empty(input.shape, dtype=_dtype(otype, input.dtype))
    y, rsigma = ops.rmsnorm_fwd(input, weight, output=output, eps=eps, zero_centered_gamma=zero_centered_gamma)
    return y, None, rsigma


def rmsnorm_bwd(
    dz: Any, x: Any, rsigma: Any, gamma: Any, sm_margin: int = 0, zero_centered_gamma: bool = False, eps: float = 1e-5
) -> Any:
    _plain(dz, x, rsigma, gamma)
    return ops.rmsnorm_bwd(dz, x, _rows(rsigma), gamma, zero_centered_gamma=zero_centered_gamma, saved=Saved())


def rmsnorm_bwd_add(
    dz: Any, x: Any, add: Any, rsigma: Any, gamma: Any, sm_margin: int = 0, zero_centered_gamma: bool = False
) -> Any:
    _plain(dz, x, add, rsigma, gamma)
    return ops.rmsnorm_bwd_add(dz, x, add, _rows(rsigma), gamma, zero_centered_gamma=zero_centered_gamma)


def generic_gemm(
    A: Any,
    transA: bool,
    B: Any,
    transB: bool,
    D: Any,
    quantizer: Any,
    output_dtype: Any,
    bias: Any,
    bias_type: Any,
    gelu: bool,
    gelu_in: Any,
    grad: bool,
    workspace: Any,
    workspace_size: int,
    accumulate: bool,
    use_split_accumulator: bool,
    comm_overlap: Any = None,
    comm_type: Any = None,
    extra_output: Any = None,
    bulk_overlap: bool = False,
    alpha: float = 1.0,
    beta: Optional[float] = None,
) -> Any:
    _plain(A, B, D, bias, gelu_in, quantizer=quantizer)
    if comm_overlap is not None or extra_output is not None or bulk_overlap:
        raise Unsupported("communication that overlaps with a product")
    a = A.reshape(-1, A.shape[-1])
    n = a.shape[0] if transA else a.shape[1]
    shape = (B.shape[-1], n) if transB else (*B.shape[:-1], n)
    if D is None:
        if accumulate:
            raise Unsupported("accumulation without D")
        D = torch.empty(shape, dtype=_dtype(output_dtype, A.dtype))
    bias_grad, pre_gelu = None, gelu_in
    if grad and bias is not None:
        bias_grad = torch.empty(B.shape[-1], dtype=D.dtype)
    if gelu and not grad and pre_gelu is None:
        pre_gelu = torch.empty(shape, dtype=D.dtype)
    ops.generic_gemm(
        a,
        B,
        trans_a=bool(transA),
        trans_b=bool(transB),
        D=D,
        bias=bias_grad if grad else bias,
        gelu=bool(gelu),
        gelu_in=pre_gelu if gelu else None,
        grad=bool(grad),
        accumulate=bool(accumulate),
        alpha=alpha,
        beta=beta if accumulate else None,
    )
    return D, bias_grad, pre_gelu if gelu and not grad else None, None


def _softmax(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    forward_op, backward_op = getattr(ops, name + "_forward"), getattr(ops, name + "_backward")

    def forward(input: Any, scale: float) -> Any:
        _plain(input)
        return forward_op(input, output=torch.empty_like(input), scale_factor=scale)

    def backward(output_grad: Any, softmax_output: Any, scale: float) -> Any:
        _plain(output_grad, softmax_output)
        return backward_op(output_grad, softmax_output, output=torch.empty_like(output_grad), scale_factor=scale)

    return forward, backward


def scaled_masked_softmax_forward(input: Any, mask: Any, scale: float) -> Any:
    _plain(input, mask)
    return ops.scaled_masked_softmax_forward(input, mask, output=torch.empty_like(input), scale_factor=scale)


def dropout_fwd(input: Any, dropout_probability: float, out: Any = None) -> Any:
    _plain(input, out)
    if out is None:
        out = torch.empty_like(input)
    mask = torch.empty((input.numel() + 7) // 8, dtype=torch.uint8)
    seed = int(torch.randint(1 << 62, (1,)))  # of torch's generator, so that torch.manual_seed decides
    ops.dropout_fwd(input, out=out, mask=mask, dropout_probability=dropout_probability, seed=seed)
    return out, mask


def dropout_bwd(grad_output: Any, mask: Any, dropout_probability: float, grad_input: Any = None) -> Any:
    _plain(grad_output, mask, grad_input)
    if mask.dtype is not torch.uint8 or mask.numel() != (grad_output.numel() + 7) // 8:
        raise Unsupported("a mask that another implementation has made")
    if grad_input is None:
        grad_input = torch.empty_like(grad_output)
    return ops.dropout_bwd(
        grad_output, mask, grad_input=grad_input, dropout_probability=dropout_probability, saved=Saved()
    )


def multi_tensor_scale(chunk_size: int, noop_flag: Any, tensor_lists: Any, scale: float) -> None:
    ops.multi_tensor_scale(noop_flag, tensor_lists, scale=scale)


def _norms(op: Callable[..., Any], noop_flag: Any, tensor_lists: Any, per_tensor: bool, *scale: Any) -> Any:
    norm, each = torch.empty(1), torch.empty(len(tensor_lists[0]) if per_tensor else 0)
    op(noop_flag, tensor_lists, *scale, norm=norm, per_tensor=each if per_tensor else None)
    return norm, each


def multi_tensor_l2norm(chunk_size: int, noop_flag: Any, tensor_lists: Any, per_tensor: bool = False) -> Any:
    return _norms(ops.multi_tensor_l2norm, noop_flag, tensor_lists, per_tensor)


def multi_tensor_unscale_l2norm(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, scale: Any, per_tensor: bool = False
) -> Any:
    return _norms(ops.multi_tensor_unscale_l2norm, noop_flag, tensor_lists, per_tensor, scale)


def multi_tensor_adam(
    chunk_size: int,
    noop_flag: Any,
    tensor_lists: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
    mode: int,
    bias_correction: int,
    weight_decay: float,
) -> None:
    ops.multi_tensor_adam(
        noop_flag,
        tensor_lists,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        epsilon=eps,
        step=step,
        mode=mode,
        bias_correction=bool(bias_correction),
        weight_decay=weight_decay,
    )


def multi_tensor_sgd(
    chunk_size: int,
    noop_flag: Any,
    tensor_lists: Any,
    wd: float,
    momentum: float,
    dampening: float,
    lr: float,
    nesterov: bool,
    first_run: bool,
    wd_after_momentum: bool,
    scale: float,
) -> None:
    ops.multi_tensor_sgd(
        noop_flag,
        tensor_lists,
        wd=wd,
        momentum=momentum,
        dampening=dampening,
        lr=lr,
        nesterov=bool(nesterov),
        first_run=bool(first_run),
        wd_after_momentum=bool(wd_after_momentum),
        scale=scale,
    )


def _named_format(given: Any) -> str:
    """Return the format that a member of NVTE_QKV_Format names; its numbers change with versions."""
    name = str(getattr(given, "name", given)).rpartition("_")[2].lower()
    if name not in ("sbhd", "bshd", "thd"):
        raise Unsupported(f"format {given!r}")
    return name


def _rope(name: str) -> Callable[..., Any]:
    def rotate(
        input: Any,
        freqs: Any,
        start_positions: Any,
        qkv_format: Any,
        interleaved: bool,
        cu_seqlens: Any,
        cp_size: int,
        cp_rank: int,
    ) -> Any:
        _plain(input, freqs, start_positions, cu_seqlens)
        return getattr(ops, name)(
            input,
            freqs,
            start_positions=start_positions,
            output=torch.empty(input.shape, dtype=input.dtype),
            qkv_format=_named_format(qkv_format),
            interleaved=bool(interleaved),
            cu_seqlens=cu_seqlens,
            cp_size=cp_size,
            cp_rank=cp_rank,
        )

    return rotate


def swap_first_dims(tensor: Any, *, out: Any) -> None:
    _plain(tensor, out)
    ops.swap_first_dims(tensor, out=out)


def fused_multi_row_padding(input: Any, output: Any, input_row_list: Any, padded_input_row_list: Any) -> None:
    _plain(input, output)
    ops.fused_multi_row_padding(
        input, output=output, input_rows=list(input_row_list), output_rows=list(padded_input_row_list)
    )


def fused_multi_row_unpadding(input: Any, output: Any, input_row_list: Any, unpadded_input_row_list: Any) -> None:
    _plain(input, output)
    ops.fused_multi_row_unpadding(
        input, output=output, input_rows=list(input_row_list), output_rows=list(unpadded_input_row_list)
    )


def _format(layout: str) -> str:
    """Return the format of a layout such as sb3hd or bshd_bs2hd."""
    for start, name in (("sb", "sbhd"), ("bs", "bshd"), ("t", "thd")):
        if layout.startswith(start):
            return name
    raise Unsupported(f"layout {layout}")


def _attention_class(base: Any) -> Any:
    """Return the class of attention for a version of TransformerEngine-FL."""

    class FlashAttentionPrimus(base):
        """Attention by fused_attn_fwd and fused_attn_bwd."""

        @property
        def backend_name(self) -> str:
            return VENDOR

        def forward(
            self,
            query_layer: Any,
            key_layer: Any,
            value_layer: Any,
            attention_mask: Any = None,
            qkv_layout: str = "sbh3d",
            cu_seqlens_q: Any = None,
            cu_seqlens_kv: Any = None,
            max_seqlen_q: Optional[int] = None,
            max_seqlen_kv: Optional[int] = None,
            attn_mask_type: str = "causal",
            window_size: Any = None,
            alibi_slopes: Any = None,
            cp_group: Any = None,
            cp_global_ranks: Any = None,
            cp_stream: Any = None,
            cp_comm_type: str = "p2p",
            fp8: bool = False,
            fp8_meta: Any = None,
            quantizers: Any = None,
            inference_params: Any = None,
            flash_attention_backend: Any = None,
            fp8_output: bool = False,
            **others: Any,
        ) -> Any:
            wanted = [name for name, value in others.items() if value is not None and value is not False]
            for what, asked in (
                ("fp8", fp8 or fp8_output),
                ("context parallelism", cp_group is not None),
                ("inference", inference_params is not None),
                ("dropout", self.training and self.attention_dropout > 0),
                ("a mask", attention_mask is not None and attn_mask_type == "arbitrary"),
                (", ".join(wanted), bool(wanted)),
            ):
                if asked:
                    raise Unsupported(f"attention with {what}")
            _plain(query_layer, key_layer, value_layer, cu_seqlens_q, cu_seqlens_kv, alibi_slopes)
            fmt = _format(qkv_layout.lower())
            arguments: dict[str, Any] = {"attn_mask_type": attn_mask_type.replace(",", "_")}
            if fmt == "thd" or "padding" in attn_mask_type:
                if cu_seqlens_q is None or cu_seqlens_kv is None:
                    raise Unsupported("sequences of several lengths without cu_seqlens")
                arguments.update(cu_seqlens_q=cu_seqlens_q.int(), cu_seqlens_kv=cu_seqlens_kv.int())
                if "padding" not in attn_mask_type:
                    arguments["attn_mask_type"] = {"no_mask": "padding"}.get(
                        attn_mask_type, "padding_" + attn_mask_type
                    )
            if window_size is not None and tuple(window_size) != (-1, -1):
                arguments["window_size"] = tuple(window_size)
            if alibi_slopes is not None:
                arguments.update(bias_type="alibi", alibi_slopes=alibi_slopes)
            o = functions.attention(
                query_layer,
                key_layer,
                value_layer,
                scale=self.softmax_scale,
                qkv_format=fmt,
                manager=manager(),
                **arguments,
            )
            return o.reshape(*o.shape[:-2], -1)

    return FlashAttentionPrimus


def _functions() -> dict[str, Callable[..., Any]]:
    """Return the functions by the names of the ops of TransformerEngine-FL."""
    found: dict[str, Callable[..., Any]] = {}
    for name in ("gelu", "geglu", "qgelu", "qgeglu", "relu", "reglu", "srelu", "sreglu", "silu", "swiglu", "glu"):
        found[name] = _activation(name)
        if hasattr(_ops, "d" + name):
            found["d" + name] = _activation_gradient("d" + name)
    for name in ("gelu", "silu", "relu", "qgelu", "srelu"):
        found["dbias_d" + name] = _bias_gradient("dbias_d" + name)
    for name in (
        "scaled_softmax",
        "scaled_masked_softmax",
        "scaled_upper_triang_masked_softmax",
        "scaled_aligned_causal_masked_softmax",
    ):
        found[name + "_forward"], found[name + "_backward"] = _softmax(name)
    for name in ("fused_rope_forward", "fused_rope_backward"):
        found[name] = _rope(name)
    for function in (
        clamped_swiglu,
        clamped_dswiglu,
        layernorm_fwd,
        layernorm_bwd,
        rmsnorm_fwd,
        rmsnorm_bwd,
        rmsnorm_bwd_add,
        generic_gemm,
        scaled_masked_softmax_forward,
        dropout_fwd,
        dropout_bwd,
        multi_tensor_scale,
        multi_tensor_l2norm,
        multi_tensor_unscale_l2norm,
        multi_tensor_adam,
        multi_tensor_sgd,
        swap_first_dims,
        fused_multi_row_padding,
        fused_multi_row_unpadding,
    ):
        found[function.__name__] = function
    return found


def register(registry: Any) -> None:
    """Register the functions in the registry of TransformerEngine-FL. Its discovery calls this."""
    core = type(registry).__module__.rpartition(".")[0]
    types = importlib.import_module(core + ".types")
    found = _functions()
    base = getattr(importlib.import_module(core + ".ops"), "FlashAttentionBase", None)
    if base is not None:
        attention_class = _attention_class(base)
        found["get_flash_attention_class"] = functools.partial(lambda of: of, attention_class)
    registry.register_many(
        [
            types.OpImpl(
                op_name=name,
                impl_id="vendor." + VENDOR,
                kind=types.BackendImplKind.VENDOR,
                fn=function,
                vendor=VENDOR,
                priority=PRIORITY,
            )
            for name, function in found.items()
        ]
    )


te_fl_register = register
