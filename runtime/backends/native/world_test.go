package native_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process of a larger job trains nothing, whatever its rank, and leaves no run directory.
func TestALargerWorldIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"first rank", map[string]string{"RANK": "0", "WORLD_SIZE": "2"}, []string{"rank 0 of a job of 2", "one process"}},
		{"last rank", map[string]string{"RANK": "1", "WORLD_SIZE": "2"}, []string{"rank 1 of a job of 2"}},
		{"nodes", map[string]string{"NODE_RANK": "1", "NNODES": "4"}, []string{"rank 1 of a job of 4"}},
		{"local", map[string]string{"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "8"}, []string{"LOCAL_WORLD_SIZE"}},
		{"srun", map[string]string{"SLURM_STEP_NUM_TASKS": "3"}, []string{"srun has started 3 processes", "WORLD_SIZE=1"}},
		{"srun with one node", map[string]string{"SLURM_STEP_NUM_TASKS": "3", "NNODES": "1"}, []string{"srun"}},
		{"Open MPI", map[string]string{"OMPI_COMM_WORLD_SIZE": "2"}, []string{"OMPI_COMM_WORLD_SIZE"}},
		{"PMI", map[string]string{"PMI_SIZE": "2"}, []string{"PMI_SIZE"}},
		{"MVAPICH2", map[string]string{"MV2_COMM_WORLD_SIZE": "2"}, []string{"MV2_COMM_WORLD_SIZE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.env = tt.env
			err := l.train(t.Context(), "run")
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NoDirExists(t, l.path("run"))
		})
	}
}

// A world of one is none, and WORLD_SIZE=1 makes runs of the tasks of a launcher.
func TestAWorldOfOneTrains(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"torchrun": {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"},
		"srun":     {"SLURM_STEP_NUM_TASKS": "1", "OMPI_COMM_WORLD_SIZE": "x"},
		"sweep":    {"SLURM_STEP_NUM_TASKS": "4", "WORLD_SIZE": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.env = env
			require.NoError(t, l.train(t.Context(), "run", "train_iters=1"))
		})
	}
}
