package mpi

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// roll shows a rank that a launcher of MPI has started to the others of its job on this machine
// before MPI_Init_thread, which waits for all ranks and does not say for whom. Its socket has no
// file, so that nothing stays behind. Systems other than Linux have no such sockets, and no roll.
type roll struct {
	job         string // differs for jobs of this machine
	rank, ranks int
	local       int // ranks on this machine; 0 if that is not known
	at          string
	listener    net.Listener
}

// answers is how long a rank on this machine may take to answer.
const answers = 100 * time.Millisecond

// maxRoll bounds the number of ranks that are looked for.
const maxRoll = 1024

// openRoll shows this rank, as the variables of its launcher say. It returns nil where that is not
// possible.
func openRoll(lookup func(string) (string, bool)) *roll {
	number := func(names ...string) int {
		for _, name := range names {
			if text, ok := lookup(name); ok {
				if n, err := strconv.Atoi(text); err == nil && n >= 0 {
					return n
				}
			}
		}
		return -1
	}
	r := &roll{
		rank: number("OMPI_COMM_WORLD_RANK", "PMI_RANK"), ranks: number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
		local: max(0, number("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")),
	}
	if runtime.GOOS != "linux" || r.rank < 0 || r.ranks < 2 || r.rank >= r.ranks || r.ranks > maxRoll {
		return nil
	}
	if space, ok := lookup("PMIX_NAMESPACE"); ok {
		r.job = "pmix-" + space
	} else {
		r.job = fmt.Sprintf("pmi-%d", os.Getppid()) // the proxy of mpiexec
	}
	if uri, ok := lookup("OMPI_MCA_orte_hnp_uri"); ok {
		for part := range strings.SplitSeq(uri, ";") {
			if address, ok := strings.CutPrefix(part, "tcp://"); ok {
				r.at = " at " + address
			}
		}
	} else if port, ok := lookup("PMI_PORT"); ok {
		r.at = " at " + port
	}
	var err error
	if r.listener, err = net.Listen("unix", r.socket(r.rank)); err != nil {
		return nil // it helps to find a fault, and is none
	}
	go func() {
		for {
			caller, err := r.listener.Accept()
			if err != nil {
				return
			}
			caller.Close()
		}
	}()
	return r
}

// socket is the name at which a rank answers.
func (r *roll) socket(rank int) string {
	return fmt.Sprintf("@primus-mpi-%d-%s-%d", os.Getuid(), r.job, rank)
}

// missing says for whom this rank waits.
func (r *roll) missing() string {
	there, absent := []int{r.rank}, []int(nil)
	for rank := range r.ranks {
		if rank == r.rank {
			continue
		}
		if c, err := net.DialTimeout("unix", r.socket(rank), answers); err == nil {
			c.Close()
			there = append(there, rank)
		} else {
			absent = append(absent, rank)
		}
	}
	slices.Sort(there)
	if r.local != r.ranks {
		return fmt.Sprintf("rank %d of %d waits for others; there on this machine: %s", r.rank, r.ranks, named(there))
	}
	if len(absent) == 0 {
		return fmt.Sprintf("rank %d of %d waits, though all have come", r.rank, r.ranks)
	}
	return fmt.Sprintf("rank %d of %d waits for %s; there: %s", r.rank, r.ranks, named(absent), named(there))
}

func (r *roll) close() {
	if r != nil {
		r.listener.Close()
	}
}
