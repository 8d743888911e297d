"""Ops in JAX, with their gradients, beside expressions of JAX."""

from __future__ import annotations

import unittest
from typing import Any, Callable

from .support import calls, module

jax = module("jax")
if jax:
    import jax.numpy as jnp
    import numpy

    import primus_fl.jax as pj


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    random = numpy.random.default_rng(3)
    return [jnp.asarray(random.standard_normal(shape), jnp.float32) for shape in shapes]


def rms_norm(x: Any, weight: Any) -> Any:
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def swiglu(x: Any) -> Any:
    a, b = jnp.split(x, 2, -1)
    return jax.nn.silu(a) * b


def rope(x: Any, freqs: Any) -> Any:
    a, b = jnp.split(x, 2, -1)
    turned, angles = jnp.concatenate([-b, a], -1), freqs[:, 0, 0][None, :, None]
    return x * jnp.cos(angles) + turned * jnp.sin(angles)


def cross_entropy(logits: Any, targets: Any) -> Any:
    taken = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(targets, 0)[:, None], -1)[:, 0]
    return jnp.where(targets == -100, 0, -taken)


@unittest.skipUnless(jax, "needs jax")
class Jax(unittest.TestCase):
    def agree(self, ours: Callable[..., Any], theirs: Callable[..., Any], *operands: Any, diff: int = 9) -> None:
        """Compare results and gradients, plain and under jit."""
        wanted = tuple(i for i, x in enumerate(operands) if jnp.issubdtype(x.dtype, jnp.floating) and i < diff)

        def both(function: Callable[..., Any]) -> Any:
            def value(*args: Any) -> Any:
                y = function(*args)
                return jnp.cos(y).sum(), y

            return jax.grad(value, wanted, has_aux=True)

        want = both(theirs)(*operands)
        for function in (both(ours), jax.jit(both(ours))):
            for a, b in zip(jax.tree.leaves(function(*operands)), jax.tree.leaves(want)):
                self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
                numpy.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)

    def test_functions(self) -> None:
        x, weight, bias = arrays((3, 5, 8), (8,), (8,))
        self.agree(pj.rms_norm, rms_norm, x, weight)
        self.agree(pj.layer_norm, layer_norm, x, weight, bias)
        self.agree(pj.matmul, jnp.matmul, x, *arrays((8, 7)))
        self.agree(pj.swiglu, swiglu, x)
        self.agree(pj.silu, jax.nn.silu, x)
        self.agree(pj.gelu, jax.nn.gelu, x)
        self.agree(lambda x: pj.gelu(x, False), lambda x: jax.nn.gelu(x, False), x)
        q, k, v, freqs = arrays((2, 6, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8), (6, 1, 1, 4))
        freqs = jnp.concatenate([freqs, freqs], -1)
        self.agree(pj.rope, rope, q, freqs, diff=1)
        for causal in (False, True):
            self.agree(
                lambda q, k, v, c=causal: pj.attention(q, k, v, causal=c),
                lambda q, k, v, c=causal: jax.nn.dot_product_attention(q, k, v, is_causal=c),
                *(q, k, v),
            )
        indices = jnp.asarray([[2, 0, 2], [1, 4, 4]], jnp.int32)
        self.agree(pj.embedding, lambda i, w: w[i], indices, *arrays((5, 6)))
        targets = jnp.asarray([0, 3, -100, 6], jnp.int32)
        self.agree(pj.cross_entropy, cross_entropy, *arrays((4, 7)), targets)

    def test_narrow_dtypes_and_vmap(self) -> None:
        x, w = arrays((4, 3, 8), (8, 7))
        for dtype in (jnp.bfloat16, jnp.float16):
            got = pj.matmul(x.astype(dtype), w.astype(dtype))
            self.assertEqual(got.dtype, dtype)
            numpy.testing.assert_allclose(got.astype(jnp.float32), x @ w, rtol=0.05, atol=0.2)
        numpy.testing.assert_allclose(jax.vmap(lambda a: pj.matmul(a, w))(x), x @ w, rtol=1e-5, atol=1e-5)

    def test_wrong_arguments(self) -> None:
        with self.assertRaisesRegex(ValueError, r"given x \(2, 3\) and w \(4, 5\)"):
            pj.matmul(jnp.ones((2, 3)), jnp.ones((4, 5)))
        with self.assertRaisesRegex(Exception, "weight|gamma|want"):
            pj.rms_norm(jnp.ones((2, 3)), jnp.ones(4)).block_until_ready()

    def test_large_arrays(self) -> None:
        """Callbacks with arrays that XLA copies in another thread end, too."""
        x, w = arrays((512, 1024), (1024, 1024))
        step = jax.jit(jax.grad(lambda x, w: pj.rms_norm(pj.matmul(pj.matmul(x, w), w), w[0]).sum(), (0, 1)))
        for _ in range(3):
            jax.block_until_ready(step(x, w))

    def test_calls_are_counted(self) -> None:
        before = calls().get("dswiglu", 0)
        jax.grad(lambda x: pj.swiglu(x).sum())(jnp.ones((2, 4)))
        self.assertEqual(calls()["dswiglu"], before + 1)


if __name__ == "__main__":
    unittest.main()
