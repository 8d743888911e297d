package primustest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// family returns the process and its descendants that run the program of the test. Others, such as
// launchers of MPI, print nothing when they are asked where they are.
func family(pid int) []int {
	var found []int
	if own, err := os.Readlink("/proc/self/exe"); err == nil {
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && program == own {
			found = append(found, pid)
		}
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return found // it has ended
	}
	for _, task := range tasks {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(word); err == nil {
				found = slices.Concat(found, family(child))
			}
		}
	}
	return found
}
