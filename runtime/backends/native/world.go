package native

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/runtime/backend"
)

// launcherSizes are the variables in which launchers pass the number of processes.
var launcherSizes = []struct{ name, launcher string }{
	{"SLURM_STEP_NUM_TASKS", "srun"},
	{"OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"},
	{"PMI_SIZE", "mpiexec"},
	{"MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH2"},
}

// checkWorld returns an error if the run has several processes. There are no collectives, so every
// process would train the same model alone. WORLD_SIZE=1 declares the processes of a launcher to be
// separate runs.
func checkWorld(tc *backend.TrainContext) error {
	const remedy = "the native trainer runs on one process, because it has no collectives yet; start one process"
	if tc.WorldSize > 1 {
		return fmt.Errorf("this is rank %d of a job of %d processes (WORLD_SIZE or NNODES): %s and unset these variables", tc.Rank, tc.WorldSize, remedy)
	}
	if tc.LocalWorldSize > 1 {
		return fmt.Errorf("this is one of %d processes on this machine (LOCAL_WORLD_SIZE): %s and unset this variable", tc.LocalWorldSize, remedy)
	}
	if _, alone := tc.Environ.Lookup("WORLD_SIZE"); alone {
		return nil
	}
	for _, v := range launcherSizes {
		text, _ := tc.Environ.Lookup(v.name)
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 1 {
			return fmt.Errorf("%s has started %d processes (%s): %s, or set WORLD_SIZE=1 and another exp_name for each, if they are runs of their own",
				v.launcher, n, v.name, remedy)
		}
	}
	return nil
}
