package procgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// KillMarked ends all processes that have this variable, as "NAME=value", in the environment they
// were started with, whatever group and session they are in. It returns how many of them were not
// in the group.
func KillMarked(variable string, group int) (outside int) {
	ended := map[int]bool{}
	for range maxRounds {
		more := marked(variable, ended)
		for _, pid := range more {
			ended[pid] = true
			if of, err := syscall.Getpgid(pid); err == nil && of != group {
				outside++
			}
			_ = syscall.Kill(pid, syscall.SIGKILL) // ESRCH: it has ended
		}
		if len(more) == 0 { // none was started meanwhile
			break
		}
	}
	return outside
}

// maxRounds is how often KillMarked looks for processes that others have started meanwhile.
const maxRounds = 100

// marked returns the processes that have the variable and are not among those that are known.
func marked(variable string, known map[int]bool) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || known[pid] {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, or is of another user
		}
		for v := range bytes.SplitSeq(text, []byte{0}) {
			if string(v) == variable {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
