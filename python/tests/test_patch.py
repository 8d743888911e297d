"""Models that patch has made call the ops of primus_fl."""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
import unittest
from typing import Any, Callable

from .support import calls, module, needs_torch, needs_transformers, torch, transformers

if torch:
    import primus_fl.torch as pt

    nn = torch.nn


def called(function: Callable[[], Any]) -> tuple[Any, set[str]]:
    """Return the result of a function, and the ops that it called."""
    before = calls()
    result = function()
    return result, {name for name, n in calls().items() if n > before.get(name, 0)}


def step(model: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """Return what a model computes, and the gradients of its parameters."""
    model.zero_grad()
    out = model(*args, **kwargs)
    (out.float().flatten().cumsum(0).mean() if torch.is_tensor(out) else out.loss).backward()
    results = [out] if torch.is_tensor(out) else [out.logits, out.loss]
    return [t.detach().clone() for t in results] + [p.grad.clone() for p in model.parameters()]


def small(seed: int = 3) -> Any:
    """Return a model of modules of torch that ops can serve."""
    torch.manual_seed(seed)
    layers = [
        nn.Linear(8, 16),
        nn.SiLU(),
        nn.LayerNorm(16),
        nn.Linear(16, 8, bias=False),
        nn.GELU(approximate="tanh"),
        nn.GELU(),
    ]
    return nn.Sequential(*layers, *([nn.RMSNorm(8)] if hasattr(nn, "RMSNorm") else []))


@needs_torch
class Modules(unittest.TestCase):
    """Modules of torch.nn."""

    def test_results_are_those_of_torch(self) -> None:
        """Compare results and gradients with those of the model in f64, and see what is called."""
        for shape, dtype, tolerance in (((5, 8), torch.float32, 1e-5), ((2, 3, 8), torch.bfloat16, 2e-2)):
            with self.subTest(dtype=dtype):
                model, x = small().to(dtype), torch.randn(shape).to(dtype)
                exact = step(copy.deepcopy(model).double(), x.double())
                want, ops = called(lambda m=model, x=x: step(m, x))
                self.assertEqual(ops, set())
                pt.patch(model)
                got, ops = called(lambda m=model, x=x: step(m, x))
                self.assertLessEqual(
                    {"generic_gemm", "silu", "dsilu", "layernorm_fwd", "layernorm_bwd", "dgelu", "dgelu_erf"}, ops
                )
                for a, b, c in zip(got, want, exact):
                    error, theirs = (float((t - c).norm() / c.norm()) for t in (a, b))
                    self.assertLess(error, max(tolerance, 1.5 * theirs))
                pt.unpatch(model)
                again, ops = called(lambda m=model, x=x: step(m, x))
                self.assertEqual(ops, set())
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(again, want)))

    def test_a_module_stays_what_it_was(self) -> None:
        model = small()
        names, linear, optimizer = list(model.state_dict()), model[0], torch.optim.SGD(model.parameters(), lr=0.1)
        seen: list[Any] = []
        linear.register_forward_hook(lambda module, args, out: seen.append(out.shape))
        pt.patch(model)
        self.assertIs(model[0], linear)
        self.assertIsInstance(linear, nn.Linear)
        self.assertEqual(repr(linear), "Linear(in_features=8, out_features=16, bias=True, ops=primus_fl)")
        self.assertEqual(list(model.state_dict()), names)
        before = linear.weight.detach().clone()
        step(model, torch.randn(4, 8))
        optimizer.step()
        self.assertFalse(torch.equal(before, linear.weight))
        self.assertEqual(seen, [(4, 16)])
        model.load_state_dict(small(4).state_dict())
        pt.unpatch(model)
        self.assertIs(type(linear), nn.Linear)

    def test_copies_are_patched_as_the_model_is(self) -> None:
        model, x = small(), torch.randn(4, 8)
        pt.patch(model)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            y, ops = called(lambda m=other: m(x))
            self.assertIn("generic_gemm", ops)
            self.assertTrue(torch.equal(y, model(x)))
            pt.unpatch(other)
            self.assertIs(type(other[0]), nn.Linear)
        self.assertEqual(repr(model[3]), "Linear(in_features=16, out_features=8, bias=False, ops=primus_fl)")

    def test_report(self) -> None:
        model = nn.Sequential(
            nn.Linear(4, 4), nn.GELU(), nn.SiLU(inplace=True), nn.LayerNorm((2, 4)), nn.LayerNorm(4), nn.Dropout(),
            nn.Linear(4, 4), nn.Linear(4, 4, dtype=torch.complex64), nn.Linear(4, 4, device="meta"), nn.LazyLinear(4),
            nn.Embedding(4, 4, sparse=True),
        )  # fmt: skip
        model[6].forward = model[6].forward
        report = pt.patch(model)
        self.assertEqual(report.swapped, {"0": "Linear", "1": "GELU", "4": "LayerNorm"})
        self.assertEqual(
            report.left,
            {
                "2": "SiLU: it writes over its input",
                "3": "LayerNorm: given a norm over 2 axes, want one over the last",
                "5": "Dropout: ops have no part in it",
                "6": "Linear: its forward was replaced",
                "7": "Linear: given a weight of torch.complex64 and torch.strided, want a dense one of f32, bf16, "
                "f16 or f64",
                "8": "Linear: given a weight on meta, want one in host memory",
                "9": "LazyLinear: the shape of its weight is not known before its first call",
                "10": "Embedding: given sparse=True, want False",
            },
        )
        self.assertIn("3 modules call ops of primus_fl, 8 compute as before\n", str(report))
        self.assertIn("ops of primus_fl     1  Linear  (0)\n", str(report))
        self.assertEqual(pt.patch(model), report)
        self.assertEqual(pt.unpatch(model), ["0", "1", "4"])
        self.assertEqual(pt.unpatch(model), [])

    def test_wrong_models(self) -> None:
        for wrong in (None, [nn.Linear(2, 2)], nn.Linear):
            for function in (pt.patch, pt.unpatch):
                with self.assertRaisesRegex(TypeError, "given .*, want a torch.nn.Module"):
                    function(wrong)
        with self.assertRaisesRegex(ValueError, "given Sequential, in which no module can call ops .*(.|\n)*Dropout"):
            pt.patch(nn.Sequential(nn.Dropout()))

    def test_what_ops_cannot_serve_goes_to_torch(self) -> None:
        model, x = small(), torch.randn(8, 5).t()
        want = model(x)
        pt.patch(model)
        torch.testing.assert_close(model(x), want, rtol=2e-5, atol=2e-5)  # strides
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _, ops = called(lambda: model[0](x))
        self.assertEqual(ops, set())
        self.assertEqual(called(lambda: model[0](torch.empty(0, 8)))[1], set())
        for wrong in (torch.randn(2, 7), torch.randn(2, 8).double()):
            with self.assertRaises(RuntimeError):
                model[0](wrong)


FAMILIES = {
    "LlamaForCausalLM": "LlamaConfig",
    "MistralForCausalLM": "MistralConfig",
    "MixtralForCausalLM": "MixtralConfig",
    "Qwen2ForCausalLM": "Qwen2Config",
    "Qwen3ForCausalLM": "Qwen3Config",
    "Qwen3MoeForCausalLM": "Qwen3MoeConfig",
    "GPT2LMHeadModel": "GPT2Config",
}
EXPERTS = {"moe_permute_fwd", "moe_permute_bwd", "moe_unpermute_fwd", "moe_unpermute_bwd", "te_general_grouped_gemm"}
LLAMA = {"generic_gemm", "rmsnorm_fwd", "rmsnorm_bwd", "swiglu", "dswiglu", "fused_rope_forward", "fused_rope_backward"}
EVERY = {
    "fused_attn_fwd", "fused_attn_bwd", "cross_entropy_fwd", "cross_entropy_bwd", "embedding_fwd", "embedding_bwd"
}  # fmt: skip


def pretrained(name: str, **others: Any) -> Any:
    """Return a small model of transformers."""
    torch.manual_seed(7)
    sizes: dict[str, Any] = {"vocab_size": 61, "bos_token_id": 1, "eos_token_id": 2}
    if name == "GPT2LMHeadModel":
        sizes.update(n_embd=32, n_layer=2, n_head=4, n_positions=32, attn_pdrop=0, resid_pdrop=0, embd_pdrop=0)
    else:
        sizes.update(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, head_dim=8)
        sizes.update(num_key_value_heads=2, max_position_embeddings=64)
    if name == "Qwen3MoeForCausalLM":
        sizes.update(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24)
    model = getattr(transformers, name)(getattr(transformers, FAMILIES[name])(**sizes, **others))
    for parameter in model.parameters():  # zeros and ones hide mistakes
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model.train()


@needs_transformers
class Pretrained(unittest.TestCase):
    """Models of transformers."""

    def setUp(self) -> None:
        transformers.logging.set_verbosity_error()

    def test_results_are_those_of_torch(self) -> None:
        for name in FAMILIES:
            with self.subTest(name):
                model, tokens = pretrained(name), torch.randint(0, 61, (3, 9))
                names, want = list(model.state_dict()), step(model, input_ids=tokens, labels=tokens)
                report = pt.patch(model)
                self.assertEqual(list(model.state_dict()), names)
                got, ops = called(lambda m=model, t=tokens: step(m, input_ids=t, labels=t))
                gpt = name == "GPT2LMHeadModel"
                expected = {"layernorm_fwd", "gelu", "generic_gemm"} if gpt else LLAMA
                expected = expected | EXPERTS if name in ("MixtralForCausalLM", "Qwen3MoeForCausalLM") else expected
                self.assertLessEqual(expected | EVERY, ops)
                for a, b in zip(got, want):
                    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
                kinds = {"Dropout", "MixtralTopKRouter", "Qwen3MoeTopKRouter", name.split("For")[0] + "RotaryEmbedding"}
                self.assertLessEqual({why.split(":")[0] for why in report.left.values()}, kinds)
                self.assertEqual(pt.patch(model), report)
                self.assertEqual(set(pt.unpatch(model)), set(report.swapped))
                again, ops = called(lambda m=model, t=tokens: step(m, input_ids=t, labels=t))
                self.assertEqual(ops, set())
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(again, want)))
                self.assertEqual(model.config._attn_implementation, "sdpa")

    def test_padding_windows_and_generation(self) -> None:
        model = pretrained("MistralForCausalLM", sliding_window=4).eval()
        tokens, mask = torch.randint(3, 61, (2, 9)), torch.ones(2, 9, dtype=torch.long)
        mask[0, :4] = 0

        def outputs() -> list[Any]:
            with torch.no_grad():
                logits = [model(tokens).logits, model(tokens, attention_mask=mask).logits[mask.bool()]]
                return [*logits, model.generate(tokens[:, :5], max_new_tokens=9, do_sample=False, eos_token_id=None)]

        want = outputs()
        pt.patch(model)
        for a, b in zip(outputs(), want):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    @unittest.skipUnless(module("accelerate"), "needs accelerate")
    def test_trainer(self) -> None:
        """Train with the Trainer of transformers, with losses as without ops."""
        tokens = torch.randint(0, 61, (12, 9), generator=torch.Generator().manual_seed(4))
        rows = [{"input_ids": row, "labels": row} for row in tokens]

        def train(patched: bool) -> list[float]:
            model = pretrained("LlamaForCausalLM")
            if patched:
                pt.patch(model)
            with tempfile.TemporaryDirectory() as folder:
                arguments = transformers.TrainingArguments(
                    folder, max_steps=6, per_device_train_batch_size=4, logging_steps=1, save_steps=3,
                    gradient_accumulation_steps=2, report_to=[], use_cpu=True, disable_tqdm=True, seed=3,
                )  # fmt: skip
                trainer = transformers.Trainer(model, arguments, train_dataset=rows)
                trainer.train()
                weights = type(model).from_pretrained(os.path.join(folder, "checkpoint-6")).state_dict()
            self.assertEqual(list(weights), list(model.state_dict()))
            return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

        want = train(False)
        got, ops = called(lambda: train(True))
        self.assertLessEqual(LLAMA | EVERY, ops)
        self.assertEqual(len(got), 6)
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, delta=1e-4)

    def test_loss_of_several_batches(self) -> None:
        model, tokens = pretrained("LlamaForCausalLM"), torch.randint(0, 61, (2, 9))
        labels = tokens.masked_fill(tokens < 20, -100)
        for arguments in (
            {"num_items_in_batch": torch.tensor(31)},
            {"num_items_in_batch": 31},
            {"label_smoothing": 0.1},
        ):
            want = model(tokens, labels=labels, **arguments).loss
            pt.patch(model)
            torch.testing.assert_close(model(tokens, labels=labels, **arguments).loss, want, rtol=1e-5, atol=1e-6)
            pt.unpatch(model)

    def test_what_a_model_has_of_its_own_stays(self) -> None:
        model = pretrained("LlamaForCausalLM", mlp_bias=True, attn_implementation="eager", hidden_act="gelu_new")
        model.loss_function = lambda logits, labels, **_: logits.sum()
        own = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 16}
        model.model.layers[0].self_attn.config = copy.deepcopy(model.config)
        model.model.layers[0].self_attn.config.rope_parameters = own
        report = pt.patch(model)
        left = {name: why for name, why in report.left.items() if "no part" not in why}
        self.assertEqual(
            left,
            {
                "model.layers.0.self_attn": "LlamaAttention: yarn scales what it rotates",
                "model.layers.0.mlp": "LlamaMLP: the activation is NewGELUActivation, want SiLU",
                "model.layers.1.mlp": "LlamaMLP: the activation is NewGELUActivation, want SiLU",
                "attention": "attention of LlamaForCausalLM: its implementation is eager, want sdpa",
                "loss": "loss of LlamaForCausalLM: another function was set",
            },
        )
        tokens = torch.randint(0, 61, (2, 9))
        got = step(model, input_ids=tokens, labels=tokens)
        pt.unpatch(model)
        for a, b in zip(got, step(model, input_ids=tokens, labels=tokens)):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)

    def test_hooks_of_parts_are_called(self) -> None:
        model, tokens, seen = pretrained("LlamaForCausalLM"), torch.randint(0, 61, (2, 9)), []
        pt.patch(model)
        model.model.layers[1].mlp.gate_proj.register_forward_hook(lambda *_: seen.append("gate"))
        _, ops = called(lambda: model(tokens))
        self.assertEqual(seen, ["gate"])
        self.assertIn("silu", ops)


if __name__ == "__main__":
    unittest.main()
