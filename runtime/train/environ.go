package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/runtime/backend"
)

// envHFHome is the variable for the directory in which the libraries of Hugging Face keep models
// and datasets.
const envHFHome = "HF_HOME"

// envPolicy begins the names of variables that hold a dispatch policy.
const envPolicy = "TE_FL_"

// environment sets the variables of the experiment's env block and HF_HOME, and reads the place of
// this process in the job.
func (r *session) environment() error {
	env, log := r.tc.Environ, r.tc.Log
	var faults []error
	for name, v := range r.s.Experiment.Env.All() {
		path := "env." + name
		switch v.Kind() {
		case document.KindNull:
			log.Warn(document.Warning{Origin: v.Origin(), Path: path, Message: "null sets nothing", Hint: `write "" for an empty variable`}.String())
			continue
		case document.KindList, document.KindMap:
			faults = append(faults, &document.Error{Origin: v.Origin(), Path: path, Problem: "given a " + v.Kind().String() + ", want the text of a variable"})
			continue
		}
		value := env.Expand(v.Text())
		if err := env.Set(name, value, "env block of the experiment"); err != nil {
			faults = append(faults, err)
			continue
		}
		if strings.HasPrefix(name, envPolicy) && !r.factory.Launches {
			log.Warn(document.Warning{
				Origin: v.Origin(), Path: path, Message: "the dispatch policy of this process is already made, so the variable has no effect on it",
				Hint: "write the parameter " + strings.ToLower(name) + " in the module",
			}.String())
		}
		log.Info(fmt.Sprintf("[Primus:Runtime] env override: %s=%s", name, secret.Shown(name, value)))
	}
	if err := errors.Join(faults...); err != nil {
		return &configError{err}
	}
	if home, set := env.Lookup(envHFHome); set {
		log.Debug("[Primus:Env] HF_HOME already set: " + home)
	} else {
		home = filepath.Join(r.tc.DataPath, "huggingface")
		if err := env.Set(envHFHome, home, "data path"); err != nil {
			return err
		}
		log.Debug("[Primus:Env] Set HF_HOME=" + home)
	}
	if err := r.launchOptions(); err != nil {
		return &configError{err}
	}
	d, err := backend.ReadDistributed(env)
	if err != nil {
		return err
	}
	r.tc.Distributed = d
	r.tc.Log = OfRank(log, d.Rank)
	backend.Detail(r.tc.Log, fmt.Sprintf("[Primus:Env] rank=%d, world_size=%d, local_rank=%d, master=%s:%d",
		d.Rank, d.WorldSize, d.LocalRank, d.MasterAddr, d.MasterPort))
	return nil
}

// launchOptions completes the options of the launcher, and sets the variables that tell the
// framework about the nodes.
func (r *session) launchOptions() error {
	given := r.s.Launch
	if !r.factory.Launches {
		_, local, err := launch.Chain(given.Launcher)
		if err == nil && local != launch.Direct {
			err = fmt.Errorf("--launcher: given %s, but framework %s trains in this process", given.Launcher, r.factory.Framework)
		}
		return err
	}
	options, err := given.Resolve(r.tc.Environ.Lookup)
	if err != nil {
		return err
	}
	options.Grace = r.s.Grace
	r.tc.Launch = options
	if options.Nodes == 1 {
		return nil
	}
	var faults []error
	for _, v := range [][2]string{
		{"NNODES", strconv.Itoa(options.Nodes)}, {"NODE_RANK", strconv.Itoa(options.NodeRank)},
		{"MASTER_ADDR", options.MasterAddr}, {"MASTER_PORT", strconv.Itoa(options.MasterPort)},
	} {
		faults = append(faults, r.tc.Environ.Set(v[0], v[1], "launcher"))
	}
	return errors.Join(faults...)
}

// makeDataDirs makes the directories of a framework that reads datasets or models.
func (r *session) makeDataDirs() error {
	if _, uses := r.tc.Adapter.(backend.DataUser); !uses {
		return nil
	}
	for _, dir := range []string{r.tc.DataPath, r.tc.Environ.Get(envHFHome, r.tc.DataPath)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}

// OfRank returns the log of a rank that begins to write to log. Of ranks but the first it has the
// warnings and errors only, with their rank, however often it is passed to OfRank.
func OfRank(log *slog.Logger, rank int) *slog.Logger {
	if h, ok := log.Handler().(onlyProblems); rank == 0 || ok && h.rank == rank {
		return log
	}
	return slog.New(onlyProblems{log.Handler(), rank})
}

// onlyProblems logs warnings and errors only, with their rank. The first rank logs the rest.
type onlyProblems struct {
	slog.Handler
	rank int
}

// Enabled implements slog.Handler.
func (h onlyProblems) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h onlyProblems) Handle(ctx context.Context, record slog.Record) error {
	if h.rank > 0 {
		record.Message = fmt.Sprintf("[rank %d] %s", h.rank, record.Message)
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h onlyProblems) WithAttrs(attrs []slog.Attr) slog.Handler {
	return onlyProblems{h.Handler.WithAttrs(attrs), h.rank}
}

// WithGroup implements slog.Handler.
func (h onlyProblems) WithGroup(name string) slog.Handler {
	return onlyProblems{h.Handler.WithGroup(name), h.rank}
}

var _ slog.Handler = onlyProblems{}
