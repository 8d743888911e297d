package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/stepbench"
	"github.com/primus-fl/primus/internal/tuning"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
)

// What --tune auto may take of a run: this share, but no more than some seconds. Below the least
// time, or if it is too short for some steps, nothing is measured.
const (
	autoShare = 0.02
	autoMost  = 20 * time.Second
	autoLeast = time.Second
)

// tuneFirst replaces --tune auto with the file of an earlier run of these parameters on this
// machine, or measures now and keeps the result for later runs.
func tuneFirst(ctx context.Context, prog cli.Program, opts *Options, module *config.Module, place ranks, log *slog.Logger) error {
	if opts.Tune() != dispatch.TuneAuto {
		return nil
	}
	opts.SetTune(dispatch.TuneOff)
	if module.Framework != native.Framework {
		return cli.UsageError{Err: fmt.Errorf("--tune auto: framework %s calls no ops of primus", module.Framework)}
	}
	file, err := tunedFile(opts, module)
	if err != nil {
		return err
	}
	// The steps are made with what is only warned of when the run itself begins.
	quiet := slog.New(slog.DiscardHandler)
	err = opts.StepsOf(ctx, prog, quiet, module, func(p experiments.StepParams) error {
		if why := p.Policy.TuningHasNoEffect(); why != "" {
			if !place.follows() {
				log.Warn("--tune auto: nothing is measured, because " + why)
			}
			return nil
		}
		here := tuning.ThisMachine(p.Registry.Snapshot(), p.Exec.Pool().Workers())
		known, err := tuning.Read(file)
		if err == nil {
			err = known.Check(file, here)
		}
		if err == nil {
			log.Info("impls are chosen by " + file)
			opts.SetTune(file)
			return nil
		}
		if place.follows() {
			return nil // the first rank says it
		}
		if place.WorldSize > 1 {
			if errors.Is(err, fs.ErrNotExist) {
				err = errors.New("no earlier run of one process has left a file")
			}
			log.Warn(fmt.Sprintf("--tune auto: not used, because ranks do not measure: make a file with primus ops tune and give it to all ranks (%v)", err))
			return nil
		}
		return measureFirst(ctx, opts, p, file, log)
	})
	if err != nil {
		return fmt.Errorf("--tune auto: %w", err)
	}
	return nil
}

// tunedFile returns where the choices for a module are kept.
func tunedFile(opts *Options, module *config.Module) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("--tune auto: no place for its result: %w; set XDG_CACHE_HOME, or use --tune FILE", err)
	}
	text, err := json.Marshal([]any{stepbench.ParamsOfCalls(module), opts.Threads})
	if err != nil {
		return "", fmt.Errorf("--tune auto: %w", err)
	}
	sum := sha256.Sum256(text)
	return filepath.Join(dir, "primus", "tuning", hex.EncodeToString(sum[:8])+".json"), nil
}

// writableCache makes the directory of the file. It is asked before the measurements.
func writableCache(file string) error {
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = durable.CheckFileWritable(file)
	}
	if err != nil {
		return fmt.Errorf("no place for its result: %w; set XDG_CACHE_HOME to a directory that can be written, or use --tune FILE", durable.Explain(err))
	}
	return nil
}

// measureFirst measures within the budget and keeps the choices.
func measureFirst(ctx context.Context, opts *Options, p experiments.StepParams, file string, log *slog.Logger) error {
	if err := writableCache(file); err != nil {
		return err
	}
	begin := time.Now()
	made, err := stepbench.Tune(ctx, stepbench.TuneSettings{
		Module: p.Module, Manager: p.Manager, Ops: p.Registry.Snapshot(), Device: p.Device, Log: p.Log,
		Budget: func(steps int, step time.Duration) time.Duration {
			budget := min(time.Duration(autoShare*float64(steps)*float64(step)), autoMost)
			elapsed := time.Since(begin) // to make the model and its first steps
			if least := elapsed + max(autoLeast, stepbench.MinSteps*step); budget < least {
				log.Info(fmt.Sprintf("--tune auto: nothing is measured, because %.0f %% of the run is only %v, and %v are needed", 100*autoShare, budget.Round(time.Millisecond), least.Round(time.Millisecond)))
				return 0
			}
			log.Info(fmt.Sprintf("--tune auto: measuring impls for %v, %.0f %% of the run", (budget - elapsed).Round(time.Second/10), 100*autoShare))
			return budget - elapsed
		},
	})
	if errors.Is(err, stepbench.ErrDevice) {
		log.Warn(fmt.Sprintf("--tune auto: nothing is measured: %v", err))
		return nil
	}
	if err != nil || made == nil {
		return err
	}
	if err := made.Write(file); err != nil {
		return err
	}
	log.Info(fmt.Sprintf("measured the impls of %d calls in %v; impls are chosen by %s", len(made.Entries), time.Since(begin).Round(time.Second/10), file))
	opts.SetTune(file)
	return nil
}
