package unsupported

// parallel are the parameters that spread a model over processes.
func parallel() map[string]rule {
	const (
		ranks  = "ranks divide the batch, sequences by context_parallel_size, layers by pipeline_model_parallel_size, tensor_model_parallel_size and expert_model_parallel_size, and the state of the optimizer by use_distributed_optimizer"
		layout = "pipeline_model_parallel_layout says which layers a stage has"
	)
	return map[string]rule{
		"account_for_embedding_in_pipeline_split": off(layout),
		"account_for_loss_in_pipeline_split":      off(layout),
		"decoder_first_pipeline_num_layers":       only(layout),
		"decoder_last_pipeline_num_layers":        only(layout),
		"expert_tensor_parallel_size":             only(ranks, 1.0),
		"model_parallel_size":                     only(ranks, 1.0),
		"hierarchical_context_parallel_sizes":     only(ranks, nil),
		"hybrid_context_parallel":                 off(ranks),
		"use_megatron_fsdp":                       off(ranks),
		"use_torch_fsdp2":                         off(ranks),
	}
}

// precision are the parameters that choose the types of numbers.
func precision() map[string]rule {
	const f32 = "weights, their gradients, the state of the optimizer and losses are f32"
	return map[string]rule{
		"fp8_wgrad":                only("gradients of weights are products of fp8, too", true),
		"fp4":                      only(f32, false),
		"fp16_lm_cross_entropy":    off(f32),
		"main_grads_dtype":         only(f32, "fp32"),
		"main_params_dtype":        only(f32, "fp32"),
		"exp_avg_dtype":            only(f32, "fp32"),
		"exp_avg_sq_dtype":         only(f32, "fp32"),
		"te_precision_config_file": only(f32),
	}
}
