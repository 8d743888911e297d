package native

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
)

// Bench computes training steps for measurements. Its steps are those of a run with the same
// parameters, on a batch of random tokens. It reads no data and writes no files. A Bench is not
// safe for concurrent use.
type Bench struct {
	e    engine
	step int
	last backend.Step
}

// standalone returns the context of a module that is not run by a session, with warnings about its
// parameters.
func standalone(m *config.Module) (*backend.TrainContext, []document.Warning, error) {
	tc := &backend.TrainContext{Framework: Framework, Module: m, Environ: backend.MapEnviron(map[string]string{})}
	args, warnings, err := adapter{}.ConvertConfig(tc)
	tc.Args = args
	return tc, warnings, err
}

// NewBench returns a Bench for a module that the native backend trains, with warnings about its
// parameters. Close releases its memory.
func NewBench(m *config.Module, manager *opmanager.Manager, dev device.Backend, log *slog.Logger) (*Bench, []document.Warning, error) {
	b, warnings, err := unbuilt(m, manager, log)
	if err != nil {
		return nil, warnings, err
	}
	if _, err := b.e.args.checkMemory(manager, dev, 1); err != nil {
		return nil, warnings, err
	}
	if err := b.e.build(dev); err != nil {
		return nil, warnings, errors.Join(err, b.e.close())
	}
	b.fill()
	return b, warnings, nil
}

// unbuilt returns a Bench that has allocated nothing.
func unbuilt(m *config.Module, manager *opmanager.Manager, log *slog.Logger) (*Bench, []document.Warning, error) {
	tc, warnings, err := standalone(m)
	if err != nil {
		return nil, warnings, err
	}
	args, err := newArgs(tc)
	if err != nil {
		return nil, warnings, err
	}
	b := &Bench{e: engine{args: args, manager: manager, log: log, world: world.New(nil, collective.Group{Ranks: 1})}}
	b.e.declarePoints(func(*model.Batch) error { return nil })
	return b, warnings, nil
}

// fill sets the batch to random tokens.
func (b *Bench) fill() { b.fillFrom(0) }

// fillFrom sets the batch to the random tokens of a stream.
func (b *Bench) fillFrom(stream uint64) {
	rng := rand.New(rand.NewPCG(uint64(b.e.args.Seed), stream))
	for i := range b.e.batch.Tokens {
		b.e.batch.Tokens[i] = rng.Int32N(int32(b.e.args.VocabSize))
	}
}

// ExpectedCalls returns the calls that training a module makes, for Manager.Expect, with warnings
// about its parameters: on one rank, or on the smallest number of ranks that can train it. Nothing
// is computed, and memory is reserved without being used.
func ExpectedCalls(m *config.Module, manager *opmanager.Manager, dev device.Backend, log *slog.Logger) (calls []opmanager.ExpectedCall, warnings []document.Warning, err error) {
	b, warnings, err := unbuilt(m, manager, log)
	if err != nil {
		return nil, warnings, err
	}
	e := &b.e
	ranks := e.args.leastRanks()
	if e.args.MicroBatchSize, err = e.args.microBatchOn(ranks); err != nil {
		return nil, warnings, err
	}
	e.batch = model.NewBatch(e.args.GlobalBatchSize, e.args.SeqLength)
	b.fill()
	each := ranks / e.args.StageRanks()
	for first := 0; first < ranks; first += each {
		for _, rank := range slices.Compact([]int{first, first + each - 1}) { // the last one may have smaller parts
			of, err := e.plannedCalls(collective.Group{Rank: rank, Ranks: ranks}, dev, e.batch, e.batch.Tokens[:min(8, e.args.SeqLength/2)])
			if err != nil {
				return nil, warnings, err
			}
			calls = append(calls, of...)
		}
	}
	return calls, warnings, nil
}

// Args returns the parameters of the steps.
func (b *Bench) Args() Args { return *b.e.args }

// Step computes the next step: forward and backward over the global batch, clipping and AdamW. It
// returns the mean loss in nats per token. If ctx ends before the weights change, Step stops and
// returns the error of ctx.
func (b *Bench) Step(ctx context.Context) (loss float64, err error) {
	b.step++
	s := backend.Step{Step: b.step, LR: b.e.points.schedule.Func()(b.step)}
	err = b.e.train(ctx, &s)
	if errors.Is(err, errGivenUp) {
		err = ctx.Err()
	}
	b.last = s
	return s.Loss, err
}

// Last returns the record of the last step.
func (b *Bench) Last() backend.Step { return b.last }

// ValidLoss returns the loss of the present weights for a micro batch of other random tokens.
func (b *Bench) ValidLoss() (float64, error) {
	b.fillFrom(1)
	defer b.fill()
	loss, _, err := b.e.plainLoss(b.e.batch.Slice(0, b.e.args.MicroBatchSize))
	return loss, err
}

// Close releases the memory.
func (b *Bench) Close() error { return b.e.close() }
