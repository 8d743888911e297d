package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/primus-fl/primus/internal/procgroup"
)

// farewell is how long the child may take to end when its host is gone.
const farewell = 100 * time.Millisecond

// keep starts this program again as a child that does the work, and makes this process its keeper.
// The keeper adopts all processes that code of a plugin starts, even those that leave their session
// and their parent, and ends them with the child. In the keeper keep does not return; in the child
// it does nothing. The child has the first files from firstExtraFile on.
func keep(files int) {
	if os.Getenv(lifelineEnv) == "" || os.Getenv(keptEnv) != "" {
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return // an old kernel: the host ends the processes that it knows
	}
	runtime.LockOSThread() // the child must end with this thread
	status, err := runKept(files)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	if n := endDescendants(); n > 0 {
		fmt.Fprintf(os.Stderr, "%s%d\n", leftMark, n)
	}
	os.Exit(status)
}

// runKept runs the child to its end and returns its exit status.
func runKept(files int) (int, error) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), keptEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Its own group, so that a plugin that signals its group does not reach the keeper.
	cmd.SysProcAttr = procgroup.Attr(0, syscall.SIGKILL)
	for n := range files {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(firstExtraFile+n), "file of the child"))
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("sandbox: start the child of a keeper: %w", err)
	}
	hostGone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, cmd.ExtraFiles[0])
		close(hostGone)
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err := awaitKept(cmd.Process, ended, stop, hostGone)
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return 0, fmt.Errorf("sandbox: wait for the child of a keeper: %w", err)
	}
	if signal := endedBy(cmd.ProcessState); signal != "" {
		fmt.Fprintf(os.Stderr, "%s%s\n", endMark, signal)
		return 1, nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// awaitKept waits until the child has ended, and ends it when the host asks for that or is gone.
func awaitKept(child *os.Process, ended <-chan error, stop <-chan os.Signal, hostGone <-chan struct{}) error {
	select {
	case err := <-ended:
		return err
	case <-stop:
	case <-hostGone: // the child has seen it as well
		select {
		case err := <-ended:
			return err
		case <-time.After(farewell):
		}
	}
	_ = child.Kill()
	return <-ended
}

// endDescendants kills all descendants of this process and returns how many were alive. Those whose
// parent ends become children of this process.
func endDescendants() (n int) {
	seen := map[int]bool{}
	for end := time.Now().Add(cleanupLimit); time.Now().Before(end); {
		children := childrenOf(os.Getpid())
		if len(children) == 0 {
			break
		}
		for _, pid := range children {
			var status unix.WaitStatus
			if got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); got == pid || err != nil {
				continue // it had ended
			}
			if !seen[pid] {
				seen[pid] = true
				n++
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
	return n
}

// childrenOf returns the children of a process according to /proc.
func childrenOf(parent int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent ...; a name may hold anything.
		pid, rest, _ := strings.Cut(string(text), " ")
		fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if n, err := strconv.Atoi(pid); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
