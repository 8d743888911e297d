//go:build unix

package procgroup

import (
	"io"
	"os/exec"
	"syscall"
)

// Guard is the leader of a group that ends all of the group when the process that has started it
// ends, in whatever way. On Linux it also ends those that have left the group.
type Guard struct {
	cmd   *exec.Cmd
	alive io.Closer // the end of a pipe that this process holds
}

// guarding is the program of a guard. It obeys no signal but SIGKILL.
const guarding = `
trap "" HUP INT QUIT ABRT USR1 USR2 TERM
read -r nothing
for file in $(grep -lsF "$1" /proc/[0-9]*/environ); do
	pid=${file%/environ}
	kill -KILL "${pid#/proc/}"
done
kill -KILL 0`

// StartGuard starts a guard of a new group, whose processes have a variable, as "NAME=value".
func StartGuard(variable string) (*Guard, error) {
	cmd := exec.Command("sh", "-c", guarding, "guard", variable)
	cmd.SysProcAttr = Attr(0, 0)
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Guard{cmd, alive}, nil
}

// Leader returns the number of the group.
func (g *Guard) Leader() int { return g.cmd.Process.Pid }

// End ends the guard and what is left of its group.
func (g *Guard) End() {
	Signal(g.Leader(), nil, syscall.SIGKILL)
	_ = g.alive.Close()
	_ = g.cmd.Wait() // it was killed
}
