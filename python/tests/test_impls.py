"""Implementations that are written in Python."""

from __future__ import annotations

import re
import traceback
import unittest
from typing import Any

import primus_fl

from .support import needs_numpy, needs_torch, numpy, torch


def calls(m: primus_fl.Manager, op: str, impl: str) -> int:
    """Return how many calls of an op an implementation has served."""
    found = re.search(rf'primus_op_calls_total{{impl="{re.escape(impl)}",[^}}]*op="{op}"[^}}]*}} (\d+)', m.metrics())
    return int(found[1]) if found else 0


@needs_torch
class Torch(unittest.TestCase):
    def test_takes_part_in_dispatch(self) -> None:
        seen: list[Any] = []

        def silu(input: Any, output: Any) -> None:
            seen.append((input.shape, input.stride(), input.dtype))
            torch.mul(input, torch.sigmoid(input), out=output)

        with primus_fl.Manager() as m:
            m.register("silu", silu, impl="vendor.mine", vendor="mine")
            self.assertEqual(m.selected("silu"), "default.flagos")
            m.policy = {"prefer": "vendor"}
            self.assertEqual(m.selected("silu"), "vendor.mine")
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                x = torch.randn(4, 6).to(dtype).t()
                y = m.call("silu", input=x)
                torch.testing.assert_close(y, x * torch.sigmoid(x))
                self.assertEqual(seen.pop(), (x.shape, x.stride(), dtype))
            self.assertEqual(calls(m, "silu", "vendor.mine"), 3)
            m.policy = {"prefer": "vendor", "deny_vendors": ["mine"]}
            self.assertEqual(m.selected("silu"), "default.flagos")

    def test_results_may_be_returned(self) -> None:
        def rmsnorm(input: Any, weight: Any, eps: float, **_: Any) -> Any:
            rsigma = torch.rsqrt((input * input).mean(-1) + eps)
            return input * rsigma[:, None] * weight, rsigma

        with primus_fl.Manager({"per_op": {"rmsnorm_fwd": ["vendor:mine"], "rmsnorm_bwd": ["vendor:mine"]}}) as m:
            m.register("rmsnorm_fwd", rmsnorm, impl="vendor.mine", vendor="mine")
            m.register("rmsnorm_bwd", lambda **_: None, impl="vendor.mine", vendor="mine")
            x, weight = torch.randn(3, 4), torch.rand(4)
            y, rsigma = m.call("rmsnorm_fwd", input=x, weight=weight, eps=1e-5)
            torch.testing.assert_close(y, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight)
            self.assertEqual(rsigma.shape, (3,))

    def test_declines_and_failures_fall_back(self) -> None:
        def declines(**_: Any) -> None:
            raise primus_fl.Unsupported("not on Sundays")

        def fails(**_: Any) -> None:
            raise ValueError("out of luck: ü")

        x = torch.randn(2, 3)
        for function, metric in ((declines, "declines"), (fails, "errors")):
            with self.subTest(metric), primus_fl.Manager({"prefer": "vendor"}) as m:
                m.register("silu", function, impl="vendor.mine", vendor="mine")
                torch.testing.assert_close(m.call("silu", input=x), x * torch.sigmoid(x))
                self.assertRegex(m.metrics(), rf'primus_op_{metric}_total{{impl="vendor.mine"[^}}]*op="silu"[^}}]*}} 1')
                self.assertEqual(calls(m, "silu", "default.flagos"), 1)

    def test_an_exception_reaches_the_caller_with_its_traceback(self) -> None:
        def inner() -> None:
            raise ValueError("out of luck: ü")

        with primus_fl.Manager({"prefer": "vendor", "strict": True}) as m:
            m.register("silu", lambda **_: inner(), impl="vendor.mine", vendor="mine")
            with self.assertRaisesRegex(primus_fl.Error, "vendor.mine.*ValueError: out of luck: ü") as caught:
                m.call("silu", input=torch.ones(2))
            cause = caught.exception.__cause__
            self.assertIsInstance(cause, ValueError)
            assert cause
            self.assertIn("inner", [f.name for f in traceback.extract_tb(cause.__traceback__)])
            m.policy = {"prefer": "vendor"}
            with self.assertRaises(primus_fl.ArgumentError) as other:
                m.call("rmsnorm_fwd", input=torch.ones(2, 2), weight=torch.ones(2), eps=0)
            self.assertIsNone(other.exception.__cause__, "an older exception is not that of this call")

    def test_interrupts_are_not_failures(self) -> None:
        def interrupted(**_: Any) -> None:
            raise KeyboardInterrupt

        with primus_fl.Manager({"prefer": "vendor", "strict": True}) as m:
            m.register("silu", interrupted, impl="vendor.mine", vendor="mine")
            with self.assertRaises(KeyboardInterrupt):
                m.call("silu", input=torch.ones(2))

    def test_ops_within_ops(self) -> None:
        with primus_fl.Manager({"per_op": {"swiglu": ["vendor", "flagos"]}}) as m:

            def swiglu(input: Any, output: Any) -> Any:
                half = input.shape[-1] // 2
                return m.call("silu", input=input[..., :half]) * input[..., half:]

            m.register("swiglu", swiglu, impl="vendor.mine", vendor="mine")
            x = torch.randn(3, 8)
            y = m.call("swiglu", input=x)
            torch.testing.assert_close(y, torch.nn.functional.silu(x[:, :4]) * x[:, 4:], rtol=1e-5, atol=1e-5)
            self.assertEqual((calls(m, "swiglu", "vendor.mine"), calls(m, "silu", "default.flagos")), (1, 1))

    def test_verification_finds_a_wrong_one(self) -> None:
        policy = {"prefer": "vendor", "verify": {"mode": "always"}}
        with primus_fl.Manager(policy) as m:
            m.register("silu", lambda input, output: input * 2, impl="vendor.mine", vendor="mine")
            x = torch.randn(16, 16)
            for _ in range(8):
                m.call("silu", input=x)
            violations = r'primus_op_verify_violations_total{impl="vendor.mine"[^}]*op="silu"[^}]*} [1-9]'
            self.assertRegex(m.metrics(), violations)

    def test_lists(self) -> None:
        def scale(tensor_lists: Any, scale: float, **_: Any) -> None:
            for x, y in zip(*tensor_lists):
                torch.mul(x, scale, out=y)

        with primus_fl.Manager({"prefer": "vendor"}) as m:
            m.register("multi_tensor_scale", scale, impl="vendor.mine", vendor="mine")
            xs, ys = [torch.randn(3), torch.randn(2, 2)], [torch.zeros(3), torch.zeros(2, 2)]
            m.call("multi_tensor_scale", tensor_lists=[xs, ys], scale=3.0, noop_flag=torch.zeros(1, dtype=torch.int32))
            self.assertEqual(calls(m, "multi_tensor_scale", "vendor.mine"), 1)
            for x, y in zip(xs, ys):
                torch.testing.assert_close(y, 3 * x)


@needs_numpy
class Registration(unittest.TestCase):
    def test_numpy(self) -> None:
        with primus_fl.Manager({"prefer": "reference"}) as m:
            m.register(
                "residual_add",
                lambda a, b, output: a + b,
                impl="reference.numpy",
                kind="reference",
                priority=90,
                framework="numpy",
            )
            self.assertEqual(m.selected("residual_add"), "reference.numpy")
            x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
            numpy.testing.assert_array_equal(m.call("residual_add", a=x, b=x), 2 * x)
            self.assertEqual(calls(m, "residual_add", "reference.numpy"), 1)

    def test_wrong_registrations(self) -> None:
        def function(**_: Any) -> None:
            pass

        with primus_fl.Manager() as m:
            for keywords, want in (
                ({"impl": "vendor.mine", "kind": "fastest"}, "given kind 'fastest', want one of flagos"),
                ({"impl": "vendor.mine", "framework": "jax"}, "given framework 'jax'"),
                ({"impl": "vendor.mine"}, "vendor"),
                ({"impl": "", "vendor": "mine"}, "id"),
                ({"impl": "default.flagos", "kind": "flagos"}, "registered already"),
            ):
                with self.subTest(want), self.assertRaisesRegex(primus_fl.ArgumentError, want):
                    m.register("silu", function, **keywords)  # type: ignore[arg-type]
            with self.assertRaises(primus_fl.NotFoundError):
                m.register("sillu", function, impl="vendor.mine", vendor="mine")


if __name__ == "__main__":
    unittest.main()
