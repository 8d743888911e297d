package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/primus-fl/primus/opmanager"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// generateOptions are the flags of the command.
type generateOptions struct {
	Options
	inference.Sampling
	prompt, prompts, system string
	template                string
	chat, echo, quiet       bool
	maxTokens, parallel     uint
	topK                    uint
	stop                    []string
	output                  cli.TextOrJSON
}

// NewGenerate returns the command `primus generate`.
func NewGenerate(prog cli.Program) *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:   "generate --checkpoint DIR --prompt TEXT",
		Short: "Continue a text with a trained model",
		Long: `Continue a text with a trained model. The text appears as it is generated, in whole
characters; a line at the end, on standard error, says how fast. The same command prints
the same text on the same CPU.

With --temperature 0 each token is the most likely one. Otherwise tokens are drawn by
their probabilities: those of the logits divided by the temperature, limited to the
--top-k most likely tokens and to the fewest that together have the probability --top-p.

--prompts reads many prompts, which are computed together: a line is a text or, in a file
that ends with .jsonl, a JSON string or an object with "prompt" and, instead of the flags,
"max_tokens", "temperature", "top_k", "top_p", "seed" and "stop". With -o json there is
one line per prompt, in their order:

  {"prompt": …, "text": …, "tokens": 12, "finish_reason": "stop" or "length"}

--chat takes the prompt as the message of a user, in the form of the chat template of
the tokenizer or of --chat-template; the text ends with the answer.`,
		Example: `  primus generate --checkpoint output/local/local/my_run --prompt 'func main() {'
  primus generate --checkpoint DIR --prompt Once --temperature 0 --max-tokens 50
  primus generate --checkpoint DIR --prompts questions.jsonl -o json > answers.jsonl
  primus generate --checkpoint DIR --chat --prompt 'Who are you?'`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.TopK = int(o.topK)
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), prog, cmd.InOrStdin())
		},
	}
	o.AddFlags(cmd, "checkpoint")
	flags := cmd.Flags()
	flags.StringVar(&o.prompt, "prompt", "", "continue this `TEXT`")
	flags.StringVar(&o.prompts, "prompts", "", "continue each prompt of a `FILE`, - for standard input")
	flags.BoolVar(&o.chat, "chat", false, "the prompt is the message of a user")
	flags.StringVar(&o.system, "system", "", "with --chat, the `TEXT` of a system message before it")
	flags.StringVar(&o.template, "chat-template", "", "with --chat, the `NAME` of a template, such as chatml, or a file with one, instead of the tokenizer's")
	flags.BoolVar(&o.echo, "echo", false, "print the prompt before its continuation")
	flags.BoolVar(&o.quiet, "quiet", false, "do not report the speed")
	flags.UintVar(&o.maxTokens, "max-tokens", 200, "generate at most `N` tokens; 0 is as many as fit")
	addSamplingFlags(flags, &o.Sampling, &o.topK)
	flags.StringArrayVar(&o.stop, "stop", nil, "end before this `TEXT`; may be repeated")
	flags.UintVar(&o.parallel, "parallel", 8, "compute `N` prompts of a file at once")
	o.output.AddFlag(cmd)
	cli.WithoutVariable(flags, "prompt", "prompts", "system", "chat-template", "echo", "quiet", "max-tokens", "stop", "parallel", "context")
	return cmd
}

// addSamplingFlags adds the flags that say how tokens are drawn.
func addSamplingFlags(flags *pflag.FlagSet, s *inference.Sampling, topK *uint) {
	flags.Float64Var(&s.Temperature, "temperature", 0.8, "divide the logits by this `NUMBER`; 0 takes the most likely token")
	flags.UintVar(topK, "top-k", 0, "draw from the `N` most likely tokens; 0 is all")
	flags.Float64Var(&s.TopP, "top-p", 1, "draw from the most likely tokens that together have this `PROBABILITY`")
	flags.Uint64Var(&s.Seed, "seed", 1234, "`NUMBER` that decides what is drawn")
	cli.WithoutVariable(flags, "temperature", "top-k", "top-p", "seed")
}

// check returns the first mistake in the flags.
func (o *generateOptions) check(cmd *cobra.Command) error {
	if err := o.Options.Check(cmd); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return cli.Usagef(cmd, "--%w", err)
	}
	switch {
	case o.prompt == "" && o.prompts == "":
		return cli.Usagef(cmd, "no prompt given, want --prompt TEXT or --prompts FILE")
	case o.prompt != "" && o.prompts != "":
		return cli.Usagef(cmd, "given --prompt and --prompts, want one of them")
	case (o.system != "" || o.template != "") && !o.chat:
		return cli.Usagef(cmd, "--system and --chat-template need --chat")
	case o.parallel == 0:
		return cli.Usagef(cmd, "--parallel: given 0, want at least one")
	}
	return nil
}

// generateRequest is a prompt with its parameters.
type generateRequest struct {
	Prompt string
	inference.Request
}

func (o *generateOptions) request(prompt string) generateRequest {
	return generateRequest{prompt, inference.Request{MaxTokens: int(o.maxTokens), Sampling: o.Sampling, Stop: o.stop}}
}

func (o *generateOptions) run(ctx context.Context, prog cli.Program, stdin io.Reader) error {
	requests := []generateRequest{o.request(o.prompt)}
	if o.prompts != "" {
		var err error
		if requests, err = o.read(stdin); err != nil {
			return err
		}
	}
	return o.Run(ctx, prog, func(m *inference.Loaded, mgr *opmanager.Manager) (err error) {
		var form *inference.Chat
		if o.chat {
			if form, err = inference.NewChat(ctx, m.Tokenizer, cmp.Or(o.template, m.ChatTemplate)); err != nil {
				return err
			}
		}
		for i := range requests {
			if err := o.encode(ctx, &requests[i], m.Tokenizer, form); err != nil {
				return o.at(i, err)
			}
		}
		slots := min(int(o.parallel), len(requests))
		e, err := inference.New(m.Model, m.Tokenizer, mgr, inference.Settings{Slots: slots, Capacity: int(o.Context), EOS: m.EOS})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		begin, made := time.Now(), 0
		if len(requests) == 1 && o.output.OutputFormat == cli.OutputText {
			made, err = o.stream(ctx, prog.Out, e, requests[0])
		} else {
			made, err = o.all(ctx, prog.Out, e, requests, slots)
		}
		if err != nil || o.quiet {
			return err
		}
		took := time.Since(begin)
		_, err = fmt.Fprintf(prog.Err, "%s in %v, %.1f tokens/s\n", plaintext.Quantity(made, "token", "tokens"), took.Round(time.Millisecond), float64(made)/took.Seconds())
		return err
	})
}

// encode sets the tokens of a prompt. In a conversation what ends an answer also ends the text.
func (o *generateOptions) encode(ctx context.Context, r *generateRequest, tok tokenizer.Tokenizer, form *inference.Chat) (err error) {
	if form == nil {
		r.Request.Prompt = inference.Prompt(tok, r.Prompt)
		return nil
	}
	messages := []chat.Message{{Role: "user", Content: r.Prompt}}
	if o.system != "" {
		messages = append([]chat.Message{{Role: "system", Content: o.system}}, messages...)
	}
	r.Stop = append(slices.Clip(r.Stop), form.Stop()...)
	r.Request.Prompt, err = form.Prompt(ctx, messages...)
	return err
}

// at adds the number of the prompt to an error if there are several.
func (o *generateOptions) at(i int, err error) error {
	if o.prompts == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: prompt %d: %w", o.prompts, i+1, err)
}

// stream prints a continuation as it comes.
func (o *generateOptions) stream(ctx context.Context, out io.Writer, e *inference.Engine, r generateRequest) (int, error) {
	prefix := ""
	if o.echo {
		prefix = r.Prompt
	}
	result, err := e.Generate(ctx, r.Request, func(event inference.Event) error {
		_, err := io.WriteString(out, prefix+event.Text)
		prefix = ""
		return err
	})
	if err != nil && len(result.IDs) == 0 {
		return 0, o.at(0, err)
	}
	_, newline := io.WriteString(out, prefix+"\n")
	return len(result.IDs), errors.Join(err, newline)
}

// generateLine is what -o json prints for a prompt.
type generateLine struct {
	Prompt string           `json:"prompt"`
	Text   string           `json:"text"`
	Tokens int              `json:"tokens"`
	Finish inference.Finish `json:"finish_reason"`
}

// all computes several prompts at once and prints the results in the order of the prompts, each as
// soon as those before it are there.
func (o *generateOptions) all(ctx context.Context, out io.Writer, e *inference.Engine, requests []generateRequest, parallel int) (made int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	results := make([]chan inference.Result, len(requests))
	for i := range results {
		results[i] = make(chan inference.Result, 1)
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel(nil)
	var next atomic.Int64
	for range parallel {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(requests); i = int(next.Add(1)) - 1 {
				got, err := e.Generate(ctx, requests[i].Request, nil)
				if err != nil {
					cancel(o.at(i, err))
					return
				}
				results[i] <- got
			}
		})
	}
	for i, r := range requests {
		select {
		case got := <-results[i]:
			made += len(got.IDs)
			if err := o.print(out, r, got); err != nil {
				return made, err
			}
		case <-ctx.Done():
			return made, context.Cause(ctx)
		}
	}
	return made, nil
}

func (o *generateOptions) print(out io.Writer, r generateRequest, got inference.Result) error {
	if o.output.OutputFormat == cli.OutputJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(generateLine{r.Prompt, got.Text, len(got.IDs), got.Finish})
	}
	if o.echo {
		got.Text = r.Prompt + got.Text
	}
	_, err := fmt.Fprintln(out, got.Text)
	return err
}
