package train_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rank that dies ends the job.
func TestKilledRank(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	for launcher, m := range mpiLaunchers {
		for rank := range 2 {
			t.Run(fmt.Sprintf("%s/%d", launcher, rank), func(t *testing.T) {
				l := commandtest.NewLab(t)
				j := newJob(t, l, launcher, []string{"2", "train_iters=1000000", "save_interval=1", "exp_name=exp"})
				j.started(t)
				j.WaitFor("saved checkpoint step=3")
				require.NoError(t, syscall.Kill(j.process(t, m.rank, rank), syscall.SIGKILL))
				j.fails(t)
				trained := l.Records()
				saved := l.Checkpoints()
				require.NotEmpty(t, saved)
				last, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(saved[len(saved)-1]), "step-"))
				require.NoError(t, err)
				assert.GreaterOrEqual(t, last, trained[len(trained)-1].Step-2, "the save of the step before may have been on its way")
			})
		}
	}
}

// A rank that is killed in the middle of a save, in which all ranks write, leaves the save before
// it, and the run goes on from there.
func TestRankKilledInASave(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	for rank := range 2 {
		t.Run(strconv.Itoa(rank), func(t *testing.T) {
			l := commandtest.NewLab(t)
			j := newJob(t, l, "openmpi", []string{"2", "train_iters=1000000", "save_interval=1", "use_distributed_optimizer=true", "exp_name=exp"})
			j.started(t)
			j.WaitFor("saved checkpoint step=2")
			pid := j.process(t, mpiLaunchers["openmpi"].rank, rank)
			begun := l.Path("checkpoints", "step-*.tmp*", "optimizer.safetensors")
			for found := []string(nil); len(found) == 0; { // it is there for milliseconds
				var err error
				found, err = filepath.Glob(begun)
				require.NoError(t, err)
				require.NoError(t, syscall.Kill(pid, 0), "the end of the rank, want a save in %s: %s", begun, &j.Log)
			}
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			require.Error(t, j.Wait())
			records, saved := l.Records(), l.Checkpoints()
			require.NotEmpty(t, saved)
			last := filepath.Base(saved[len(saved)-1])
			step := records[len(records)-1].Step
			assert.GreaterOrEqual(t, last, fmt.Sprintf("step-%08d", step-2), "the save of the step before was on its way")
			trainRanks(t, l, "openmpi", 2, fmt.Sprintf("train_iters=%d", step+1), "use_distributed_optimizer=true", "exp_name=exp")
			assert.Equal(t, step+1, l.Records()[len(l.Records())-1].Step)
		})
	}
}

// An interrupt of the launcher ends all ranks at one step, which is saved.
func TestInterruptedRanks(t *testing.T) {
	for launcher := range mpiLaunchers {
		t.Run(launcher, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			// mpirun reads no lines after an interrupt, so there must not be many.
			j := newJob(t, l, launcher, []string{"2", "train_iters=1000000", "log_interval=1000000"})
			j.Env = append(j.Env, "OMPI_MCA_odls_base_sigkill_timeout=8") // before SIGTERM and after it, by default 1 s
			j.started(t)
			require.NoError(t, j.Process.Signal(os.Interrupt))
			if err := j.Wait(); launcher != "mpich" { // its mpiexec ends with 0 when an interrupt reaches it late
				require.Error(t, err)
			}
			records, saved := l.Records(), l.Checkpoints()
			require.Len(t, saved, 1, j.Log.String())
			assert.Equal(t, fmt.Sprintf("step-%08d", records[len(records)-1].Step), filepath.Base(saved[0]))
			assert.False(t, math.IsNaN(records[0].Loss))
		})
	}
}
