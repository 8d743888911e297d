package unsupported

import (
	"cmp"

	"github.com/primus-fl/primus/internal/native/model"
)

// unsupportedArchitecture are the parameters of the model.
func unsupportedArchitecture() map[string]rule {
	const (
		plain       = "the native trainer has no such layer"
		noPeers     = "the native trainer has no such model"
		noMuP       = "the native trainer draws weights with init_method_std and scales nothing by width"
		activations = "activation_func is swiglu, geglu, geglu_erf, gelu or gelu_erf"
		noScaled    = "the native trainer rotates whole heads, each half of a head against the other"
	)
	return map[string]rule{
		"swiglu":                refusedWhen(gated, "activation_func decides the activation"),
		"openai_gelu":           depends(openaiGELU, "activation_func decides the activation"),
		"squared_relu":          off(activations),
		"quick_geglu":           off(activations),
		"glu_linear_offset":     only(plain, 0.0),
		"softmax_type":          only("attention uses the plain softmax", "vanilla"),
		"qk_l2_norm":            off(plain),
		"qk_clip":               off("the native trainer clips no queries and keys"),
		"attention_output_gate": off(plain),
		"group_query_attention": depends(groupedQueries, "num_query_groups decides about the heads of keys and values"),

		"apply_residual_connection_post_layernorm": off("the residual is taken before the norm"),
		"activation_func_clamp_value":              only("activations are not clamped"),
		"embedding_init_method_std":                depends(func(r Run) []any { return []any{r.InitMethodStd} }, noMuP),
		"init_method_xavier_uniform":               off(noMuP),
		"perform_initialization":                   only(noMuP, true),
		"use_mup":                                  off(noMuP),

		"add_position_embedding":         only("position_embedding_type decides about positions", true),
		"use_rotary_position_embeddings": refusedWhen(rotary, "position_embedding_type decides about positions"),
		"rope_type":                      only(noScaled, "rope"),
		"rotary_percent":                 only(noScaled, 1.0),
		"rotary_interleaved":             off(noScaled),
		"no_rope_freq":                   only("every layer has rotary positions"),

		"mtp_num_layers":                           only("the native trainer predicts one token ahead", 0.0),
		"multi_latent_attention":                   off(noPeers),
		"experimental_attention_variant":           only(noPeers),
		"linear_attention_freq":                    only(noPeers),
		"is_hybrid_model":                          off(noPeers),
		"hybrid_layer_pattern":                     only(noPeers),
		"hybrid_override_pattern":                  only(noPeers),
		"heterogeneous_layers_config_path":         only(noPeers),
		"heterogeneous_layers_config_encoded_json": only(noPeers),
		"spec":               only(noPeers),
		"encoder_num_layers": depends(layers, "num_layers decides about the layers of the decoder"),
		"decoder_num_layers": depends(layers, "num_layers decides about the layers of the decoder"),
		"encoder_seq_length": depends(sequence, "seq_length decides about the length of sequences"),
		"decoder_seq_length": depends(sequence, "seq_length decides about the length of sequences"),

		"padded_vocab_size": depends(func(r Run) []any { return []any{float64(r.VocabSize)} }, "make_vocab_size_divisible_by pads vocab_size"),
	}
}

func gated(r Run) bool  { return cmp.Or(r.Activation, model.SwiGLU) == model.SwiGLU }
func rotary(r Run) bool { return cmp.Or(r.PositionEmbedding, model.Rope) == model.Rope }

func layers(r Run) []any   { return []any{float64(r.NumLayers)} }
func sequence(r Run) []any { return []any{float64(r.SeqLength)} }

// openaiGELU is Megatron's name for the tanh form of gelu.
func openaiGELU(r Run) []any {
	if r.Activation != model.GELU {
		return []any{false}
	}
	return []any{true, false}
}

func groupedQueries(r Run) []any {
	if r.Groups() == r.NumAttentionHeads {
		return []any{true, false}
	}
	return []any{true}
}

// experts are the parameters of mixtures of experts, which matter with num_experts only.
func experts() map[string]rule {
	const router = "a token goes to the moe_router_topk experts with the largest logits, weighted by a softmax over them, and none is dropped"
	all := map[string]rule{
		"moe_layer_freq":                      only("every layer has experts", 1.0),
		"moe_shared_expert_intermediate_size": only("there are no shared experts"),
		"moe_latent_size":                     only("experts work on the hidden state itself"),
		"moe_router_num_groups":               only(router),
		"moe_router_group_topk":               only(router),
		"moe_router_topk_scaling_factor":      only(router, 1.0),
		"moe_router_score_function":           only(router, "softmax"),
		"moe_router_enable_expert_bias":       off(router),
		"moe_router_force_load_balancing":     off(router),
		"moe_router_dtype":                    only("the router computes in f32", "fp32"),
		"moe_router_load_balancing_type":      depends(balancing, "moe_aux_loss_coeff alone balances experts"),
		"moe_apply_probs_on_input":            off(router),
		"moe_input_jitter_eps":                only(router, 0.0),
		"moe_expert_capacity_factor":          only(router),
		"moe_z_loss_coeff":                    only("the router has no z-loss", 0.0),
		"moe_use_upcycling":                   off("training starts from random weights or a checkpoint of the same model"),
	}
	for name, r := range all {
		r.matters = func(run Run) bool { return run.NumExperts > 0 }
		all[name] = r
	}
	return all
}

func balancing(r Run) []any {
	if r.Balanced() {
		return []any{"aux_loss"}
	}
	return []any{"aux_loss", "none"}
}
