package dashboards

// dispatch shows which impl serves which op, how fast, and what goes wrong.
func dispatch() *Dashboard {
	return &Dashboard{
		UID: "primus-dispatch", Title: "Primus: op dispatch", Tags: []string{"primus"},
		Description:   "Which implementation serves which op, how fast, and what falls back and why.",
		SchemaVersion: schemaVersion, Editable: true, GraphTooltip: 1, Refresh: "15s", Time: TimeRange{"now-1h", "now"},
		Templating: variables(choice("vendor", "Vendor", `label_values(primus_op_calls_total{run=~"$run"}, vendor)`, ".*")),
		Annotations: Annotations{List: []Annotation{
			mark("impl switched", "orange",
				`(primus_op_selected_info{…} unless on (run, rank, op, impl) primus_op_selected_info{…} offset 1m)`+
					` and on (run, rank, op) primus_op_selected_info{…} offset 1m`, "{{op}} is served by {{impl}}, rank {{rank}} of {{run}}"),
			mark("policy changed", "blue", `changes(primus_policy_changes_total{…}[1m]) > 0`, "rank {{rank}} of {{run}}"),
		}},
		Panels: layout(
			group{"Overview", []Panel{
				figure("Calls a second", "ops", 4, query(`sum(rate(primus_op_calls_total{v…}[]))`, "")),
				described(figure("Fallbacks", "percentunit", 4,
					query(`(sum(rate(primus_op_fallbacks_total{…}[])) or vector(0)) / sum(rate(primus_op_calls_total{…}[]))`, ""), 0.0001, 0.01),
					"Calls that another impl served than the first candidate."),
				figure("Errors", "percentunit", 4, query(`sum(rate(primus_op_errors_total{v…}[])) / sum(rate(primus_op_calls_total{…}[]))`, ""), 1e-9, 0.001),
				figure("In quarantine", "none", 4, query(`count(primus_op_quarantined{…}) or vector(0)`, ""), 1, 3),
				described(figure("Policies in force", "none", 4, query(`count(count by (fingerprint) (primus_policy_info{…}))`, ""), 2),
					"More than one among the ranks of a run is a mistake, or a change under way."),
				figure("Violations of verification", "none", 4, query(`sum(primus_op_verify_violations_total{v…}) or vector(0)`, ""), 1),
			}},
			group{"Who serves", []Panel{
				shares("Share of time by impl", 12, query(`sum by (impl) (rate(primus_op_seconds_total{v…}[])) / scalar(sum(rate(primus_op_seconds_total{…}[])))`, "{{impl}}")),
				shares("Share of calls by impl", 12, query(`sum by (impl) (rate(primus_op_calls_total{v…}[])) / scalar(sum(rate(primus_op_calls_total{…}[])))`, "{{impl}}")),
				table("Selected impls", "", 12, []string{"processes"},
					column(`count by (op, impl, kind, vendor) (primus_op_selected_info{v…})`)),
				table("Ops and impls", "s", 12, []string{"time a second", "mean of a call"},
					column(`sum by (op, impl) (rate(primus_op_seconds_total{v…}[])) > 0`),
					column(`sum by (op, impl) (rate(primus_op_seconds_total{v…}[])) / (sum by (op, impl) (rate(primus_op_calls_total{v…}[])) > 0)`)),
			}},
			group{"How fast", []Panel{
				described(lines("Ops that take most time", "s", 12, query(`topk(10, sum by (op) (rate(primus_op_seconds_total{v…}[])))`, "{{op}}")),
					"Seconds of a second, over all processes that are selected."),
				logarithmic(lines("Duration of a call, 99 of 100 are below", "s", 12, exemplars(query(
					`topk(10, histogram_quantile(0.99, sum by (le, op, impl) (rate(primus_op_duration_seconds_bucket{v…}[]))) > 0)`, "{{op}} {{impl}}")))),
			}},
			group{"What goes wrong", []Panel{
				lines("Fallbacks a second", "cps", 12, rarely(`sum by (op, from, to, reason) (rate(primus_op_fallbacks_total{…}[])) > 0`, "{{op}}: {{from}} {{reason}}, {{to}} served")),
				lines("Errors and declines a second", "cps", 12,
					rarely(`sum by (op, impl) (rate(primus_op_errors_total{v…}[])) > 0`, "{{op}} {{impl}} failed"),
					rarely(`sum by (op, impl) (rate(primus_op_declines_total{v…}[])) > 0`, "{{op}} {{impl}} declined")),
				timeline("Quarantine", 12, rarely(`max by (run, rank, op, impl, state) (primus_op_quarantined{…})`, "{{op}} {{impl}} {{state}} ({{run}} {{rank}})")),
				logarithmic(lines("Largest difference from the reference", "none", 12, rarely(`max by (op, impl) (primus_op_verify_error_ratio_max{v…})`, "{{op}} {{impl}}"))),
			}},
			group{"Changes", []Panel{
				lines("Dispatch table", "none", 12, query(`primus_dispatch_generation{…}`, "generation, {{run}} {{rank}}")),
				table("Policies", "", 12, []string{"processes"}, column(`count by (run, fingerprint, prefer, strict) (primus_policy_info{…})`)),
			}},
		),
	}
}
