"""Functions of primus_fl.torch as custom ops, and in torch.compile."""

from __future__ import annotations

import unittest
from typing import Any, Callable

from .support import calls, needs_transformers, torch
from .test_patch import EVERY, LLAMA, called, pretrained, small, step

custom = torch is not None and hasattr(getattr(torch, "library", None), "opcheck")
if torch:
    import primus_fl.torch as pt

    F = torch.nn.functional


def operands() -> dict[str, tuple[Any, ...]]:
    """Return operands of each custom op."""
    torch.manual_seed(11)

    def f32(*shape: int) -> Any:
        return torch.randn(*shape, requires_grad=True)

    q, kv = f32(2, 5, 4, 8), f32(2, 5, 2, 8)
    index = torch.tensor([[1, 0], [4, 1], [1, 2], [0, 4]]).int()
    return {
        "rms_norm": (f32(2, 3, 8), f32(8), 1e-5, False),
        "layer_norm": (f32(2, 3, 8), f32(8), f32(8), 1e-5),
        "linear": (f32(2, 3, 8), f32(5, 8), f32(5)),
        "swiglu": (f32(2, 3, 8),),
        "gated_linear": (f32(2, 3, 8), f32(5, 8), f32(5, 8)),
        "silu": (f32(3, 8),),
        "gelu": (f32(3, 8),),
        "gelu_erf": (f32(3, 8),),
        "rope": (f32(2, 5, 3, 8), torch.randn(5, 1, 1, 8), "bshd", False),
        "attention": (q, kv, f32(2, 5, 2, 8), "causal", None, "bshd", None),
        "cross_entropy": (f32(4, 9), torch.tensor([0, 3, -100, 8]), -100),
        "linear_cross_entropy": (f32(4, 6), f32(9, 6), torch.tensor([0, 3, -100, 8]), -100),
        "linear_cross_entropy_at_once": (f32(4, 6), f32(9, 6), torch.tensor([0, 3, -100, 8]), -100, True, False),
        "embedding": (torch.tensor([2, 0, 2]), f32(4, 6), None),
        "experts": (f32(4, 6), f32(4, 2), f32(5, 8, 6), f32(5, 6, 4), index),
    }


@unittest.skipUnless(custom, "needs a torch with torch.library.opcheck")
class Custom(unittest.TestCase):
    def test_opcheck(self) -> None:
        cases = operands()
        defined = {name for name in dir(torch.ops.primus_fl) if name + "_backward" in dir(torch.ops.primus_fl)}
        self.assertEqual(defined, set(cases))
        cases["linear without bias"] = (*cases["linear"][:2], None)
        cases["linear of a view"] = (
            *(t.detach().t().contiguous().t().requires_grad_() for t in cases["linear"][1:2] * 2),
            None,
        )
        cases["linear_cross_entropy_at_once frozen"] = (
            *(t.detach() if i == 1 else t for i, t in enumerate(cases["linear_cross_entropy_at_once"][:4])),
            False,
            True,
        )
        cases["attention with window"] = (*cases["attention"][:3], "causal", 0.5, "bshd", [2, 0])
        for name, args in cases.items():
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.primus_fl, name.split()[0]).default, args)

    def test_compiled(self) -> None:
        """Compile without breaks. The ops are called, forwards and backwards, and results are as before."""
        functions: dict[str, Callable[..., Any]] = {
            "rms_norm": pt.rms_norm,
            "layer_norm": pt.layer_norm,
            "linear": pt.linear,
            "swiglu": pt.swiglu,
            "gated_linear": pt.gated_linear,
            "silu": pt.silu,
            "gelu": pt.gelu,
            "gelu_erf": lambda x: pt.gelu(x, "none"),
            "rope": pt.rope,
            "attention": lambda q, k, v: pt.attention(q, k, v, causal=True),
            "cross_entropy": pt.cross_entropy,
            "linear_cross_entropy": lambda *a: pt.linear_cross_entropy(*a, reduction="none"),
            "linear_cross_entropy_at_once": pt.linear_cross_entropy,
            "embedding": pt.embedding,
            "experts": lambda x, weights, gate_up, down, index: pt.experts(x, index, weights, gate_up, down),
        }
        for name, args in operands().items():
            with self.subTest(name):
                args = tuple(a for a in args if torch.is_tensor(a))
                want = run(functions[name], args)
                compiled = torch.compile(functions[name], fullgraph=True, backend="aot_eager")
                before = calls()
                got = run(compiled, args)
                self.assertGreater(sum(calls().values()), sum(before.values()))
                for a, b in zip(got, want):
                    torch.testing.assert_close(a, b)

    def test_installed(self) -> None:
        model, x = small(), torch.randn(4, 8)
        want = step(model, x)
        pt.install()
        self.addCleanup(pt.uninstall)
        got, ops = called(lambda: step(torch.compile(model, fullgraph=True, backend="aot_eager"), x))
        self.assertLessEqual({"generic_gemm", "silu", "layernorm_fwd", "rmsnorm_bwd"}, ops)
        for a, b in zip(got, want):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    @needs_transformers
    def test_patched_model(self) -> None:
        """Compile the whole model without breaks."""
        model, tokens = pretrained("LlamaForCausalLM"), torch.randint(0, 61, (2, 9))
        want = step(model, input_ids=tokens, labels=tokens)
        pt.patch(model)
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        got, ops = called(lambda: step(compiled, input_ids=tokens, labels=tokens))
        self.assertLessEqual(LLAMA | EVERY, ops)
        for a, b in zip(got, want):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    @needs_transformers
    def test_exported_model(self) -> None:
        """Export a model, and run the program with ops. Its attention gets a mask, so it stays."""
        for name in ("LlamaForCausalLM", "MixtralForCausalLM"):
            with self.subTest(name), torch.no_grad():
                model, tokens = pretrained(name, use_cache=False).eval(), torch.randint(0, 61, (2, 9))
                want = model(tokens).logits
                pt.patch(model)
                program = torch.export.export(model, (tokens,))
                got, ops = called(lambda p=program, t=tokens: p.module()(t).logits)
                self.assertLessEqual({"generic_gemm", "rmsnorm_fwd", "swiglu"}, ops)
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def run(function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """Return a result and the gradients of operands."""
    leaves = [a.detach().clone().requires_grad_(a.requires_grad) for a in args]
    y = function(*leaves)
    y.cos().sum().backward()
    return [y.detach(), *(a.grad for a in leaves if a.requires_grad)]


if __name__ == "__main__":
    unittest.main()
