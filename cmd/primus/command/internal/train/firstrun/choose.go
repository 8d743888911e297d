package firstrun

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/native/stepbench"
)

// candidate is a model preset with the parameters that train it well, apart from lengths.
type candidate struct {
	model  string
	body   float64 // parameters without those of the vocabulary
	hidden float64 // parameters of a token of the vocabulary, input and output
	seq    int
	batch  int // sequences of a step
	params []param
}

// candidates returns the models to choose from, the smallest first.
func candidates() []candidate {
	return []candidate{
		{"llama_2M", 1.57e6, 2 * 192, 256, 4, []param{{"lr", 2e-3}, {"min_lr", 1e-4}}},
		{"llama_6M", 5.98e6, 2 * 288, 256, 8, []param{{"global_batch_size", 8}, {"lr", 2e-3}, {"min_lr", 2e-4}}},
		{"llama_30M", 25.3e6, 2 * 512, 512, 16, []param{{"global_batch_size", 16}, {"lr", 1e-3}, {"min_lr", 1e-4}}},
		{"llama_100M", 75.5e6, 768, 512, 16, []param{
			{"bf16", true}, {"recompute_granularity", "full"}, {"global_batch_size", 16}, {"lr", 6e-4}, {"min_lr", 6e-5},
		}},
	}
}

func (c candidate) parameters(vocab int) float64 { return c.body + c.hidden*float64(vocab) }

// Choice is what an experiment for a text trains, and what that was chosen by.
type Choice struct {
	candidate
	text          *text
	Name          string
	Model         string
	Parameters    int
	TokenizerFile string
	Steps         int
	StepTokens    int
	Rate          float64       // tokens in a second
	Computed      bool          // Rate goes by that of a smaller model
	Expected      time.Duration // of the whole run
	tokenizer     []byte
	evaluations   int // on the way
	windows       int // of the last evaluation
	validFraction float64
	notes         []string
}

// The rule of the choice: the largest model that sees tokensPerParameter tokens for each of its
// parameters in the share of the time that training takes, as much of it as the text allows.
const (
	tokensPerParameter = 2    // more would be better, and are not to be had in minutes
	trainingShare      = 0.85 // the rest is for evaluations and checkpoints
	mostEpochs         = 6
	fewestSteps        = 20
	evaluated          = 4 * 4 // sequences of an evaluation on the way: eval_iters of a micro batch
)

func choose(ctx context.Context, prog cli.Program, s Settings) (*Choice, error) {
	say := func(what string) { fmt.Fprintln(prog.Err, what) }
	say("reading " + strings.Join(s.Texts, ", "))
	t, err := read(ctx, s.Texts, s.Corpus)
	if err != nil {
		return nil, err
	}
	all := candidates()
	if s.Model != "" {
		if all = slices.DeleteFunc(all, func(c candidate) bool { return c.model != s.Model }); len(all) == 0 {
			return nil, cli.UsageError{Err: fmt.Errorf("--model: given %q, want one of %s", s.Model, strings.Join(Models(), ", "))}
		}
	}
	if least := int64(20 * all[0].seq); t.tokens < least {
		return nil, fmt.Errorf("given %d bytes of text, which are %d tokens: want at least %d, for %s and a part to validate with",
			t.bytes, t.tokens, least, all[0].model)
	}
	chosen, found, err := largest(all, t, s.Time, func(c candidate, sequences int) (stepbench.Result, error) {
		say("measuring how fast this machine trains " + c.model)
		return measure(ctx, prog, s, c, t.vocab, sequences)
	})
	if err != nil {
		return nil, err
	}
	return finish(s, t, chosen, found), nil
}

// measurer trains a few steps of a model, each of so many sequences.
type measurer func(c candidate, sequences int) (stepbench.Result, error)

// measuringTime is how long a model is measured, about, whatever the time for training is.
const measuringTime = 10 * time.Second

// pace is how fast a model trains.
type pace struct {
	stepbench.Result
	computed bool // from the rate of a smaller model
}

// rate returns how fast a model trains. It measures steps of four sequences, or of one where these
// would take longer than measuringTime by the rate of a smaller model, and goes by that rate alone
// where even this would take longer.
func rate(c candidate, vocab int, smaller pace, measure measurer) (pace, error) {
	perToken := 6 * c.parameters(vocab)
	expected := smaller.TokensPerSecond * smaller.FLOPsPerToken / perToken
	for _, sequences := range []int{4, 1} {
		if 2*float64(sequences*c.seq) <= expected*measuringTime.Seconds() {
			r, err := measure(c, sequences)
			return pace{Result: r}, err
		}
	}
	return pace{stepbench.Result{Parameters: int(c.parameters(vocab)), TokensPerSecond: expected, FLOPsPerToken: perToken}, true}, nil
}

// largest returns the model to train for a time, the largest that the rule allows or else the
// first, and how fast it trains. It measures no model that cannot be fast enough.
func largest(all []candidate, t *text, limit time.Duration, measure measurer) (chosen candidate, found pace, err error) {
	usable := limit.Seconds() * trainingShare
	smallest, err := measure(candidates()[0], 4)
	if err != nil {
		return chosen, found, err
	}
	found.Result = smallest
	for i, c := range all {
		wanted := tokensPerParameter * c.parameters(t.vocab)
		// Larger models keep the processors busier: no rate is more than 1.5 times the one that the
		// rate of the smaller model predicts.
		if i > 0 && 1.5*found.TokensPerSecond*found.FLOPsPerToken/(6*c.parameters(t.vocab))*usable < wanted {
			break
		}
		if i > 0 && (t.tokens < int64(20*c.seq) || mostEpochs*float64(t.tokens) < wanted) {
			break
		}
		p := found
		if c.model != candidates()[0].model {
			if p, err = rate(c, t.vocab, found, measure); err != nil {
				return chosen, found, err
			}
		}
		if i > 0 && p.TokensPerSecond*usable < wanted {
			break
		}
		chosen, found = c, p
	}
	return chosen, found, nil
}

// Models returns the model presets to choose from, the smallest first.
func Models() []string {
	var names []string
	for _, c := range candidates() {
		names = append(names, c.model)
	}
	return names
}

// measure trains a few steps of so many sequences on random tokens.
func measure(ctx context.Context, prog cli.Program, s Settings, c candidate, vocab, sequences int) (r stepbench.Result, err error) {
	o := s.Training
	o.Config, o.Program = c.model+"-pretrain", prog
	overrides := []string{fmt.Sprintf("vocab_size=%d", vocab), fmt.Sprintf("micro_batch_size=%d", sequences), fmt.Sprintf("global_batch_size=%[1]d", sequences)}
	quiet := prog
	quiet.Err = io.Discard
	err = o.WithSteps(ctx, quiet, "init", overrides, func(p experiments.StepParams) error {
		r, err = stepbench.Measure(ctx, stepbench.Settings{
			Module: p.Module, Manager: p.Manager, Device: p.Device, Pool: p.Exec.Pool(), Log: slog.New(slog.DiscardHandler), Warmup: 2, Steps: 3, Limit: measuringTime,
		})
		return err
	})
	return r, err
}

// finish decides the lengths.
func finish(s Settings, t *text, c candidate, r pace) *Choice {
	choice := &Choice{
		candidate: c, text: t, Name: s.Name, Model: c.model, Parameters: r.Parameters, Rate: r.TokensPerSecond, Computed: r.computed, StepTokens: c.batch * c.seq,
		tokenizer: t.tokenizer, validFraction: 0.05,
	}
	if t.tokenizer != nil {
		choice.TokenizerFile = s.Name + "-tokenizer.json"
	}
	if held := float64(t.tokens) * choice.validFraction; held < float64(2*c.seq) {
		choice.validFraction = 0.2
	}
	usable := s.Time.Seconds() * trainingShare
	tokens := r.TokensPerSecond * usable
	if most := mostEpochs * float64(t.tokens); tokens > most {
		tokens = most
		choice.notes = append(choice.notes, fmt.Sprintf("the text is short: more than %d times would be learning by heart, so the run takes less than --time", mostEpochs))
	}
	choice.Steps = max(fewestSteps, int(tokens)/choice.StepTokens)
	seconds := float64(choice.Steps*choice.StepTokens) / r.TokensPerSecond
	// An evaluation is a third of a step's work; those on the way take a twentieth of the time, and
	// the last one, which has more windows, another.
	sequences := s.Time.Seconds() / 20 * 3 * r.TokensPerSecond / float64(c.seq)
	choice.evaluations = int(min(max(sequences/evaluated, 1), 10))
	choice.windows = int(min(max(sequences, 4), 512))
	evaluations := float64((choice.evaluations*evaluated+choice.windows)*c.seq) / (3 * r.TokensPerSecond)
	choice.Expected = time.Duration((seconds + evaluations) * float64(time.Second))
	if choice.Steps == fewestSteps && choice.Expected > s.Time {
		choice.notes = append(choice.notes, fmt.Sprintf("%v is too short for %d steps, the fewest that show anything", s.Time, fewestSteps))
	}
	return choice
}
