//go:build unix

package train_test

import (
	"context"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
)

// roleHang is primus with an impl of swiglu that hangs in the first call after the run has saved
// the checkpoint that hangVariable names.
const (
	roleHang     = "hang"
	hangVariable = "PRIMUS_TEST_HANG_AFTER"
)

func hanging(args []string) int {
	var source opregistry.Source
	for _, impl := range flagos.Source().Impls {
		run, ok := impl.Run.(opregistry.Func[activation.SwiGLUArgs])
		if !ok {
			continue
		}
		if impl.Op.Name() != activation.SwiGLU.Name() {
			continue
		}
		impl.ID, impl.Kind, impl.Vendor = "vendor.stuck", opregistry.KindVendor, "stuck"
		impl.Run = opregistry.Func[activation.SwiGLUArgs](func(x *opregistry.Exec, a activation.SwiGLUArgs) error {
			if _, err := os.Stat(os.Getenv(hangVariable)); err == nil {
				hangHere()
			}
			return run(x, a)
		})
		source.Impls = append(source.Impls, impl)
	}
	source.Name = "stuck"
	return command.Main(args, command.StandardStreams(), fx.Supply(fx.Annotate(source, fx.ResultTags(command.OpSources))))
}

// hangHere never returns.
func hangHere() { select {} }

// roles plays a role of the tests of this package.
func roles(role string, args []string) int {
	if role == roleHang {
		return hanging(args)
	}
	return mounted(role, args)
}

// startHanging starts a run that hangs in a call of swiglu in step 5.
func startHanging(t *testing.T, l *commandtest.Lab, more ...string) *primustest.Program {
	t.Helper()
	env := []string{hangVariable + "=" + l.Path("checkpoints", "step-00000004"), commandtest.RoleEnv + "=" + roleHang, "TE_FL_PER_OP=swiglu=vendor:stuck"}
	args := append([]string{"save_interval=2", "async_save=false", "train_iters=1000"}, more...)
	run := l.Program(commandtest.Child(t.Context(), env, l.Args(args...)...))
	require.NoError(t, run.Start())
	return run
}

// A run that hangs says where, answers that it is not ready, and ends with code 3 if that is asked
// for; the last checkpoint is whole.
func TestHangIsEnded(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	t.Parallel()
	l, addr := commandtest.NewLab(t), primustest.FreeAddress(t)
	run := startHanging(t, l, "--hang-timeout", "300ms", "--on-hang", "abort", "--grace", "2s", "--serve", addr)
	run.WaitFor("the run hangs in phase forward of step ")
	assert.Equal(t, http.StatusServiceUnavailable, status(t, "http://"+addr+"/readyz"))
	assert.Equal(t, http.StatusOK, status(t, "http://"+addr+"/healthz"))
	assert.Equal(t, 3, commandtest.ExitCode(t, run.Wait()))
	log := run.Log.String()
	assert.Contains(t, log, ", in op swiglu on vendor.stuck")
	assert.Contains(t, log, "it is ended with exit code 3 in 2s unless it goes on (--on-hang abort)")
	assert.Contains(t, log, "train_test.hangHere(", "the stack of the goroutine that trains")
	assert.Contains(t, log, "primus: error: the run hangs in phase forward of step ")
	require.Len(t, l.Checkpoints(), 2)
	assert.Zero(t, l.Train("train_iters=20").Code)
}

// A signal ends a run that hangs when the grace period is over.
func TestSignalEndsAHang(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	run := startHanging(t, l, "--hang-timeout", "300ms", "--grace", "1s")
	run.WaitFor("it is not ended (--on-hang warn)")
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	assert.Contains(t, run.Log.String(), "primus: interrupted, and not ended 1s later: exit at once")
	require.Len(t, l.Checkpoints(), 2)
	assert.Zero(t, l.Train("train_iters=20").Code)
}

func status(t *testing.T, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}
