package backend

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Distributed describes the place of this process in a job.
type Distributed struct {
	Rank, WorldSize           int
	LocalRank, LocalWorldSize int
	MasterAddr                string
	MasterPort                int
}

// ReadDistributed reads the variables of torchrun. If those for rank and world size are not set, it
// reads those of JAX launchers: RANK or NODE_RANK, WORLD_SIZE or NNODES, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. The error names every variable with a wrong value.
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
				faults = append(faults, fmt.Errorf("variable %s: got %q, want an integer >= %d", name, text, least))
			}
			*into = n
			return
		}
	}
	number(&d.Rank, 0, 0, "RANK", "NODE_RANK")
	number(&d.WorldSize, 1, 1, "WORLD_SIZE", "NNODES")
	number(&d.LocalRank, 0, 0, "LOCAL_RANK")
	number(&d.LocalWorldSize, 1, 1, "LOCAL_WORLD_SIZE")
	number(&d.MasterPort, 1024, 0, "MASTER_PORT")
	if len(faults) == 0 && d.Rank >= d.WorldSize {
		faults = append(faults, fmt.Errorf("rank %d of a job of %d: set RANK and WORLD_SIZE, or NODE_RANK and NNODES, together", d.Rank, d.WorldSize))
	}
	return d, errors.Join(faults...)
}
