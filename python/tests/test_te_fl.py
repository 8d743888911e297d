"""The vendor of TransformerEngine-FL, in a registry of its own and in a checkout of theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
import unittest
from enum import Enum
from typing import Any, NamedTuple, Optional

from .support import needs_torch, python, torch

CHECKOUT = os.environ.get("TE_FL_CHECKOUT", "")


class Kind(str, Enum):
    """BackendImplKind of TransformerEngine-FL."""

    VENDOR = "vendor"


class OpImpl(NamedTuple):
    """OpImpl of TransformerEngine-FL."""

    op_name: str
    impl_id: str
    kind: Kind
    fn: Any
    vendor: Optional[str]
    priority: int


@needs_torch
class Functions(unittest.TestCase):
    impls: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        from primus_fl import te_fl

        core = types.ModuleType("te_fl_stand_in")
        core.__path__ = []
        names = types.ModuleType("te_fl_stand_in.types")
        names.OpImpl, names.BackendImplKind = OpImpl, Kind  # type: ignore[attr-defined]
        base = types.ModuleType("te_fl_stand_in.ops")
        base.FlashAttentionBase = torch.nn.Module  # type: ignore[attr-defined]
        sys.modules.update({"te_fl_stand_in": core, "te_fl_stand_in.types": names, "te_fl_stand_in.ops": base})
        registered: list[OpImpl] = []
        registry = type("Registry", (), {"register_many": lambda _, impls: registered.extend(impls)})
        registry.__module__ = "te_fl_stand_in.registry"
        te_fl.register(registry())
        cls.impls = {i.op_name: i.fn for i in registered}
        assert {(i.impl_id, i.kind, i.vendor) for i in registered} == {("vendor.primus", Kind.VENDOR, "primus")}

    def test_declines_before_it_writes(self) -> None:
        x, weight, out = torch.ones(2, 8), torch.ones(8), torch.full((2, 8), 7.0)
        for call in (
            lambda f: f["gelu"](x, object()),
            lambda f: f["gelu"](torch.ones(2, 8, device="meta"), None),
            lambda f: f["gelu"]([1.0], None),
            lambda f: f["rmsnorm_fwd"](x, weight, 1e-5, out, object(), None, 0, False),
            lambda f: f["rmsnorm_fwd"](x, weight, 1e-5, None, None, 7, 0, False),
            lambda f: f["dropout_bwd"](x, torch.ones(16, dtype=torch.uint8), 0.1),
        ):
            with self.assertRaises(NotImplementedError):
                call(self.impls)
        self.assertTrue(bool((out == 7.0).all()))

    def test_results_have_the_dtype_that_is_asked_for(self) -> None:
        x, weight = torch.randn(2, 8), torch.ones(8)
        by_name = Enum("DType", {"kBFloat16": 6, "kFloat32": 4})  # type: ignore[misc]
        for otype, want in ((6, torch.bfloat16), (torch.float16, torch.float16), (None, torch.float32)):
            self.assertEqual(self.impls["rmsnorm_fwd"](x, weight, 1e-5, None, None, otype, 0, False)[0].dtype, want)
        y = self.impls["rmsnorm_fwd"](x, weight, 1e-5, None, None, by_name.kBFloat16, 0, False)[0]  # type: ignore[attr-defined]
        self.assertEqual(y.dtype, torch.bfloat16)

    def test_products_with_gradients(self) -> None:
        x, weight, bias = (torch.randn(s, requires_grad=True) for s in ((5, 8), (6, 8), (6,)))
        y = torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias), approximate="tanh")
        dy = torch.randn_like(y)
        y.backward(dy)
        gemm = self.impls["generic_gemm"]
        rest = (None, 0, False, False)
        with torch.no_grad():
            got, none, pre, _ = gemm(weight, True, x, False, None, None, None, bias, None, True, None, False, *rest)
            self.assertIsNone(none)
            torch.testing.assert_close(got, y, rtol=1e-5, atol=1e-5)
            dz = self.impls["dgelu"](dy, pre, None)
            dw, db, _, _ = gemm(x, False, dz, True, None, None, None, bias, None, False, None, True, *rest)
            dx, _, _, _ = gemm(weight, False, dz, False, None, None, None, None, None, False, None, True, *rest)
        for ours, theirs in ((dw, weight.grad), (db, bias.grad), (dx, x.grad)):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)

    def test_rows_and_rope(self) -> None:
        named = Enum("NVTE_QKV_Format", {"NVTE_SBHD": 1, "NVTE_BSHD": 0, "NVTE_BHSD": 2})  # type: ignore[misc]
        x, freqs = torch.randn(5, 2, 3, 8), torch.rand(5, 1, 1, 8)
        arguments = (freqs, None, named.NVTE_SBHD, False, None, 1, 0)  # type: ignore[attr-defined]
        y = self.impls["fused_rope_forward"](x, *arguments)
        half = torch.cat((-x[..., 4:], x[..., :4]), -1)
        torch.testing.assert_close(y, x * freqs.cos() + half * freqs.sin(), rtol=1e-5, atol=1e-5)
        back = self.impls["fused_rope_backward"](y, freqs[:, :, :, :4].repeat(1, 1, 1, 2), *arguments[1:])
        self.assertEqual(back.shape, x.shape)
        with self.assertRaises(NotImplementedError):
            self.impls["fused_rope_forward"](x, freqs, None, named.NVTE_BHSD, False, None, 1, 0)  # type: ignore[attr-defined]

        rows, padded = torch.randn(5, 4), torch.full((8, 4), 7.0)
        self.impls["fused_multi_row_padding"](rows, padded, [2, 3], [4, 4])
        torch.testing.assert_close(padded[:2], rows[:2])
        self.assertEqual(float(padded[2:4].abs().sum()), 0)
        again = torch.empty(5, 4)
        self.impls["fused_multi_row_unpadding"](padded, again, [4, 4], [2, 3])
        torch.testing.assert_close(again, rows)
        out = torch.empty(2, 5, 3, 8)
        self.impls["swap_first_dims"](x, out=out)
        torch.testing.assert_close(out, x.transpose(0, 1))

    def test_sgd(self) -> None:
        p, g = torch.randn(4, 3), torch.randn(4, 3)
        theirs = torch.nn.Parameter(p.clone())
        optimizer = torch.optim.SGD([theirs], lr=0.1, momentum=0.9, weight_decay=0.01)
        momentum, noop = torch.zeros(4, 3), torch.zeros(1, dtype=torch.int32)
        for step in range(3):
            theirs.grad = g.clone()
            optimizer.step()
            self.impls["multi_tensor_sgd"](
                2048, noop, [[g], [p], [momentum]], 0.01, 0.9, 0.0, 0.1, False, step == 0, False, 1.0
            )
        torch.testing.assert_close(p, theirs.detach(), rtol=1e-5, atol=1e-6)

    def test_attention_declines_what_it_lacks(self) -> None:
        attention = self.impls["get_flash_attention_class"]()()
        attention.softmax_scale, attention.attention_dropout = 0.5, 0.0
        q = torch.randn(4, 2, 3, 8)
        self.assertEqual(attention(q, q, q, qkv_layout="sbhd_sbhd_sbhd").shape, (4, 2, 24))
        for arguments in ({"fp8": True}, {"cp_group": object()}, {"qkv_layout": "bhsd"}, {"new_argument": 1}):
            with self.assertRaises(NotImplementedError):
                attention(q, q, q, **{"qkv_layout": "sbhd_sbhd_sbhd", **arguments})
        attention.attention_dropout = 0.1
        with self.assertRaisesRegex(NotImplementedError, "dropout"):
            attention(q, q, q, qkv_layout="sb3hd")


@needs_torch
class Policies(unittest.TestCase):
    def test_their_variables_are_not_ours(self) -> None:
        """Choose this vendor there, and nothing else here."""
        out = python(
            """
import torch
from primus_fl import te_fl
print(te_fl.ops.silu(torch.zeros(1)).item(), te_fl.manager().selected("silu"))
""",
            TE_FL_PER_OP="silu=vendor:primus",
            TE_FL_PREFER="reference",
        )
        self.assertEqual(out, "0.0 default.flagos\n")


@needs_torch
@unittest.skipUnless(CHECKOUT, "needs TE_FL_CHECKOUT, the folder of a checkout of flagos-ai/TransformerEngine-FL")
class Checkout(unittest.TestCase):
    def test_their_suites(self) -> None:
        """Pass every case of their tests that the vendor does not decline."""
        env = {**os.environ, "TE_FL_PLUGIN_MODULES": "primus_fl.te_fl"}
        done = subprocess.run(
            [sys.executable, "-m", "tests.run_te_fl", CHECKOUT],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        counts = {mark: len(re.findall(rf"{mark} primus", done.stdout)) for mark in "✓✗⊘"}
        self.assertEqual((counts["✗"], counts["⊘"]), (0, 0), done.stdout[-4000:])
        self.assertGreaterEqual(counts["✓"], 100, done.stdout[-4000:])


if __name__ == "__main__":
    unittest.main()
