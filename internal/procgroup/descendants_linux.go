package procgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// KillDescendants ends all processes that this one has started, and those that they have started,
// whatever group they are in. Those whose parent has ended before are not found.
func KillDescendants() {
	// Processes may start others meanwhile. A stopped parent starts none, so it is stopped before its
	// children are looked for.
	for _, pid := range descendants(os.Getpid(), func(pid int) { _ = syscall.Kill(pid, syscall.SIGSTOP) }) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // ESRCH: it has ended
	}
}

// descendants returns the processes below a process. found is called with each before its own
// children are looked for.
func descendants(of int, found func(pid int)) []int {
	var all []int
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(of) + "/task/*/children") // the pattern is right
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range bytes.Fields(text) {
			pid, err := strconv.Atoi(string(word))
			if err != nil {
				continue
			}
			found(pid)
			all = append(append(all, pid), descendants(pid, found)...)
		}
	}
	return all
}
