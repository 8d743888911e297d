package dashboards

// training shows how runs go on.
func training() *Dashboard {
	each := "{{run}} {{rank}}"
	return &Dashboard{
		UID: "primus-training", Title: "Primus: training", Tags: []string{"primus"},
		Description:   "Progress, losses, throughput, checkpoints and processes of runs.",
		SchemaVersion: schemaVersion, Editable: true, GraphTooltip: 1, Refresh: "15s", Time: TimeRange{"now-3h", "now"},
		Templating: variables(),
		Annotations: Annotations{List: []Annotation{
			mark("checkpoint", "green", `changes(primus_checkpoint_saves_total{…}[1m]) > 0`, "rank {{rank}} of {{run}}"),
			mark("policy changed", "blue", `changes(primus_policy_changes_total{…}[1m]) > 0`, "rank {{rank}} of {{run}}"),
		}},
		Panels: layout(
			group{"Overview", []Panel{
				figure("Progress", "percentunit", 4, query(`primus_train_step{…} / primus_train_steps{…}`, each)),
				figure("Running", "none", 4, query(`sum(primus_train_running{…})`, "")),
				figure("Loss", "none", 4, query(`primus_train_loss{…}`, each)),
				figure("Tokens a second", "short", 4, query(`sum by (run) (primus_train_tokens_per_second{…})`, "{{run}}")),
				figure("Age of the checkpoint", "s", 4, query(`time() - primus_checkpoint_timestamp_seconds{…}`, each), 3600, 7200),
				figure("Time left", "s", 4, query(
					`(primus_train_steps{…} - primus_train_step{…}) * rate(primus_train_step_duration_seconds_sum{…}[]) / rate(primus_train_step_duration_seconds_count{…}[])`, each)),
			}},
			group{"Learning", []Panel{
				lines("Loss", "none", 12, query(`primus_train_loss{…}`, each), query(`primus_train_valid_loss{…}`, each+" validation")),
				logarithmic(lines("Gradient norm", "none", 12, query(`primus_train_grad_norm{…}`, each))),
				lines("Learning rate", "none", 12, query(`primus_train_learning_rate{…}`, each)),
				lines("Steps that were not finite", "none", 12, query(`primus_train_nonfinite_total{…}`, each)),
			}},
			group{"Speed", []Panel{
				lines("Tokens a second", "short", 12, query(`rate(primus_train_tokens_total{…}[])`, each)),
				lines("Duration of a step", "s", 12,
					exemplars(query(`histogram_quantile(0.5, sum by (le, run) (rate(primus_train_step_duration_seconds_bucket{…}[])))`, "{{run}} median")),
					query(`histogram_quantile(0.99, sum by (le, run) (rate(primus_train_step_duration_seconds_bucket{…}[])))`, "{{run}} 99 of 100")),
				lines("Floating-point operations a second", "flops", 12, query(`sum by (run) (primus_train_flops_per_second{…})`, "{{run}}")),
				described(lines("Utilisation", "percentunit", 12, query(`primus_train_mfu_ratio{…}`, each)), "Over the peak that --peak-tflops gives."),
			}},
			group{"Processes", []Panel{
				lines("Memory", "bytes", 8, query(`process_resident_memory_bytes{…}`, each), query(`go_memstats_heap_inuse_bytes{…}`, each+" Go heap")),
				lines("CPUs", "none", 8, query(`rate(process_cpu_seconds_total{…}[])`, each)),
				lines("Garbage collection", "percentunit", 8, query(`rate(go_gc_duration_seconds_sum{…}[])`, each)),
				table("Builds", "", 8, []string{""}, column(`primus_build_info{…}`)),
				table("Plugins", "", 8, []string{"processes"}, column(`count by (plugin, version, state, usable) (primus_plugin_info{…})`)),
				table("Patches", "", 8, []string{"processes"}, optional(column(`count by (run, phase, patch) (primus_patch_applied_info{…})`))),
			}},
		),
	}
}
