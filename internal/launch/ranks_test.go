package launch_test

import (
	"strconv"
	"testing"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

func TestRankVariables(t *testing.T) {
	step := map[string]string{
		"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "5", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
		"SLURM_STEP_NODELIST": "n[07-08],m1", "SLURM_JOB_ID": "400", "SLURM_STEP_ID": "2",
	}
	with := func(more ...string) map[string]string {
		vars := map[string]string{}
		for name, value := range step {
			vars[name] = value
		}
		for i := 0; i < len(more); i += 2 {
			vars[more[i]] = more[i+1]
		}
		return vars
	}
	slurm := map[string]string{"RANK": "3", "WORLD_SIZE": "5", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "n07", "PRIMUS_MPI_PORT": "17602"}
	for _, tt := range []struct {
		name  string
		given map[string]string
		want  map[string]string
	}{
		{"nothing", nil, nil},
		{"srun", step, slurm},
		{"srun on one node", with("SLURM_STEP_NODELIST", "n07", "MASTER_PORT", "7"), map[string]string{"RANK": "3", "WORLD_SIZE": "5", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}},
		{"one task", with("SLURM_STEP_NUM_TASKS", "1", "SLURM_PROCID", "0"), nil},
		{"srun --mpi=pmi2", with("PMI_FD", "4"), nil},
		{"srun --mpi=pmix", with("PMIX_RANK", "3"), map[string]string{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}},
		{"mpirun in a job", with("OMPI_COMM_WORLD_SIZE", "2"), nil},
		{"runs of their own", with("WORLD_SIZE", "1"), nil},
		{"a pod", map[string]string{"WORLD_SIZE": "4", "JOB_COMPLETION_INDEX": "2"}, map[string]string{"RANK": "2"}},
		{"a pod with a rank", map[string]string{"WORLD_SIZE": "4", "JOB_COMPLETION_INDEX": "2", "RANK": "1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vars, err := launch.RankVariables(func(name string) (string, bool) { v, ok := tt.given[name]; return v, ok })
			require.NoError(t, err)
			got := map[string]string{}
			for _, v := range vars {
				got[v.Name] = v.Value
			}
			if tt.want == nil {
				tt.want = map[string]string{}
			}
			assert.Equal(t, tt.want, got)
		})
	}
	for name, wrong := range map[string]string{
		"SLURM_PROCID": "x", "SLURM_LOCALID": "-1", "SLURM_STEP_TASKS_PER_NODE": "2(x", "SLURM_STEP_NODELIST": "n[1-",
		"SLURM_NODEID": "7", "SLURM_JOB_ID": "",
	} {
		given := with(name, wrong)
		_, err := launch.RankVariables(func(name string) (string, bool) { v, ok := given[name]; return v, ok })
		assert.Error(t, err, "%s=%s", name, wrong)
	}
}

// Whatever a launcher sets, a rank that is found is one of its job.
func FuzzRankVariables(f *testing.F) {
	f.Add("3", "5", "1", "2(x2),1", "n[07-08],m1", "400")
	f.Add("0", "2", "0", "1(x99999999999)", "a[", "99999999999999999999")
	f.Fuzz(func(t *testing.T, rank, size, node, tasks, hosts, job string) {
		defer primustest.Measured(t, len(rank)+len(size)+len(node)+len(tasks)+len(hosts)+len(job))()
		given := map[string]string{
			"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": size, "SLURM_LOCALID": "0", "SLURM_NODEID": node, "SLURM_STEP_TASKS_PER_NODE": tasks,
			"SLURM_STEP_NODELIST": hosts, "SLURM_JOB_ID": job, "SLURM_STEP_ID": "0",
		}
		vars, err := launch.RankVariables(func(name string) (string, bool) { v, ok := given[name]; return v, ok })
		if err != nil {
			return
		}
		for _, v := range vars {
			assert.NotEmpty(t, v.Value, v.Name)
			if v.Name == "PRIMUS_MPI_PORT" {
				port, err := strconv.Atoi(v.Value)
				require.NoError(t, err)
				assert.True(t, port >= 12000 && port < 32000, port)
			}
		}
	})
}
