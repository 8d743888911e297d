package preflight

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Place is the place of this process in a job.
type Place struct {
	Rank, World int
	Address     string // of rank 0
	Port        int    // at which rank 0 collects
	From        string // the variables that say so, "" for a process on its own
	Local       int    // place among the ranks of its host
}

// defaultPort is the port if MASTER_PORT is not set.
const defaultPort = 1234

// launchers are the variables that give rank and size of a job, in the order in which they count.
var launchers = [][2]string{
	{"RANK", "WORLD_SIZE"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}, {"NODE_RANK", "NNODES"},
}

// FindPlace reads the variables of torchrun, MPI, Slurm and Primus. Rank 0 collects at the port
// after MASTER_PORT, because torchrun keeps that one for itself.
func FindPlace(getenv func(string) string) (Place, error) {
	at := Place{World: 1}
	for _, names := range launchers {
		if getenv(names[0]) == "" || getenv(names[1]) == "" { // such as SLURM_NTASKS in a batch script, which is no task
			continue
		}
		world, err := whole(getenv, names[1], 1, 1<<20)
		if err != nil {
			return at, err
		}
		rank, err := whole(getenv, names[0], 0, world-1)
		if err != nil {
			return at, err
		}
		at.Rank, at.World, at.From = rank, world, names[0]+" and "+names[1]
		break
	}
	if size := getenv("WORLD_SIZE"); at.From == "" && size != "" && size != "1" {
		return at, fmt.Errorf("preflight: WORLD_SIZE is %s, and no variable says which rank this is: set RANK", size)
	}
	if at.World == 1 {
		return at, nil
	}
	for _, name := range []string{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"} {
		if getenv(name) == "" {
			continue
		}
		local, err := whole(getenv, name, 0, at.World-1)
		if err != nil {
			return at, err
		}
		at.Local = local
		break
	}
	at.Address = cmp.Or(getenv("MASTER_ADDR"), FirstHost(getenv("SLURM_STEP_NODELIST")), FirstHost(getenv("SLURM_JOB_NODELIST")))
	if at.Address == "" {
		return at, fmt.Errorf("preflight: %s say that this is rank %d of %d, and no variable says where rank 0 is: set MASTER_ADDR", at.From, at.Rank, at.World)
	}
	at.Port = defaultPort + 1
	if getenv("MASTER_PORT") != "" {
		port, err := whole(getenv, "MASTER_PORT", 1, 65534)
		if err != nil {
			return at, err
		}
		at.Port = port + 1
	}
	return at, nil
}

// whole reads a variable that holds a whole number.
func whole(getenv func(string) string, name string, least, most int) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("preflight: variable %s: given %q, want a number from %d to %d", name, getenv(name), least, most)
	}
	return n, nil
}

// FirstHost returns the first host of a list of Slurm, such as node[01-04,07],login1.
func FirstHost(list string) string {
	for i := range len(list) {
		switch list[i] {
		case ',':
			return list[:i]
		case '[':
			inside, rest, ok := strings.Cut(list[i+1:], "]")
			if !ok {
				return ""
			}
			first, _, _ := strings.Cut(inside, ",")
			first, _, _ = strings.Cut(first, "-")
			suffix, _, _ := strings.Cut(rest, ",")
			return list[:i] + first + suffix
		}
	}
	return list
}
