package launch

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// withLibrary are variables of launchers that connect their processes with an MPI library.
var withLibrary = []string{"OMPI_COMM_WORLD_SIZE", "PMI_FD", "PMI_PORT", "MV2_COMM_WORLD_SIZE"}

// The ports of which a step of Slurm takes one.
const (
	firstPort = 12000
	ports     = 20000
)

// RankVariables returns the variables that say, to a library, which rank this process is when its
// launcher says it otherwise: those of torchrun for a step of Slurm whose srun connects nothing and
// for a pod of an Indexed Job, and those of Open MPI for a step that srun --mpi=pmix has started.
// It returns none for a process that is no rank or whose launcher has set them.
func RankVariables(lookup func(string) (string, bool)) ([]Variable, error) {
	isSet := func(name string) bool {
		text, set := lookup(name)
		return set && text != ""
	}
	if slices.ContainsFunc(withLibrary, isSet) {
		return nil, nil
	}
	if isSet("WORLD_SIZE") {
		if index, set := lookup("JOB_COMPLETION_INDEX"); set && !isSet("RANK") && !isSet("NODE_RANK") {
			return []Variable{{"RANK", index, "variable JOB_COMPLETION_INDEX"}}, nil
		}
		return nil, nil
	}
	return slurmRank(lookup, isSet)
}

// slurmRank returns the variables of a task of srun.
func slurmRank(lookup func(string) (string, bool), isSet func(string) bool) ([]Variable, error) {
	var faults []error
	number := func(name string) int {
		text, _ := lookup(name)
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 {
			faults = append(faults, fmt.Errorf("variable %s: given %q, want a number of Slurm", name, text))
		}
		return n
	}
	if !isSet("SLURM_PROCID") || !isSet("SLURM_STEP_NUM_TASKS") {
		return nil, nil
	}
	rank, size := number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")
	if size < 2 {
		return nil, errors.Join(faults...)
	}
	local, node := number("SLURM_LOCALID"), number("SLURM_NODEID")
	each, _ := lookup("SLURM_STEP_TASKS_PER_NODE")
	locals, err := tasksOf(each, node)
	if err != nil {
		faults = append(faults, fmt.Errorf("variable SLURM_STEP_TASKS_PER_NODE: %w", err))
	}
	const source = "variables of Slurm"
	names := []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}
	if isSet("PMIX_RANK") {
		names = []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}
	}
	var vars []Variable
	for i, n := range []int{rank, size, local, locals} {
		vars = append(vars, Variable{names[i], strconv.Itoa(n), source})
	}
	if isSet("PMIX_RANK") {
		return vars, errors.Join(faults...)
	}
	if !isSet("MASTER_ADDR") {
		list, _ := lookup("SLURM_STEP_NODELIST")
		hosts, err := Hosts(list)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("variable SLURM_STEP_NODELIST: %w", err))
		case len(hosts) == 0:
			faults = append(faults, errors.New("variable SLURM_STEP_NODELIST: given no nodes, want those of the step, or set MASTER_ADDR"))
		case len(hosts) == 1:
			vars = append(vars, Variable{"MASTER_ADDR", "127.0.0.1", source})
		default:
			vars = append(vars, Variable{"MASTER_ADDR", hosts[0], source})
		}
	}
	if !isSet("MASTER_PORT") && !isSet("PRIMUS_MPI_PORT") {
		port := firstPort + (number("SLURM_JOB_ID")%ports*64+number("SLURM_STEP_ID")%ports)%ports
		vars = append(vars, Variable{"PRIMUS_MPI_PORT", strconv.Itoa(port), "numbers of job and step of Slurm"})
	}
	return vars, errors.Join(faults...)
}

// tasksOf returns how many tasks a node has, from a list such as 2(x3),1.
func tasksOf(list string, node int) (int, error) {
	first := 0
	for word := range strings.SplitSeq(list, ",") {
		count, times, repeated := strings.Cut(word, "(x")
		n, err := strconv.Atoi(strings.TrimSpace(count))
		nodes := 1
		if repeated && err == nil {
			nodes, err = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		if err != nil || n < 1 || nodes < 1 {
			return 0, fmt.Errorf("given %q, want numbers of tasks such as 2(x3),1", list)
		}
		if first += nodes; node < first {
			return n, nil
		}
	}
	return 0, fmt.Errorf("given %q, which has no node %d", list, node)
}

// FreePort returns a port of this machine at which nobody listens.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
