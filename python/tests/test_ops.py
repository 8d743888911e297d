"""Ops on arrays of numpy and tensors of torch."""

from __future__ import annotations

import gc
import unittest
from typing import Any

import primus_fl
from primus_fl import ops

from .support import needs_numpy, needs_torch, numpy, torch


def rmsnorm(x: Any, weight: Any, eps: float) -> Any:
    """Compute rmsnorm_fwd with torch in float64."""
    x, weight = x.double(), weight.double()
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


@needs_torch
class Torch(unittest.TestCase):
    def test_views_are_used_as_they_are(self) -> None:
        eps = 2.0**-16  # an f32, as the op reads it
        for dtype, tolerance in (
            (torch.float32, 1e-5),
            (torch.float64, 1e-12),
            (torch.bfloat16, 2e-2),
            (torch.float16, 2e-3),
        ):
            wide = torch.randn(6, 5, 16).to(dtype)
            weight = torch.rand(32).to(dtype)[::2]
            for view in (wide, wide[1:5, :, :], wide[:, ::2], wide.transpose(0, 1), wide[0, 0], wide[..., 3:11]):
                with self.subTest(dtype=dtype, shape=view.shape, strides=view.stride()):
                    w = weight[: view.shape[-1]]
                    y, rsigma = ops.rmsnorm_fwd(view, w, eps=eps)
                    self.assertEqual(y.dtype, dtype)
                    self.assertEqual(y.shape, view.shape)
                    self.assertEqual(rsigma.numel(), view.numel() // view.shape[-1])
                    torch.testing.assert_close(y.double(), rmsnorm(view, w, eps), rtol=tolerance, atol=tolerance)

    def test_results_are_written_where_the_call_says(self) -> None:
        x, weight = torch.randn(4, 8), torch.ones(8)
        whole = torch.full((4, 20), 7.0)
        y = whole[:, 2:18:2]
        rsigma = torch.empty(4)
        got = ops.rmsnorm_fwd(x, weight, output=y, rsigma=rsigma, eps=1e-5)
        self.assertIs(got[0], y)
        torch.testing.assert_close(y.double(), rmsnorm(x, weight, 1e-5), rtol=1e-5, atol=1e-5)
        self.assertEqual(int((whole == 7.0).sum()), 4 * 12)

    def test_gradients_agree_with_autograd(self) -> None:
        x, weight = torch.randn(5, 12, dtype=torch.float64), torch.rand(12, dtype=torch.float64)
        dz = torch.randn(5, 12, dtype=torch.float64)
        saved = primus_fl.Saved()
        _, rsigma = ops.rmsnorm_fwd(x, weight, eps=1e-5, saved=saved)
        dx, dgamma = ops.rmsnorm_bwd(dz, x, rsigma, weight, saved=saved)
        x.requires_grad_()
        weight.requires_grad_()
        rmsnorm(x, weight, 1e-5).backward(dz)
        torch.testing.assert_close(dx, x.grad, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(dgamma, weight.grad, rtol=1e-5, atol=1e-5)

    def test_what_cannot_be_an_operand(self) -> None:
        weight = torch.ones(8)
        leaf = torch.ones(2, 8, requires_grad=True)
        for x, output, want in (
            (torch.ones(2, 8, device="meta"), None, "on meta, want one in host memory"),
            (torch.ones(2, 8).to_sparse(), None, "to_dense"),
            (torch.ones(2, 8, dtype=torch.complex64), None, "torch.complex64"),
            (torch.ones(2, 8), leaf, "leaf that requires grad"),
            (torch.ones(2, 8), "y", "given str"),
        ):
            with self.subTest(want), self.assertRaisesRegex(primus_fl.ArgumentError, want):
                ops.rmsnorm_fwd(x, weight, output=output, eps=1e-5)
        with torch.no_grad():
            ops.rmsnorm_fwd(torch.ones(2, 8), weight, output=leaf, eps=1e-5)
        with self.assertRaisesRegex(primus_fl.ArgumentError, 'argument "output".*overlap|shares memory'):
            x = torch.ones(3, 8)
            ops.rmsnorm_fwd(x[:2], weight, output=x[1:], eps=1e-5)

    def test_bound_calls_keep_their_operands(self) -> None:
        x = torch.randn(4, 8)
        want = rmsnorm(x, torch.ones(8), 1e-5)
        call = primus_fl.default_manager().bind("rmsnorm_fwd", input=x.clone(), weight=torch.ones(8), eps=1e-5)
        gc.collect()
        for _ in range(3):
            call()
        torch.testing.assert_close(call.results[0].double(), want, rtol=1e-5, atol=1e-5)

    def test_subnormals_of_the_host_are_its_own(self) -> None:
        tiny = torch.tensor([1e-40])
        x = torch.full((1, 1), 1e-40)
        self.assertTrue(torch.set_flush_denormal(True))
        try:
            y = ops.residual_add(x, x)
            flushed = float(tiny * 1.0)
        finally:
            torch.set_flush_denormal(False)
        self.assertGreater(float(y), 1e-40)
        self.assertEqual(flushed, 0.0)


@needs_numpy
class Numpy(unittest.TestCase):
    def test_arrays(self) -> None:
        x = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)[::2, ::-1][:, ::-1]
        y = ops.swiglu(x)
        a, b = x[:, :3], x[:, 3:]
        numpy.testing.assert_allclose(y, a / (1 + numpy.exp(-a)) * b, rtol=1e-5)

    def test_arrays_that_cannot_be_operands(self) -> None:
        x = numpy.ones((2, 4), dtype=numpy.float32)
        fixed = x.copy()
        fixed.flags.writeable = False
        fields = numpy.zeros(4, dtype=[("a", "f4"), ("b", "u1")])["a"]
        for given, output, want in (
            (x.astype(">f4"), None, ">f4"),
            (x.astype(numpy.uint32), None, "uint32"),
            (x[:, ::-1], None, "strides"),
            (fields, None, "multiples of its 4 bytes"),
            (x, fixed, "read-only"),
        ):
            with self.subTest(want), self.assertRaisesRegex(primus_fl.ArgumentError, want):
                ops.silu(given, output=output)

    def test_dlpack(self) -> None:
        class Exporter:
            """Has nothing but DLPack."""

            def __init__(self, x: Any) -> None:
                self.x = x

            def __dlpack__(self, stream: Any = None) -> Any:
                return self.x.__dlpack__()

            def __dlpack_device__(self) -> Any:
                return self.x.__dlpack_device__()

        x = numpy.array([[1.0, 2.0], [3.0, 4.0]])
        y = numpy.zeros((2, 2))
        ops.residual_add(Exporter(x), Exporter(x.T), output=y)
        numpy.testing.assert_allclose(y, x + x.T)


class Catalogue(unittest.TestCase):
    def test_every_op_has_a_function(self) -> None:
        for name in primus_fl.default_manager().ops():
            with self.subTest(name):
                self.assertIn("Example", getattr(ops, name).__doc__)
                self.assertTrue(primus_fl.default_manager().impls(name))

    def test_wrong_names(self) -> None:
        manager = primus_fl.default_manager()
        with self.assertRaisesRegex(primus_fl.NotFoundError, "did you mean 'rmsnorm_fwd'"):
            manager.bind("rmsnorm_fw")
        with self.assertRaisesRegex(primus_fl.ArgumentError, 'has no argument "bias", want some of'):
            manager.call("silu", bias=1)


if __name__ == "__main__":
    unittest.main()
