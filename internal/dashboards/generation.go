package dashboards

// generation shows what the services of models do.
func generation() *Dashboard {
	each := "{{run}}"
	within := func(share, metric string) string {
		return `histogram_quantile(` + share + `, sum by (le, run) (rate(` + metric + `_bucket{…}[])))`
	}
	spread := func(title, about string, width int, metric string) Panel {
		return lines(title, about+" Half take less, and 99 of 100.", "s", width, rarely(within("0.5", metric), each+" median"), rarely(within("0.99", metric), each+" 99 of 100"))
	}
	return &Dashboard{
		UID: "primus-generation", Title: "Primus: generation", Tags: []string{tag}, Links: links(),
		Description:   "Requests, texts and tokens of the models that primus serve --model serves.",
		SchemaVersion: schemaVersion, Editable: true, GraphTooltip: 1, Refresh: "15s", Time: TimeRange{"now-1h", "now"},
		Templating: variables(),
		Annotations: Annotations{List: []Annotation{
			mark("policy changed", "blue", `changes(primus_policy_changes_total{…}[1m]) > 0`, "{{run}}"),
		}},
		Panels: layout(
			alerts(),
			group{"Overview", []Panel{
				figure("Requests per second",
					"Requests that were answered, whatever the answer was.",
					"reqps", 4, rarely(`sum(rate(primus_inference_requests_total{…}[]))`, "")),
				figure("Tokens per second",
					"Generated tokens of all texts together.",
					"short", 4, rarely(`sum by (run) (rate(primus_inference_generated_tokens_total{…}[]))`, each)),
				figure("Running",
					"Texts that are being generated. No more than --parallel are at once.",
					"none", 4, rarely(`sum by (run) (primus_inference_texts_running{…})`, each)),
				figure("Waiting",
					"Texts that wait for their turn. Beyond --queue, requests are refused with 429.",
					"none", 4, rarely(`sum by (run) (primus_inference_texts_waiting{…})`, each), 1),
				figure("Time to the first token",
					"Half of the texts begin sooner.",
					"s", 4, rarely(within("0.5", "primus_inference_time_to_first_token_seconds"), each)),
				figure("Time between tokens",
					"Half of the tokens come sooner after the one before.",
					"s", 4, rarely(within("0.5", "primus_inference_time_per_token_seconds"), each)),
			}},
			group{"Requests", []Panel{
				lines("Requests by answer",
					"Of these, 429 refuses a request because too many wait, 499 is a client that went away, 503 a model that is being loaded.",
					"reqps", 12, rarely(`sum by (run, endpoint, code) (rate(primus_inference_requests_total{…}[]))`, "{{run}} {{endpoint}} {{code}}")),
				spread("Duration of a request",
					"From a request to the end of its answer; it grows with the tokens that are asked for.",
					12, "primus_inference_request_duration_seconds"),
			}},
			group{"Texts", []Panel{
				lines("Texts at once",
					"Texts that are generated and texts that wait. If some wait all the time, --parallel is too small or the machine too slow.",
					"none", 12, rarely(`primus_inference_texts_running{…}`, each+" running"), rarely(`primus_inference_texts_waiting{…}`, each+" waiting")),
				lines("Ends of texts",
					"By a token or text that ends it, at the limit of tokens, by a client that went away, or with an error.",
					"cps", 12, rarely(`sum by (run, finish) (rate(primus_inference_texts_total{…}[]))`, "{{run}} {{finish}}")),
			}},
			group{"Tokens", []Panel{
				lines("Tokens per second",
					"Tokens that were generated, and those of the prompts of texts that began.",
					"short", 8, rarely(`sum by (run) (rate(primus_inference_generated_tokens_total{…}[]))`, each+" generated"),
					rarely(`sum by (run) (rate(primus_inference_prompt_tokens_total{…}[]))`, each+" prompts")),
				spread("Time to the first token",
					"From a request, with the time that it waited and that of its prompt.",
					8, "primus_inference_time_to_first_token_seconds"),
				spread("Time between tokens",
					"All texts at once share a step, so that it grows a little with their number.",
					8, "primus_inference_time_per_token_seconds"),
			}},
		),
	}
}
