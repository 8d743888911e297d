package backend

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/launch/elastic"
)

// Distributed describes the place of this process in a job.
type Distributed struct {
	Rank, WorldSize           int
	LocalRank, LocalWorldSize int
	MasterAddr                string
	MasterPort                int
}

// launched are the variables in which a launcher passes the place of a process; of several names of
// one thing the first that is set counts.
type launched struct{ rank, size, localRank, localSize []string }

var (
	torchrun = launched{
		[]string{"RANK", "NODE_RANK"}, []string{"WORLD_SIZE", "NNODES"}, []string{"LOCAL_RANK"}, []string{"LOCAL_WORLD_SIZE"},
	}
	openMPI = launched{
		[]string{"OMPI_COMM_WORLD_RANK"}, []string{"OMPI_COMM_WORLD_SIZE"},
		[]string{"OMPI_COMM_WORLD_LOCAL_RANK"}, []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
	}
	mpich = launched{[]string{"PMI_RANK"}, []string{"PMI_SIZE"}, []string{"MPI_LOCALRANKID"}, []string{"MPI_LOCALNRANKS"}}
)

// launcherOf returns the variables of the launcher that has started this process. WORLD_SIZE comes
// first, because it also says that the processes of another launcher are runs of their own.
func launcherOf(env *Environ) launched {
	if _, set := env.Lookup("WORLD_SIZE"); !set {
		for _, l := range []launched{openMPI, mpich} {
			if _, set := env.Lookup(l.size[0]); set {
				return l
			}
		}
	}
	return torchrun
}

// ReadDistributed reads the variables of torchrun or, where WORLD_SIZE is not set, those of mpirun
// and mpiexec. Launchers of JAX set NODE_RANK and NNODES in place of RANK and WORLD_SIZE. The error
// names every variable with a wrong value.
func ReadDistributed(env *Environ) (Distributed, error) {
	d := Distributed{MasterAddr: env.Get("MASTER_ADDR", "127.0.0.1")}
	var faults []error
	number := func(into *int, def, least int, names ...string) {
		*into = def
		for _, name := range names {
			text, set := env.Lookup(name)
			if !set {
				continue
			}
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || n < least {
				faults = append(faults, fmt.Errorf("variable %s: given %q, want an integer >= %d", name, text, least))
			}
			*into = n
			return
		}
	}
	by := launcherOf(env)
	number(&d.Rank, 0, 0, by.rank...)
	number(&d.WorldSize, 1, 1, by.size...)
	number(&d.LocalRank, 0, 0, by.localRank...)
	number(&d.LocalWorldSize, 1, 1, by.localSize...)
	number(&d.MasterPort, 1024, 0, "MASTER_PORT")
	if len(faults) == 0 && d.Rank >= d.WorldSize {
		faults = append(faults, fmt.Errorf("rank %d of a job of %d: set %s and %s together", d.Rank, d.WorldSize, strings.Join(by.rank, " or "), strings.Join(by.size, " or ")))
	}
	return d, errors.Join(faults...)
}

// Restarts says how often the ranks of a job were started again.
type Restarts struct {
	Count, Max int
	Reason     string // of the last time, "" if it is not known
}

// ReadRestarts reads the variables with which torchrun, and primus itself, count restarts.
func ReadRestarts(env *Environ) Restarts {
	number := func(name string) int {
		n, _ := strconv.Atoi(env.Get(name, "0")) // of another program, and only shown
		return n
	}
	return Restarts{number(elastic.EnvRestarts), number(elastic.EnvMaxRestarts), env.Get(elastic.EnvReason, "")}
}

// String says what is known, such as "1 of 3, the last because rank 1 of 2 has failed: killed".
func (r Restarts) String() string {
	text := fmt.Sprintf("%d of %d", r.Count, r.Max)
	if r.Reason != "" {
		text += ", the last because " + r.Reason
	}
	return text
}
