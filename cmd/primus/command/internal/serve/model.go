package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/models"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/serve/openai"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// modelServed are the flags of a model that is served.
type modelServed struct {
	dir, name, template               string
	load                              models.LoadOptions
	context, parallel, queue, threads uint
	invariant                         bool

	maxBody, bodyMemory, clientRequests, requestTokens uint
}

func (o *modelServed) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.dir, "model", "", "generate texts with the weights in `DIR`: a checkpoint, a run or a folder of Hugging Face")
	o.load.AddFlags(cmd)
	flags.StringVar(&o.name, "model-name", "", "the `NAME` of the model for clients; the default is that of its directory")
	flags.StringVar(&o.template, "chat-template", "", "the `NAME` of a chat template, such as chatml, or a file with one, instead of the tokenizer's")
	flags.UintVar(&o.context, "context", 0, "limit a text with its prompt to `N` tokens; 0 is what the model was made for, but at most 4096")
	flags.UintVar(&o.parallel, "parallel", 4, "generate `N` texts at once")
	flags.BoolVar(&o.invariant, "batch-invariant", false, fmt.Sprintf("give a text the same bits of log probabilities alone and beside others: at most %d texts at once, prompts take longer", inference.InvariantRows))
	flags.UintVar(&o.queue, "queue", 64, "let at most `N` texts wait; more are refused, those of the client with the most first")
	limits := openai.DefaultLimits()
	flags.UintVar(&o.maxBody, "max-body", uint(limits.Body), "refuse requests for texts whose body has more than `N` bytes")
	flags.UintVar(&o.bodyMemory, "body-memory", uint(limits.Bodies), "hold at most `N` bytes of bodies that are not tokens yet")
	flags.UintVar(&o.clientRequests, "client-requests", uint(limits.Requests), "refuse more than `N` requests of a client at once; a client is a token, or an address without one")
	flags.UintVar(&o.requestTokens, "request-tokens", 0, "limit all texts of a request with their prompts to `N` tokens; 0 is eight times --context")
	flags.UintVar(&o.threads, "threads", 0, "`N` CPU threads for ops; 0 is one per CPU")
	cli.WithoutVariable(flags, slices.Concat([]string{"chat-template", "context", "parallel", "queue", "batch-invariant"}, limitFlags)...)
}

// limitFlags are the flags of openai.Limits.
var limitFlags = []string{"max-body", "body-memory", "client-requests", "request-tokens"}

// check returns the first mistake in the flags.
func (o *modelServed) check(cmd *cobra.Command) error {
	for _, name := range slices.Concat([]string{"ema", "dtype", "device", "model-name", "chat-template", "context", "parallel", "queue", "batch-invariant"}, limitFlags) {
		if o.dir == "" && cmd.Flags().Changed(name) {
			return cli.Usagef(cmd, "--%s needs --model", name)
		}
	}
	if err := o.load.Check(cmd); err != nil {
		return err
	}
	if o.parallel == 0 || o.queue == 0 {
		return cli.Usagef(cmd, "--parallel and --queue: given 0, want at least one")
	}
	if o.invariant && o.parallel > inference.InvariantRows {
		return cli.Usagef(cmd, "--parallel: given %d, want at most %d with --batch-invariant", o.parallel, inference.InvariantRows)
	}
	if o.maxBody == 0 || o.clientRequests == 0 {
		return cli.Usagef(cmd, "--max-body and --client-requests: given 0, want at least one")
	}
	if o.bodyMemory < 2*o.maxBody || o.bodyMemory > math.MaxInt64/2 {
		return cli.Usagef(cmd, "--body-memory: given %d, want at least twice --max-body, %d", o.bodyMemory, 2*o.maxBody)
	}
	return nil
}

// find returns an error when there is no model to serve. The service has an address before the
// model is read.
func (o *modelServed) find(ctx context.Context) error {
	if o.dir == "" {
		return nil
	}
	folder, err := weights.Open(ctx, o.dir, o.load.Settings().Settings)
	if err != nil {
		return err
	}
	return folder.Close()
}

// handler returns the handler of the model, nil without one.
func (o *modelServed) handler() *openai.Handler {
	if o.dir == "" {
		return nil
	}
	absolute, err := filepath.Abs(o.dir)
	if err != nil {
		absolute = o.dir
	}
	return openai.New(cmp.Or(o.name, filepath.Base(absolute)), openai.Limits{
		Body: int(o.maxBody), Bodies: int(o.bodyMemory), Requests: int(o.clientRequests), Tokens: int(o.requestTokens),
	})
}

// modelParams are what a model needs of the graph.
type modelParams struct {
	fx.In
	Device  device.Backend
	Manager *opmanager.Manager
}

// observeModel exports the metrics of a model, if there is one.
func observeModel(h *openai.Handler) fx.Option {
	if h == nil {
		return fx.Options()
	}
	return fx.Invoke(func(lc fx.Lifecycle, reg prometheus.Registerer) error {
		m, err := metrics.NewInference(reg, h.Load)
		if err != nil {
			return err
		}
		h.Observe(m)
		lc.Append(fx.StopHook(m.Close))
		return nil
	})
}

// serve loads the model and gives it to the handler until ctx ends.
func (o *modelServed) serve(ctx context.Context, log *slog.Logger, p modelParams, h *openai.Handler) (err error) {
	m, err := inference.Load(ctx, o.dir, p.Device, o.load.Settings())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Model.Close()) }()
	e, err := inference.New(m.Model, m.Tokenizer, p.Manager, inference.Settings{
		Slots: int(o.parallel), Capacity: int(o.context), Queue: int(o.queue), EOS: m.EOS, BatchInvariant: o.invariant,
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", m.Path, err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	form, err := inference.NewChat(ctx, m.Tokenizer, cmp.Or(o.template, m.ChatTemplate))
	if err != nil && !errors.Is(err, inference.ErrNoChat) {
		return err
	}
	h.Open(e, form)
	if o.invariant {
		log.Info(fmt.Sprintf("log probabilities have the same bits in steps of 1 to %d tokens", inference.InvariantRows))
	}
	log.Info(fmt.Sprintf("model %s from %s: %d texts of %d tokens at once", h.Name(), m.Path, o.parallel, e.Settings().Capacity))
	<-ctx.Done()
	return nil
}
