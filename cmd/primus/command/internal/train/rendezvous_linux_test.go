package train_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// code waits for a process and returns its exit code.
func (j *job) code() int {
	err := j.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// A rank whose others do not come says for whom it waits and where, and ends in time, or when it is
// told to.
func TestRankAlone(t *testing.T) {
	needMPICH(t)
	for _, tt := range []struct {
		name   string
		rank   int
		args   []string
		signal syscall.Signal
		waits  string
		code   int
		end    string
	}{
		{"first, SIGTERM", 0, nil, syscall.SIGTERM, "rank 0 of 2 waits for rank 1; there: rank 0; rank 0 listens at 127.0.0.1:", 130, "interrupted before the first step"},
		{"second, SIGINT", 1, nil, syscall.SIGINT, "rank 1 of 2 waits for rank 0, which does not answer at 127.0.0.1:", 130, "interrupted before the first step"},
		{"first, late", 0, []string{"--rendezvous-timeout", "1s"}, 0, "", 1, "the ranks have not met within 1s (--rendezvous-timeout): rank 0 of 2 waits for rank 1"},
		{"second, late", 1, []string{"--rendezvous-timeout", "1s"}, 0, "", 1, "the ranks have not met within 1s (--rendezvous-timeout): rank 1 of 2 waits for rank 0, which does not answer at "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			j := start(t, l, place(tt.rank, "127.0.0.1", strconv.Itoa(primustest.FreePort(t))), append([]string{"train_iters=2"}, tt.args...)...)
			if tt.signal != 0 {
				j.WaitFor(tt.waits)
				require.NoError(t, j.Process.Signal(tt.signal))
			}
			assert.Equal(t, tt.code, j.code(), j.Log.String())
			assert.Contains(t, j.lastLine(), tt.end)
			if tt.signal != 0 && tt.rank == 0 {
				assert.Contains(t, j.Log.String(), ": no further step begins, and the run ends within 30s")
			}
		})
	}
}

// So does a node whose others do not come.
func TestNodeAlone(t *testing.T) {
	for node, waits := range []string{"node 0 of 2 waits for node 1; there: node 0; node 0 listens at 127.0.0.1:", "node 1 of 2 waits for node 0 at 127.0.0.1:"} {
		t.Run(strconv.Itoa(node), func(t *testing.T) {
			t.Parallel()
			j := start(t, commandtest.NewLab(t), nil, "--nodes", "2", "--nproc", "1", "--node-rank", strconv.Itoa(node), "--master-addr", "127.0.0.1", "--master-port", strconv.Itoa(primustest.FreePort(t)), "--rendezvous-timeout", "1s", "train_iters=2")
			assert.Equal(t, 1, j.code(), j.Log.String())
			assert.Contains(t, j.Log.String(), "primus: "+waits)
			assert.Contains(t, j.lastLine(), "the nodes have not met within 1s (--rendezvous-timeout): "+waits)
		})
	}
}

// Under a launcher of MPI, a rank that never calls MPI keeps the others waiting: they say for which
// one they wait, give up in time, and end when the launcher is told to.
func TestRankIsMissing(t *testing.T) {
	for launcher := range mpiLaunchers {
		for _, signal := range []syscall.Signal{0, syscall.SIGTERM} {
			t.Run(launcher+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				l := commandtest.NewLab(t)
				limit := "10m"
				if signal == 0 {
					limit = "7s"
				}
				j := newJob(t, l, launcher, []string{"2", "train_iters=2", "--rendezvous-timeout", limit})
				j.Args = append(j.Args, ":", "-np", "1", "sleep", "300")
				require.NoError(t, j.Start())
				j.WaitFor("rank 0 of 3 waits for rank 2; there: ranks 0-1; all ranks that ")
				j.WaitFor("rank 1 of 3 waits for rank 2; there: ranks 0-1; all ranks that ")
				if launcher == "openmpi" {
					assert.Regexp(t, `started meet in MPI_Init_thread at \d+\.\d+\.\d+\.\d+:\d+; given up after `, j.Log.String())
				}
				if signal != 0 {
					require.NoError(t, j.Process.Signal(signal))
				}
				code := j.code()
				if signal == 0 {
					assert.NotZero(t, code)
					assert.Contains(t, j.Log.String(), "the ranks have not met within 7s (--rendezvous-timeout)")
				} else { // mpirun of Open MPI shows nothing more, and mpiexec of MPICH returns 0
					assert.True(t, code != 0 || strings.Contains(j.Log.String(), "interrupted by SIGTERM: no further step begins"), j.Log.String())
				}
			})
		}
	}
}

// The first rank refuses whoever is not one of its job, and tells both sides why. A rank that dies
// ends those that wait.
func TestRendezvousOfStrangers(t *testing.T) {
	needMPICH(t)
	l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
	three := func(rank int) []string {
		return slices.Concat(place(rank, "127.0.0.1", port), []string{"WORLD_SIZE=3"})
	}
	first := start(t, l, three(0), "train_iters=2")
	second := start(t, commandtest.NewLab(t), three(1), "train_iters=2")
	first.WaitFor("waits for rank 2; there: ranks 0-1; ")
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{three(0), "there is a rank 0 already: two processes have the same number"},
		{three(1), "there is a rank 1 already: two processes have the same number"},
		{append(three(2), "WORLD_SIZE=4"), "given rank 2 of 4, want one of 3 ranks"},
	} {
		other := start(t, commandtest.NewLab(t), tt.env, "train_iters=2")
		assert.Equal(t, 1, other.code())
		assert.Contains(t, other.lastLine(), tt.want)
		first.WaitFor(tt.want)
	}
	require.NoError(t, second.Process.Kill())
	_ = second.Wait()
	assert.Equal(t, 1, first.code())
	assert.Contains(t, first.lastLine(), "rank 1 is gone: its connection is closed")
}

// The ranks meet at the address that is given, and nowhere else.
func TestRendezvousAddress(t *testing.T) {
	needMPICH(t)
	l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
	j := start(t, l, append(place(0, "127.0.0.1", port), "PRIMUS_MPI_ADDR=127.0.0.2", "PRIMUS_MPI_PORT="+port), "train_iters=2")
	j.WaitFor("rank 0 listens at 127.0.0.2:" + port)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	end := fmt.Sprintf(":%04X", number)
	var listens []string
	table, err := os.ReadFile("/proc/self/net/tcp")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); strings.HasSuffix(f[1], end) && f[3] == "0A" {
			listens = append(listens, f[1])
		}
	}
	assert.Equal(t, []string{"0200007F" + end}, listens)
	require.NoError(t, j.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 130, j.code())

	j = start(t, l, place(0, "192.0.2.1", port), "train_iters=2")
	assert.Equal(t, 1, j.code())
	assert.Contains(t, j.lastLine(), "MASTER_ADDR is not an address of this machine, on which rank 0 runs: PRIMUS_MPI_ADDR names the one to listen at")
}

// A rank that waits in a collective for one that is stopped says in which, and with whom.
func TestHangInACollective(t *testing.T) {
	needMPICH(t)
	l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
	var ranks []*job
	for rank := range 2 {
		ranks = append(ranks, start(t, l, place(rank, "127.0.0.1", port), append([]string{"--hang-timeout", "1s"}, endless...)...))
	}
	ranks[0].WaitFor("step 1/")
	require.NoError(t, ranks[1].Process.Signal(syscall.SIGSTOP))
	ranks[0].WaitFor(" with ranks 0-1; it is not ended (--on-hang warn)")
	assert.Regexp(t, `the run hangs in phase collective of step \d+, for .*, waiting for \S+ in collective all_\w+ \d+ of \d+ f\d\d .*with ranks 0-1; `, ranks[0].Log.String())
	assert.Regexp(t, `all_\w+ \d+ of \d+ f\d\d .*with ranks 0-1, entered \S+ ago, not left`, ranks[0].Log.String())
	for _, j := range ranks {
		require.NoError(t, j.Process.Kill())
		_ = j.Wait()
	}
}
