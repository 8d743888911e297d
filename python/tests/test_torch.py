"""Functions and modules of primus_fl.torch beside those of torch."""

from __future__ import annotations

import functools
import unittest
from typing import Any, Callable

from .support import calls, needs_torch, torch

if torch:
    import torch.nn.functional as F

    import primus_fl.torch as pt


def rms_norm(x: Any, weight: Any) -> Any:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


def attention(q: Any, k: Any, v: Any, causal: bool, window: int = -1) -> Any:
    """Compute attention of heads in the second axis from the end."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None]
    hidden = (j > i) if causal else torch.zeros(q.shape[2], k.shape[2], dtype=torch.bool)
    if window >= 0:
        hidden = hidden | (j < i - window)
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2)


def rope(x: Any, freqs: Any) -> Any:
    cos, sin = freqs[:, 0, 0].cos()[None, :, None], freqs[:, 0, 0].sin()[None, :, None]
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def angles(length: int, dim: int) -> Any:
    return torch.outer(torch.arange(float(length)), 1e4 ** (-torch.arange(0, dim, 2) / dim)).repeat(1, 2)[:, None, None]


@needs_torch
class Installed(unittest.TestCase):
    """Modules of torch.nn while install is in force."""

    def setUp(self) -> None:
        pt.install()
        self.addCleanup(pt.uninstall)

    def agree(
        self, function: Callable[..., Any], *operands: Any, ops: tuple[str, ...], tolerance: float = 2e-5
    ) -> None:
        """Compare a function with and without install, and see that it called ops, or none."""
        earlier = calls()
        a, b = ([x.clone().requires_grad_(x.is_floating_point()) for x in operands] for _ in range(2))
        got = function(*a)
        got.float().square().sum().backward()
        called = {name for name, n in calls().items() if n > earlier.get(name, 0)}
        self.assertEqual(called, set(ops))
        pt.uninstall()
        want = function(*b)
        want.float().square().sum().backward()
        pt.install()
        self.assertIs(got.dtype, want.dtype)
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
        for x, y in zip(a, b):
            if x.requires_grad:
                torch.testing.assert_close(x.grad, y.grad, rtol=tolerance, atol=tolerance)

    def test_served(self) -> None:
        torch.manual_seed(5)
        x, w, bias = torch.randn(2, 3, 8), torch.randn(8, 8), torch.randn(8)
        gemm, norm = ("generic_gemm",), ("layernorm_fwd", "layernorm_bwd")
        self.agree(F.linear, x, w, bias, ops=gemm)
        self.agree(F.linear, x[0, 0], w, bias, ops=gemm)
        rows = ("embedding_fwd", "embedding_bwd")
        self.agree(lambda w: F.embedding(torch.tensor([3, 0, 3]), w, padding_idx=-8), w, ops=rows)
        self.agree(lambda x, w: F.linear(x.transpose(0, 1), w), x, w, ops=gemm)
        self.agree(lambda x, w, b: F.layer_norm(x, (8,), w, b), x, bias, bias, ops=norm)
        self.agree(F.silu, x, ops=("silu", "dsilu"))
        self.agree(lambda x: F.gelu(x, approximate="tanh"), x, ops=("gelu", "dgelu"))
        self.agree(F.gelu, x, ops=("gelu_erf", "dgelu_erf"))
        loss = ("cross_entropy_fwd", "cross_entropy_bwd")
        targets = torch.tensor([1, -100, 7])
        for reduction in ("mean", "sum", "none"):
            self.agree(lambda x, r=reduction: F.cross_entropy(x[0], targets, reduction=r), x, ops=loss)
        self.agree(lambda x: F.cross_entropy(x[0], targets), x.bfloat16(), ops=loss, tolerance=2e-2)
        if hasattr(F, "rms_norm"):
            norm = ("rmsnorm_fwd", "rmsnorm_bwd")
            self.agree(lambda x, w: F.rms_norm(x, (8,), w), x, bias, ops=norm)
            half = (1e-3 * x.bfloat16(), bias.bfloat16())  # of the size of eps
            self.agree(lambda x, w: F.rms_norm(x, (8,), w), *half, ops=norm, tolerance=5e-2)
        if hasattr(F, "scaled_dot_product_attention"):
            q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
            for causal in (False, True):
                self.agree(
                    lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c),
                    q, k, k, ops=("fused_attn_fwd", "fused_attn_bwd"),
                )  # fmt: skip

    def test_left_to_torch(self) -> None:
        torch.manual_seed(6)
        x, w = torch.randn(4, 8), torch.randn(8)
        self.agree(lambda x: F.layer_norm(x, (4, 8)), x, ops=())
        self.agree(lambda x: F.layer_norm(x, (8,)), x, ops=())
        self.agree(lambda x: F.silu(x * 1, inplace=True), x, ops=())
        self.agree(lambda x: F.embedding(torch.tensor([1, 1]), x, scale_grad_by_freq=True), x, ops=())
        self.agree(lambda x: F.cross_entropy(x, x.softmax(-1)), x, ops=())
        self.agree(lambda x: F.cross_entropy(x, torch.tensor([1, 2, 3, 0]), weight=w.abs()), x, ops=())
        self.agree(lambda x: F.cross_entropy(x, torch.tensor([1, 2, 3, 0]), label_smoothing=0.1), x, ops=())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.agree(lambda x: F.linear(x, torch.ones(3, 8)), x, ops=())

        class Own(torch.Tensor):
            pass

        before = calls()
        F.silu(x.as_subclass(Own))
        F.linear(torch.empty(0, 8), torch.empty(3, 8))
        with self.assertRaises(RuntimeError):
            F.linear(x, torch.ones(3, 7))
        self.assertEqual(calls(), before)

    def test_second_derivatives_are_errors(self) -> None:
        x = torch.randn(4, 8, requires_grad=True)
        (g,) = torch.autograd.grad(F.silu(x).sum(), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable|does not require grad"):
            g.sum().backward()

    def test_undone(self) -> None:
        pt.install()
        pt.uninstall()
        self.assertFalse(hasattr(F.linear, "func"))


@needs_torch
class Functions(unittest.TestCase):
    def agree(
        self, ours: Callable[..., Any], theirs: Callable[..., Any], *operands: Any, tolerance: float = 2e-5
    ) -> None:
        """Compare results and gradients, also where the gradient of the result is an expanded number."""
        for expanded in (False, True):
            a, b = ([x.clone().requires_grad_() for x in operands] for _ in range(2))
            got, want = ours(*a), theirs(*b)
            torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
            if expanded:
                got.sum().backward()
                want.sum().backward()
            else:
                g = torch.randn_like(want)
                got.backward(g)
                want.backward(g)
            for x, y in zip(a, b):
                torch.testing.assert_close(x.grad, y.grad, rtol=tolerance, atol=tolerance)

    def test_norms(self) -> None:
        torch.manual_seed(1)
        for shape in ((3, 8), (2, 5, 32), (1, 1, 1, 7)):
            x, weight, bias = torch.randn(shape), torch.rand(shape[-1]), torch.rand(shape[-1])
            self.agree(lambda x, w: pt.rms_norm(x, w, 1e-5), rms_norm, x, weight)
            self.agree(pt.layer_norm, lambda x, w, b: F.layer_norm(x, w.shape, w, b), x, weight, bias)
            self.agree(pt.layer_norm, lambda x, w: F.layer_norm(x, w.shape, w), x, weight)

    def test_linear(self) -> None:
        torch.manual_seed(2)
        for shape in ((4, 8), (2, 3, 8), (8,), (0, 8)):
            x, weight, bias = torch.randn(shape), torch.randn(5, 8), torch.randn(5)
            if len(shape) == 1:
                x = x[None]
            self.agree(pt.linear, F.linear, x, weight, bias)
            self.agree(pt.linear, F.linear, x, weight)

    def test_swiglu_and_rope(self) -> None:
        torch.manual_seed(3)
        self.agree(pt.swiglu, lambda x: F.silu(x[..., :6]) * x[..., 6:], torch.randn(3, 4, 12))
        freqs = angles(9, 8)
        self.agree(lambda x: pt.rope(x, freqs), lambda x: rope(x, freqs), torch.randn(2, 9, 3, 8))

    def test_attention(self) -> None:
        torch.manual_seed(4)
        for heads, groups, causal, window in ((4, 4, False, -1), (4, 2, True, -1), (6, 1, True, 3)):
            q, k, v = torch.randn(2, 9, heads, 8), torch.randn(2, 9, groups, 8), torch.randn(2, 9, groups, 8)
            arguments = {"window_size": (window, -1)} if window >= 0 else {}
            self.agree(
                lambda q, k, v, c=causal, a=arguments: pt.attention(q, k, v, causal=c, **a),
                lambda q, k, v, c=causal, w=window: attention(q, k, v, c, w),
                q,
                k,
                v,
            )

    def test_cross_entropy(self) -> None:
        torch.manual_seed(5)
        logits, targets = torch.randn(12, 50), torch.randint(0, 50, (12,))
        targets[3] = -100
        for reduction in ("mean", "sum", "none"):
            self.agree(
                lambda x, r=reduction: pt.cross_entropy(x, targets, reduction=r),
                lambda x, r=reduction: F.cross_entropy(x, targets, reduction=r),
                logits,
            )
        with self.assertRaisesRegex(ValueError, "given reduction 'most'"):
            pt.cross_entropy(logits, targets, reduction="most")

    def test_linear_cross_entropy(self) -> None:
        """Compare with the loss of logits, and see which ops are called."""
        torch.manual_seed(5)
        weight = torch.randn(50, 8)
        for shape in ((12,), (3, 4)):
            x, targets = torch.randn(*shape, 8), torch.randint(0, 50, shape)
            targets[-1] = -100
            for reduction in ("mean", "sum", "none"):
                self.agree(
                    lambda x, w, t=targets, r=reduction: pt.linear_cross_entropy(x, w, t, reduction=r).flatten(),
                    lambda x, w, t=targets, r=reduction: F.cross_entropy(
                        F.linear(x, w).view(-1, 50), t.flatten(), reduction=r
                    ).flatten(),
                    x,
                    weight,
                )
        x, targets = torch.randn(6, 8, requires_grad=True), torch.randint(0, 50, (6,))
        forward, backward = ({f"linear_cross_entropy_{way}"} for way in ("fwd", "bwd"))
        for dtype, reduction, ops in (
            (torch.float32, "mean", forward),
            (torch.float32, "none", forward | backward),
            (torch.float16, "mean", forward | backward),
        ):
            earlier = calls()
            pt.linear_cross_entropy(x.to(dtype), weight.to(dtype), targets, reduction=reduction).sum().backward()
            self.assertEqual({name for name, n in calls().items() if n > earlier.get(name, 0)}, ops)
        with torch.no_grad():
            pt.linear_cross_entropy(x, weight, targets)
        loss = pt.linear_cross_entropy(x, weight, targets)
        (once,) = torch.autograd.grad(loss, x, retain_graph=True)
        (twice,) = torch.autograd.grad(2 * loss, x)
        torch.testing.assert_close(2 * once, twice)
        with self.assertRaisesRegex(ValueError, "given reduction 'most'"):
            pt.linear_cross_entropy(x, weight, targets, reduction="most")
        with self.assertRaisesRegex(ValueError, "targets"):
            pt.linear_cross_entropy(x, weight, targets + 50)

    def test_embedding(self) -> None:
        torch.manual_seed(5)
        for indices in (
            torch.tensor([2, 0, 2]),
            torch.randint(0, 9, (3, 4)).t(),
            torch.tensor([[1]], dtype=torch.int32),
        ):
            for padding in (None, 2):
                self.agree(
                    lambda w, i=indices, p=padding: pt.embedding(i, w, p),
                    lambda w, i=indices, p=padding: F.embedding(i, w, p),
                    torch.randn(9, 5),
                )

    def test_experts(self) -> None:
        torch.manual_seed(8)

        def plain(index: Any, x: Any, weights: Any, gate_up: Any, down: Any) -> Any:
            each = []
            for i in range(len(gate_up)):
                gate, up = F.linear(x, gate_up[i]).chunk(2, -1)
                share = (weights * (index == i)).sum(-1, keepdim=True)
                each.append(share * F.linear(F.silu(gate) * up, down[i]))
            return sum(each)

        for rows, experts, top in ((7, 4, 2), (3, 9, 1), (1, 2, 2)):  # of 9 experts, at least 6 have no row
            index = torch.stack([torch.randperm(experts)[:top] for _ in range(rows)])
            self.agree(
                lambda x, *others, i=index: pt.experts(x, i, *others),
                functools.partial(plain, index),
                torch.randn(rows, 6),
                torch.rand(rows, top),
                torch.randn(experts, 10, 6),
                torch.randn(experts, 6, 5),
            )
        with self.assertRaisesRegex(IndexError, "given the expert 2, want one below 2"):
            pt.experts(
                torch.randn(1, 6), torch.tensor([[2]]), torch.ones(1, 1), torch.randn(2, 10, 6), torch.randn(2, 6, 5)
            )

    def test_gradcheck(self) -> None:
        """Compare gradients with differences. Statistics in f32 bound what a difference can show."""
        torch.manual_seed(6)

        def f64(*shape: int) -> Any:
            return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

        exact = (
            (pt.linear, (f64(3, 4), f64(5, 4), f64(5))),
            (pt.swiglu, (f64(3, 8),)),
            (pt.gated_linear, (f64(2, 3, 4), f64(5, 4), f64(5, 4))),
            (lambda w: pt.embedding(torch.tensor([[1, 0], [1, 4]]), w), (f64(5, 3),)),
        )
        for function, operands in exact:
            self.assertTrue(torch.autograd.gradcheck(function, operands))
        rounded = (
            (lambda x, w: pt.rms_norm(x, w, 1e-5), (f64(3, 4), f64(4))),
            (lambda x, w, b: pt.layer_norm(x, w, b), (f64(3, 4), f64(4), f64(4))),
            (lambda x, w: pt.linear_cross_entropy(x, w, torch.tensor([2, 0, 4])), (f64(3, 4), f64(5, 4))),
            (
                lambda x, w: pt.linear_cross_entropy(x, w, torch.tensor([2, 0, 4]), reduction="none"),
                (f64(3, 4), f64(5, 4)),
            ),
            (lambda q, k, v: pt.attention(q, k, v, causal=True), (f64(1, 4, 2, 3), f64(1, 4, 1, 3), f64(1, 4, 1, 3))),
        )
        for function, operands in rounded:
            self.assertTrue(torch.autograd.gradcheck(function, operands, eps=1e-3, atol=1e-3, rtol=1e-3))

    def test_modules_have_the_state_of_those_of_torch(self) -> None:
        torch.manual_seed(7)
        for ours, theirs, x in (
            (pt.Linear(6, 5), torch.nn.Linear(6, 5), torch.randn(4, 6)),
            (pt.LayerNorm(6), torch.nn.LayerNorm(6), torch.randn(4, 6)),
            (pt.Embedding(6, 5), torch.nn.Embedding(6, 5), torch.tensor([3, 5])),
            (pt.Embedding(6, 5, max_norm=1.0), torch.nn.Embedding(6, 5, max_norm=1.0), torch.tensor([3, 5])),
        ):
            ours.load_state_dict(theirs.state_dict())
            torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)


@needs_torch
class Training(unittest.TestCase):
    def test_adamw(self) -> None:
        torch.manual_seed(8)
        a = [torch.nn.Parameter(torch.randn(n, 3)) for n in (1, 4, 7)]
        b = [torch.nn.Parameter(p.detach().clone()) for p in a]
        ours, theirs = pt.AdamW(a, lr=1e-2), torch.optim.AdamW(b, lr=1e-2)
        for step in range(6):
            for p, q in zip(a, b):
                p.grad = torch.randn_like(p) if step != 2 or len(p) > 1 else None
                q.grad = None if p.grad is None else p.grad.clone()
            if step == 2:
                continue  # torch counts steps by parameter, and here they are those of the group
            ours.step()
            theirs.step()
        for p, q in zip(a, b):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)

    def test_losses_are_those_of_torch(self) -> None:
        """Train a small model of the shape of Llama twice."""

        def model(linear: Any, norm: Any, attend: Any, rotate: Any, gate: Any, loss: Any) -> Callable[[Any, Any], Any]:
            def run(p: dict[str, Any], tokens: Any) -> Any:
                x = F.embedding(tokens[:, :-1], p["embed"])
                b, s, h = x.shape
                freqs = angles(s, h // 2)
                y = norm(x, p["n1"])
                q, k, v = linear(y, p["qkv"]).view(b, s, 3, 2, h // 2).unbind(2)
                x = x + linear(attend(rotate(q, freqs), rotate(k, freqs), v).reshape(b, s, h), p["o"])
                x = x + linear(gate(linear(norm(x, p["n2"]), p["up"])), p["down"])
                return loss(linear(norm(x, p["n3"]), p["head"]).view(-1, 61), tokens[:, 1:].reshape(-1))

            return run

        h = 32
        shapes = {
            "embed": (61, h),
            "qkv": (3 * h, h),
            "o": (h, h),
            "up": (4 * h, h),
            "down": (h, 2 * h),
            "head": (61, h),
        }
        ours = model(
            pt.linear,
            lambda x, w: pt.rms_norm(x, w, 1e-5),
            lambda q, k, v: pt.attention(q, k, v, causal=True),
            pt.rope,
            pt.swiglu,
            pt.cross_entropy,
        )
        theirs = model(
            F.linear,
            rms_norm,
            lambda q, k, v: attention(q, k, v, True),
            rope,
            lambda x: F.silu(x[..., : 2 * h]) * x[..., 2 * h :],
            F.cross_entropy,
        )
        curves = []
        for run, optimizer in ((ours, pt.AdamW), (theirs, torch.optim.AdamW)):
            torch.manual_seed(9)
            p = {name: torch.nn.Parameter(torch.randn(shape) * 0.1) for name, shape in shapes.items()}
            p.update({name: torch.nn.Parameter(torch.ones(h)) for name in ("n1", "n2", "n3")})
            steps = optimizer(list(p.values()), lr=1e-3)
            losses = []
            for _ in range(12):
                loss = run(p, torch.randint(0, 61, (4, 17)))
                for parameter in p.values():
                    parameter.grad = None
                loss.backward()
                steps.step()
                losses.append(float(loss.detach()))
            curves.append(losses)
        torch.testing.assert_close(torch.tensor(curves[0]), torch.tensor(curves[1]), rtol=1e-5, atol=1e-5)
        self.assertNotEqual(curves[0][0], curves[0][-1])


if __name__ == "__main__":
    unittest.main()
