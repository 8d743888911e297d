package train_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// example returns the path of a file of examples/distributed.
func example(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(primustest.ModuleRoot(t), "examples", "distributed", name)
}

// asExample returns the variables with which an example runs this program on a small experiment.
func asExample(t *testing.T, l *commandtest.Lab) []string {
	t.Helper()
	return append(commandtest.Child(t.Context(), nil).Env, "PRIMUS="+os.Args[0], "CONFIG="+l.Exp)
}

func TestMPIRunExample(t *testing.T) {
	commandtest.Tools(t, "mpirun.openmpi", "mpirun")
	l := commandtest.NewLab(t)
	cmd := exec.Command(example(t, "mpirun.sh"), "train_iters=3")
	cmd.Env = append(asExample(t, l), "MPIRUN_ARGS=--oversubscribe --allow-run-as-root")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "\nranks       2: ")
	assert.Len(t, l.Records(), 3)
}

// slurmExample submits the script to a Slurm of one node.
func slurmExample(t *testing.T) {
	commandtest.Tools(t, "mpiexec.hydra")
	l := commandtest.NewLab(t)
	out := filepath.Join(t.TempDir(), "job.out")
	cmd := exec.Command("sbatch", "--wait", "--nodes=1", "--time=10", "--output="+out, example(t, "slurm.sbatch"), "train_iters=3")
	cmd.Env = append(asExample(t, l), "RANKS_PER_NODE=2")
	text, err := cmd.CombinedOutput()
	written, _ := os.ReadFile(out)
	require.NoError(t, err, "%s\n%s", text, written)
	assert.Contains(t, string(written), "\nranks       2: ")
	assert.Len(t, l.Records(), 3)
}

// kubernetesObject is what the test of the manifest reads of an object.
type kubernetesObject struct {
	Kind string
	Data map[string]string
	Spec struct {
		Completions, Parallelism int
		CompletionMode           string `yaml:"completionMode"`
		Template                 struct {
			Spec struct {
				Subdomain  string
				Containers []struct {
					Command []string
					Env     []struct{ Name, Value string }
				}
			}
		}
	}
}

// The command of the pods runs with their variables, on this machine.
func TestKubernetesExample(t *testing.T) {
	needMPICH(t)
	file, err := os.Open(example(t, "kubernetes.yaml"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	objects := map[string]kubernetesObject{}
	for decoder := yaml.NewDecoder(file); ; {
		var o kubernetesObject
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		objects[o.Kind] = o
	}
	require.Contains(t, objects, "Service", "the pods need names")
	job, dir := objects["Job"].Spec, t.TempDir()
	assert.Equal(t, "Indexed", job.CompletionMode)
	assert.Equal(t, job.Completions, job.Parallelism, "all ranks run at the same time")
	pod := job.Template.Spec.Containers[0]

	text, err := os.ReadFile(commandtest.NewLab(t).Text)
	require.NoError(t, err)
	corpus := filepath.Join(dir, "text.go")
	require.NoError(t, os.WriteFile(corpus, text, 0o600))
	experiment := filepath.Join(dir, "experiment.yaml")
	require.NoError(t, os.WriteFile(experiment, []byte(objects["ConfigMap"].Data["experiment.yaml"]), 0o600))
	args := append(pod.Command[1:len(pod.Command):len(pod.Command)], "workspace="+dir, "train_data_path="+corpus, "train_iters=2", "seq_length=32", "hidden_size=32",
		"ffn_hidden_size=64", "num_attention_heads=4", "num_query_groups=2", "num_layers=1", "--threads=1")
	args[slices.Index(args, "--config")+1] = experiment
	var env []string
	for _, v := range pod.Env {
		switch v.Name {
		case "MASTER_ADDR":
			assert.Equal(t, "train-0."+job.Template.Spec.Subdomain, v.Value)
			v.Value = "127.0.0.1"
		case "MASTER_PORT":
			v.Value = freePort(t)
		case "WORLD_SIZE":
			assert.Equal(t, strconv.Itoa(job.Completions), v.Value)
		}
		env = append(env, v.Name+"="+v.Value)
	}
	var pods []*exec.Cmd
	outputs := make([]bytes.Buffer, job.Completions)
	for i := range outputs {
		cmd := commandtest.Child(t.Context(), append(env, "JOB_COMPLETION_INDEX="+strconv.Itoa(i)), args...)
		cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
		require.NoError(t, cmd.Start())
		pods = append(pods, cmd)
	}
	for i, cmd := range pods {
		assert.NoError(t, cmd.Wait(), outputs[i].String())
	}
	assert.Contains(t, outputs[0].String(), "\nranks       4: ")
	assert.Equal(t, 1, strings.Count(outputs[0].String()+outputs[1].String()+outputs[2].String()+outputs[3].String(), " finished\n"))
}
