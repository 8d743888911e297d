//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// rankPolicy lets MPI serve collectives.
const rankPolicy = "allow_vendors: [chaos, openmpi, mpich]\nprotect_in_place: true\n"

// rankLaunchers are the ways in which the two ranks of a job are started: the words before the
// command line of primus, nil for this program itself, and the arguments after it.
var rankLaunchers = []struct {
	name          string
	before, after []string
}{
	{name: "variables of torchrun"},
	{name: "--nproc", after: []string{"--nproc", "2"}},
	{name: "mpirun of Open MPI", before: []string{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-np", "2"}},
	{name: "mpiexec of MPICH", before: []string{"mpiexec.hydra", "-np", "2"}},
}

// startRanks starts a job with a launcher of rankLaunchers. The variables of torchrun have a
// process for each of the first ranks, any other launcher is one process.
func (l *lab) startRanks(ctx context.Context, launcher, ranks int, more ...string) ([]*process, error) {
	with := rankLaunchers[launcher]
	args := append(l.command(append([]string{"--threads", "1"}, more...)...), with.after...)
	if with.before != nil || with.after != nil {
		line := append([]string{self()}, args...)
		if with.before != nil {
			line = append(append(with.before[:len(with.before):len(with.before)], self()), args...)
		}
		path, err := exec.LookPath(line[0])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSkip, err)
		}
		p, err := l.launch(ctx, func(cmd *exec.Cmd) { cmd.Path, cmd.Args = path, line })
		return []*process{p}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // it has one
	if err := listener.Close(); err != nil {
		return nil, err
	}
	var all []*process
	for rank := range ranks {
		p, err := l.launch(ctx, func(cmd *exec.Cmd) {
			cmd.Args = append(cmd.Args, args...)
			cmd.Env = append(cmd.Env, "RANK="+strconv.Itoa(rank), "WORLD_SIZE=2", "LOCAL_RANK="+strconv.Itoa(rank), "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "PRIMUS_MPI_PORT="+port)
		})
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// rankPhases are the phases of a job in which it is interrupted, some milliseconds after a text.
var rankPhases = []struct {
	name, text string
	ranks      int // that are started by variables
	args       []string
}{
	// mpiexec of MPICH loses signals of its first tenth of a second and may then serve no rank.
	{"start", "", 2, []string{"--rendezvous-timeout", "30s"}},
	{"rendezvous", "", 1, nil},
	{"training", "step 3/", 2, nil},
	{"saving", "saved checkpoint step=2", 2, nil},
	{"evaluation", "step 3/", 2, []string{"eval_iters=100000"}},
}

// interruption is a signal for a job of two ranks.
type interruption struct {
	phase, launcher int
	signal          os.Signal
}

// interruptions are all that there are. One rank waits for the other at the rendezvous only where
// variables start them.
func interruptions() []interruption {
	var all []interruption
	for phase, at := range rankPhases {
		for launcher := range rankLaunchers {
			if at.ranks == 2 || launcher == 0 {
				all = append(all, interruption{phase, launcher, syscall.SIGINT}, interruption{phase, launcher, syscall.SIGTERM})
			}
		}
	}
	return all
}

func (i interruption) String() string {
	return fmt.Sprintf("%v in %s, ranks by %s", i.signal, rankPhases[i.phase].name, rankLaunchers[i.launcher].name)
}

// interruptRanks sends a signal to a job of two ranks in one of its phases. All its processes have
// to end, and the job has to go on from what it has saved.
func interruptRanks(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	if _, err := exec.LookPath("mpiexec.hydra"); err != nil {
		return 0, fmt.Errorf("%w: no MPICH", errSkip)
	}
	all := interruptions()
	if !l.sweep {
		return 1, l.interrupt(ctx, all[random.IntN(len(all))], random)
	}
	var broken []error
	for n, i := range all {
		each, err := l.newLab(fmt.Sprintf("ranks-each-%d", n))
		if err == nil {
			err = each.interrupt(ctx, i, random)
		}
		broken = append(broken, err)
	}
	return len(all), errors.Join(broken...)
}

// interrupt sends a signal to a job. A process that no launcher of MPI has started ends with 130,
// unless it had done its work, or expected no signals yet.
func (l *lab) interrupt(ctx context.Context, i interruption, random *rand.Rand) error {
	if err := l.setPolicy(rankPolicy); err != nil {
		return err
	}
	l.args = []string{"log_interval=1"}
	at := rankPhases[i.phase]
	all, err := l.startRanks(ctx, i.launcher, at.ranks, at.args...)
	if err != nil {
		return err
	}
	all[0].Reach(at.text)
	time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	for _, p := range all {
		if p.Running() {
			p.Process.Process.Signal(i.signal)
		}
	}
	for _, p := range all {
		code, failed := p.wait()
		early := code == -1 && at.text == ""
		if failed == nil && code != 130 && code != 0 && !early && rankLaunchers[i.launcher].before == nil {
			failed = fmt.Errorf("exit code %d, want 130\n%s", code, p.Tail())
		}
		err = errors.Join(err, failed)
	}
	if err == nil {
		err = l.ranksGoOn(ctx)
	}
	if err != nil {
		err = fmt.Errorf("after %v: %w", i, err)
	}
	return err
}

// ranksGoOn lets two ranks finish the run, and compares its losses with those of an undisturbed
// job.
func (l *lab) ranksGoOn(ctx context.Context) error {
	want := l.rankLosses
	if want == nil {
		calm, err := l.newLab("ranks-undisturbed")
		if err != nil {
			return err
		}
		calm.args = l.args
		if err := errors.Join(calm.setPolicy(rankPolicy), calm.finishRanks(ctx)); err != nil {
			return err
		}
		if want, err = calm.losses(); err != nil {
			return err
		}
		l.rankLosses = want
	}
	if err := l.finishRanks(ctx); err != nil {
		return err
	}
	got, err := l.losses()
	if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
		err = fmt.Errorf("the losses are %v, want %v", got, want)
	}
	return err
}

// finishRanks lets two ranks train to the end.
func (l *lab) finishRanks(ctx context.Context) error {
	all, err := l.startRanks(ctx, 1, 2)
	if err != nil {
		return err
	}
	code, err := all[0].wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("the job does not go on: exit code %d\n%s", code, all[0].Tail())
	}
	return err
}
