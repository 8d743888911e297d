package graph

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/backends/dummy"
	"github.com/primus-fl/primus/internal/backends/maxdiffusion"
	"github.com/primus-fl/primus/internal/backends/maxtext"
	"github.com/primus-fl/primus/internal/backends/megatron"
	"github.com/primus-fl/primus/internal/backends/megatronbridge"
	"github.com/primus-fl/primus/internal/backends/torchtitan"
	"github.com/primus-fl/primus/internal/isa"
	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/internal/native/patches"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/vendors/clblast"
	"github.com/primus-fl/primus/vendors/gonum"
	"github.com/primus-fl/primus/vendors/mpi"
	"github.com/primus-fl/primus/vendors/onednn"
	"github.com/primus-fl/primus/vendors/openblas"
	vendorsopencl "github.com/primus-fl/primus/vendors/opencl"
	"go.uber.org/fx"
)

// opSources lists the sources of ops that are compiled in.
func opSources() fx.Option {
	mpiLibrary := func(set Config) *mpi.Library {
		return mpi.New(mpi.Options{Names: libraryFiles("PRIMUS_MPI"), Lost: func(err error) {
			text := fmt.Sprintf("the run cannot go on: %v", err)
			if set.Interrupted != nil && set.Interrupted() { // as were the others
				set.Log.Info(text)
				os.Exit(cli.ExitInterrupted)
			}
			left := elastic.WriteError(os.Getenv(elastic.EnvErrorFile), elastic.RankError{Message: text, Follows: true})
			if left == nil && os.Getenv(elastic.EnvPrints) != "" {
				backend.Detail(set.Log, text) // the program that started the ranks prints one error for all
			} else {
				set.Log.Error(text)
			}
			os.Exit(1) // a call of MPI may wait for the other rank without end
		}, Warn: func(err error) { set.Log.Warn(err.Error()) }})
	}
	return fx.Options(fx.Provide(mpiLibrary), provideGroup("op_sources",
		portable,
		reference.Source,
		gonum.Source,
		func(set Config) opregistry.Source {
			return openblas.New(openblas.Options{Threads: set.Threads, Names: libraryFiles("PRIMUS_OPENBLAS")}).Source()
		},
		func(set Config) opregistry.Source {
			return onednn.New(onednn.Options{Threads: set.Threads, Names: libraryFiles("PRIMUS_ONEDNN")}).Source()
		},
		(*mpi.Library).Source,
		func(set Config, use *deviceInUse, b *opencl.Backend) opregistry.Source {
			return set.probed(use, vendorsopencl.Source(), func() error {
				if b.Usable() != nil {
					return errors.New("there is no OpenCL device: primus devices list says what was looked for")
				}
				return nil
			})
		},
		func(set Config, use *deviceInUse) opregistry.Source {
			lib := clblast.New(clblast.Options{Names: libraryFiles("PRIMUS_CLBLAST")})
			return set.probed(use, lib.Source(), lib.Available)
		},
	))
}

// portable returns the source of the impls that come with the program, whose kernels use the chosen
// instruction set until the graph stops.
func portable(lc fx.Lifecycle, set Config) (opregistry.Source, error) {
	choice, err := InstructionSet(set.Module)
	if err != nil {
		return opregistry.Source{}, cli.UsageError{Err: err}
	}
	lc.Append(fx.StopHook(choice.Apply()))
	return flagos.Source(), nil
}

// InstructionSet chooses what the kernels of the impls that come with the program use. m is the
// module that is trained, nil for none.
func InstructionSet(m *config.Module) (isa.Choice, error) {
	s := isa.Settings{Want: os.Getenv(isa.Env), Fixed: dispatch.Deterministic(m), Rate: gemm.PairRate}
	if dir, err := os.UserCacheDir(); err == nil {
		s.Cache = filepath.Join(dir, "primus", "isa.json")
	}
	return isa.Choose(s)
}

// probed returns a source of impls for devices. Whether they can run is asked if the command wants
// to know. A process that computes on the CPU has no use for them, one that computes on a device
// has found it already, and others need not open a driver.
func (set Config) probed(use *deviceInUse, s opregistry.Source, available func() error) opregistry.Source {
	if !set.ProbeDevices {
		available = func() error {
			if use.device != nil && use.device.Name() == cpu.New().Name() {
				return fmt.Errorf("%w: this process computes on the CPU", opregistry.ErrNotNeeded)
			}
			return nil
		}
	}
	for i := range s.Impls {
		s.Impls[i].Available = available
	}
	return s
}

// libraryFiles returns the files that a variable names in place of the system's library, nil when
// it is not set.
func libraryFiles(variable string) []string {
	if files := os.Getenv(variable); files != "" {
		return filepath.SplitList(files)
	}
	return nil
}

// backendModules lists the training backends that are compiled in, with their patches.
func backendModules() fx.Option {
	return fx.Options(
		dummy.Module, maxdiffusion.Module, maxtext.Module, megatron.Module, megatronbridge.Module, native.Module, patches.Module, torchtitan.Module,
	)
}

// deviceBackends lists the device backends that are compiled in.
func deviceBackends() fx.Option {
	newOpenCL := func(lc fx.Lifecycle) *opencl.Backend {
		b := opencl.New(opencl.Options{Files: libraryFiles("PRIMUS_OPENCL"), Cache: programCache()})
		lc.Append(fx.StopHook(func() { _ = b.Close() })) // for commands without the registry of devices, which closes it, too
		return b
	}
	return fx.Options(fx.Provide(newOpenCL), provideGroup("devices",
		func() device.Backend { return cpu.New() },
		func(b *opencl.Backend) device.Backend { return b },
	))
}

// programCache returns the folder for programs that were built for a device; "" when the user has
// no folder for caches.
func programCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "primus", "opencl")
}

// provideGroup provides one value of a group for each constructor.
func provideGroup(group string, constructors ...any) fx.Option {
	options := make([]fx.Option, len(constructors))
	for i, c := range constructors {
		options[i] = fx.Provide(fx.Annotate(c, fx.ResultTags(`group:"`+group+`"`)))
	}
	return fx.Options(options...)
}
