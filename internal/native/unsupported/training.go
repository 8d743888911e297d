package unsupported

// optimizer are the parameters of the update of weights.
func optimizer() map[string]rule {
	return map[string]rule{
		"decoupled_lr":     only("lr is that of all weights"),
		"decoupled_min_lr": only("min_lr is that of all weights"),
	}
}

// schedule are the parameters that decide how many steps of which size there are.
func schedule() map[string]rule {
	const steps = "training is counted in steps: train_iters, lr_warmup_iters, lr_decay_iters"
	return map[string]rule{
		"train_samples":      only(steps, 0.0),
		"lr_decay_samples":   only(steps, 0.0),
		"lr_warmup_samples":  only(steps, 0.0),
		"lr_warmup_fraction": only(steps, 0.0),
		"warmup":             only(steps),
		"iterations_to_skip": only("no step is skipped", nil),
		"skip_train":         off("train trains"),
		"perform_rl_step":    off("the native trainer trains on text only"),
	}
}

// unsupportedData are the parameters of text and tokens.
func unsupportedData() map[string]rule {
	const (
		file  = "the tokenizer is that of tokenizer_model"
		text  = "the text is that of train_data_path, valid_data_path and test_data_path"
		whole = "a window of the text is one sequence"
	)
	return map[string]rule{
		"vocab_file":                  only(file),
		"merge_file":                  only(file),
		"vocab_extra_ids":             only(file, 0.0),
		"mock_data":                   off(text),
		"full_validation":             off("eval_iters and final_eval_windows decide how much is evaluated"),
		"data_args_path":              only(text),
		"per_split_data_args_path":    only(text),
		"phase_transition_iterations": only(text),
		"sample_rate":                 only(text, 1.0),
		"dataloader_type":             only("the windows are visited in an order that depends on seed", "single", "cyclic"),
		"fim_data":                    off(whole),
		"sft":                         off(whole),
	}
}

// resumption are the parameters of the checkpoint from which a run continues.
func resumption() map[string]rule {
	const load = "a run goes on from a whole checkpoint of primus, with the parameters of its own configuration"
	return map[string]rule{
		"pretrained_checkpoint":              only(load),
		"finetune":                           off(load),
		"ckpt_step":                          only(load + "; load takes the directory of one step, too"),
		"no_load_optim":                      off(load),
		"use_checkpoint_args":                off(load),
		"use_mp_args_from_checkpoint_args":   off(load),
		"use_checkpoint_opt_param_scheduler": off(load),
		"yaml_cfg":                           only("the experiment is the only configuration"),
	}
}
