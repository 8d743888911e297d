package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/procgroup"
)

// Settings are the settings of Run.
type Settings struct {
	Environ []string               // environment of the processes; nil means that of this process
	Show    func(who, line string) // prints a line on the terminal
	// Line is called with every line of every rank. If it returns true, the terminal does not show the
	// line.
	Line func(rank int, line string) (taken bool)
	Log  func(text string) // logs what the launcher does

	// Stalled is called when the job hangs, and Resumed when it goes on. They may be nil.
	Stalled func(text string, silent time.Duration)
	Resumed func()
}

// Fixed times.
const (
	afterFailure = 5 * time.Second // for the other ranks to end after one has failed
	afterExit    = 2 * time.Second // for the children of a process that has ended to close its output
	hangCheck    = 250 * time.Millisecond
)

// group is the processes of a plan while they run.
type group struct {
	plan    *Plan
	set     Settings
	out     *output
	leader  int           // the process group
	mark    string        // a variable of all processes of the job
	started chan struct{} // closed when no further process will be started
	ended   chan exit
	readers sync.WaitGroup
	pipes   []*os.File
	ranks   []*rankPipe // of the ranks that torchrun starts
	begun   []*exec.Cmd
	exits   []exit // in the order in which the processes ended
	done    chan struct{}
}

// exit is the end of a process.
type exit struct {
	process Process
	state   *os.ProcessState
}

// Run writes the files of a plan, starts its processes and returns when all have ended. When a rank
// fails, Run ends the others and returns a *Failure. When ctx ends, Run ends the processes and
// returns the cause of ctx.
func Run(ctx context.Context, plan *Plan, set Settings) (err error) {
	if set.Environ == nil {
		set.Environ = os.Environ()
	}
	if set.Log == nil {
		set.Log = func(string) {}
	}
	if set.Stalled == nil {
		set.Stalled = func(string, time.Duration) {}
	}
	if set.Resumed == nil {
		set.Resumed = func() {}
	}
	defer func() { err = errors.Join(err, removeTemporary(plan.Files)) }()
	if err := writeFiles(plan.Files); err != nil {
		return err
	}
	out, err := newOutput(plan, set)
	if err != nil {
		return err
	}
	g := &group{
		plan: plan, set: set, out: out, started: make(chan struct{}), ended: make(chan exit, len(plan.Processes)), done: make(chan struct{}),
		mark: fmt.Sprintf("PRIMUS_JOB=%d.%d", os.Getpid(), time.Now().UnixNano()),
	}
	defer func() { err = errors.Join(err, out.close()) }()
	defer close(g.done)
	switch guard, err := procgroup.StartGuard(g.mark); {
	case err == nil:
		g.leader = guard.Leader()
		defer guard.End()
	case !errors.Is(err, errors.ErrUnsupported):
		set.Log(fmt.Sprintf("if this program is killed, what its ranks have started goes on: %v", err))
	}
	startErr := g.start()
	if startErr != nil {
		g.signal(syscall.SIGKILL)
	}
	failure := g.wait(ctx)
	g.sweep()
	switch {
	case startErr != nil:
		return startErr
	case failure != nil:
		failure = g.cause(failure)
		failure.Tail, failure.File = out.tailOf(failure.Rank), plan.logFile(failure.Rank)
		return failure
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// writeFiles writes files that appear whole: another node may write and read them at this moment.
func writeFiles(files []File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return fmt.Errorf("file of the framework: %w", err)
		}
		if err := durable.WritePrivate(f.Path, func(w io.Writer) error {
			_, err := io.WriteString(w, f.Content)
			return err
		}); err != nil {
			return fmt.Errorf("file of the framework: %w", err)
		}
	}
	return nil
}

func removeTemporary(files []File) error {
	var faults []error
	for _, f := range files {
		if !f.Temporary {
			continue
		}
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("temporary file: %w", err))
		}
	}
	return errors.Join(faults...)
}

// start starts all processes in one group. The kernel ends them when the thread that started them
// ends, so the thread is kept until they are done.
func (g *group) start() error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		started <- g.startAll()
		<-g.done
	}()
	return <-started
}

func (g *group) startAll() error {
	defer close(g.started)
	for _, p := range g.plan.Processes {
		if err := g.startOne(p); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) startOne(p Process) error {
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Dir = g.plan.Dir
	cmd.Env = slices.Clone(g.set.Environ)
	for _, v := range slices.Concat(g.plan.Env, p.Env) {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, g.mark)
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start rank %d: %w", p.Rank, err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	deathSignal := syscall.SIGKILL
	if p.starts > 0 {
		deathSignal = syscall.SIGTERM // torchrun ends its ranks itself
		if err := g.openPipes(p); err != nil {
			return errors.Join(fmt.Errorf("output of the ranks of torchrun: %w", err), read.Close(), write.Close())
		}
	}
	cmd.SysProcAttr = procgroup.Attr(g.leader, deathSignal)
	err = cmd.Start()
	closeErr := write.Close()
	if err = errors.Join(err, closeErr); err != nil {
		return errors.Join(fmt.Errorf("start rank %d: %w", p.Rank, err), read.Close())
	}
	if g.leader == 0 {
		g.leader = cmd.Process.Pid
	}
	g.begun, g.pipes = append(g.begun, cmd), append(g.pipes, read)
	drained := make(chan struct{})
	g.readers.Go(func() {
		g.out.copyLines(read, p)
		close(drained)
	})
	go func() {
		<-g.started       // the group is gone once all that are in it have ended and were waited for
		_ = cmd.Wait()    // the state has the exit code
		if p.starts > 0 { // its last lines say which rank has failed
			select {
			case <-drained:
			case <-time.After(afterExit):
			}
		}
		g.ended <- exit{p, cmd.ProcessState}
	}()
	return nil
}

// signal sends a signal to all processes that are left. SIGABRT is for those that say where they
// are, which torchrun does not.
func (g *group) signal(s syscall.Signal) {
	if s == syscall.SIGABRT && len(g.ranks) > 0 {
		g.signalRanks(s)
		return
	}
	if len(g.begun) > 0 {
		procgroup.Signal(g.leader, g.begun, s)
	}
}

// signalRanks sends a signal to the ranks that torchrun has started and that still hold their
// pipes. They may be in groups of their own.
func (g *group) signalRanks(s syscall.Signal) {
	for _, r := range g.ranks {
		select {
		case <-r.drained:
			continue
		default:
		}
		if pid := g.out.pidOf(r.rank); pid > 0 {
			procgroup.Signal(pid, nil, s)
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Signal(s) // it has ended
			}
		}
	}
}

// rankPipe is the pipe through which the output of a rank comes that torchrun starts.
type rankPipe struct {
	rank        int
	path        string
	read, write *os.File // the end for writing keeps the pipe open until the rank has opened it
	drained     chan struct{}
}

// openPipes makes the pipes of the ranks that a process starts.
func (g *group) openPipes(p Process) error {
	for rank := p.Rank; rank < p.Rank+p.starts; rank++ {
		pipe := &rankPipe{rank: rank, path: fmt.Sprintf("%s-%d", g.plan.pipePrefix(), rank), drained: make(chan struct{})}
		if err := pipe.open(); err != nil {
			return err
		}
		g.ranks = append(g.ranks, pipe)
		g.readers.Go(func() {
			g.out.copyLines(pipe.read, Process{Rank: rank, piped: true})
			close(pipe.drained)
		})
	}
	return nil
}

// wait waits until all processes have ended and returns the failure that ended the job, nil if none
// did.
func (g *group) wait(ctx context.Context) *Failure {
	var failure *Failure
	interrupted := ctx.Done()
	stopping, stalled := false, false
	kill := time.NewTimer(0)
	<-kill.C
	defer kill.Stop()
	hang := time.NewTicker(hangCheck)
	defer hang.Stop()
	end := func(s syscall.Signal, within time.Duration) {
		stopping = true
		g.signal(s)
		kill.Reset(within)
	}
	for left := len(g.begun); left > 0; {
		select {
		case e := <-g.ended:
			left--
			g.exits = append(g.exits, e)
			if stopping || e.state.Success() {
				continue
			}
			failure = g.failureOf(e)
			if left > 0 {
				g.set.Log(fmt.Sprintf("rank %d has failed: the others are ended, within %v", failure.Rank, min(g.plan.Grace, afterFailure)))
			}
			end(syscall.SIGTERM, min(g.plan.Grace, afterFailure))
		case <-interrupted:
			interrupted = nil
			if stopping {
				continue
			}
			s := signalOf(context.Cause(ctx))
			g.set.Log(fmt.Sprintf("%v is forwarded to %d processes, which have %v to end", s, left, g.plan.Grace))
			end(s, g.plan.Grace)
		case <-kill.C:
			g.set.Log(fmt.Sprintf("%d processes have not ended in time and are killed", left))
			g.signal(syscall.SIGKILL)
		case <-hang.C:
			silent := g.out.silence()
			hangs := g.plan.Hang > 0 && silent > g.plan.Hang
			switch {
			case stopping || hangs == stalled:
			case !hangs:
				stalled = false
				g.set.Log("a rank has written a line: the job goes on")
				g.set.Resumed()
			default:
				stalled = true
				text := fmt.Sprintf("no rank has written a line for %v (--hang-timeout)", g.plan.Hang)
				g.set.Log(text)
				g.set.Stalled(text, silent)
				g.examineHang(ctx)
				if g.plan.HangEnds {
					failure = &Failure{
						Rank: g.plan.Processes[0].Rank, Code: HangCode, Signal: syscall.SIGABRT,
						Hung: text + ", so the job was ended (--on-hang abort); the output of each rank ends with where it was",
					}
					end(syscall.SIGABRT, min(g.plan.Grace, afterFailure))
				}
			}
		}
	}
	return failure
}

// cause returns the failure that led to f: that of the rank that raised an exception first.
// torchrun says itself which one it was.
func (g *group) cause(f *Failure) *Failure {
	if f.Hung != "" || g.exits[0].process.starts > 0 {
		return f
	}
	first := g.out.raisedFirst(f.Rank)
	for _, e := range g.exits {
		if e.process.Rank == first && e.state.ExitCode() > 0 {
			return g.failureOf(e)
		}
	}
	f.Rank = first
	return f
}

// maxExamination is how long the command may take that looks at a job which hangs.
const maxExamination = time.Minute

// HangCode is the exit code of a program that ends because its run hangs.
const HangCode = 3

// examineHang runs the command for a job that hangs, with the processes of its ranks in a variable.
func (g *group) examineHang(ctx context.Context) {
	if g.plan.HangCommand == "" {
		return
	}
	var pids []string
	for i, cmd := range g.begun {
		if g.plan.Processes[i].starts == 0 {
			pids = append(pids, strconv.Itoa(cmd.Process.Pid))
		}
	}
	for _, r := range g.ranks {
		pids = append(pids, strconv.Itoa(g.out.pidOf(r.rank)))
	}
	ctx, cancel := context.WithTimeout(ctx, maxExamination)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", g.plan.HangCommand)
	cmd.Env = append(slices.Clone(g.set.Environ), "PRIMUS_RANK_PIDS="+strings.Join(pids, " "))
	cmd.Dir, cmd.WaitDelay = g.plan.Dir, afterExit
	text, err := cmd.CombinedOutput()
	file := filepath.Join(g.plan.LogDir, "hang.log")
	if err := errors.Join(err, durable.WriteFile(file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})); err != nil {
		g.set.Log(fmt.Sprintf("--hang-command %q: %v", g.plan.HangCommand, err))
	}
	g.set.Log("what --hang-command has written is in " + file)
}

// failureOf describes a process that has failed.
func (g *group) failureOf(e exit) *Failure {
	f := &Failure{Rank: e.process.Rank, Code: e.state.ExitCode()}
	if s, ok := procgroup.EndedBy(e.state); ok {
		f.Signal, f.Code = s, 128+int(s)
	}
	if e.process.starts > 0 {
		if rank, code, ok := g.out.rootCause(); ok {
			f.Rank, f.Code, f.Signal = rank, code, 0
			if code < 0 {
				f.Signal, f.Code = syscall.Signal(-code), 128-code
			}
		}
	}
	return f
}

// sweep kills processes that are left and waits for the end of the output.
func (g *group) sweep() {
	g.signal(syscall.SIGKILL)
	if n := procgroup.KillMarked(g.mark, g.leader); n > 0 {
		g.set.Log(fmt.Sprintf("%d processes that ranks have started in sessions of their own are killed", n))
	}
	for _, r := range g.ranks {
		_ = r.write.Close()   // nobody writes to it
		_ = os.Remove(r.path) // it is of no use any more
	}
	drained := make(chan struct{})
	go func() {
		g.readers.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(afterExit):
		g.signalRanks(syscall.SIGKILL)
	}
	for _, r := range g.ranks {
		select {
		case <-r.drained:
		case <-time.After(afterExit):
		}
		g.pipes = append(g.pipes, r.read)
	}
	for _, pipe := range g.pipes {
		_ = pipe.Close() // the output is not read any more
	}
	<-drained
}

// Signaled is implemented by the cause of a context that a signal ended.
type Signaled interface{ Signal() syscall.Signal }

// signalOf returns the signal that ended a context: SIGINT if the cause names none, and SIGTERM for
// other causes.
func signalOf(cause error) syscall.Signal {
	if s, ok := errors.AsType[interface {
		error
		Signaled
	}](cause); ok {
		return s.Signal()
	}
	if cause == nil || errors.Is(cause, context.Canceled) {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}
