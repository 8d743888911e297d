package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
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
	text, err := os.ReadFile(example(t, "kubernetes.yaml"))
	require.NoError(t, err)
	runPods(t, string(text), "train", 4)
}

// So does the command of the pods of a manifest that the launcher prints.
func TestKubernetesLauncher(t *testing.T) {
	needMPICH(t)
	l := commandtest.NewLab(t)
	got := l.Train("--launcher", "kubernetes", "--launcher-option", "kubernetes.image=primus", "--nodes", "2", "--nproc", "2", "--max-restarts", "1", "global_batch_size=8")
	require.Zero(t, got.Code, got.Stderr)
	runPods(t, got.Out, "exp", 4)
}

// runPods runs the pods of a manifest, whose objects have a name, as ranks of one run.
func runPods(t *testing.T, manifest, name string, ranks int) {
	t.Helper()
	objects := map[string]kubernetesObject{}
	for decoder := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var o kubernetesObject
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		objects[o.Kind] = o
	}
	require.Contains(t, objects, "Service", "the pods need names")
	job, dir := objects["Job"].Spec, t.TempDir()
	assert.Equal(t, "Indexed", job.CompletionMode)
	assert.Equal(t, job.Completions, job.Parallelism, "all ranks run at the same time")
	pod, first := job.Template.Spec.Containers[0], name+"-0."+job.Template.Spec.Subdomain

	text, err := os.ReadFile(commandtest.NewLab(t).Text)
	require.NoError(t, err)
	corpus := filepath.Join(dir, "text.go")
	require.NoError(t, os.WriteFile(corpus, text, 0o600))
	experiment := filepath.Join(dir, "experiment.yaml")
	require.NoError(t, os.WriteFile(experiment, []byte(objects["ConfigMap"].Data["experiment.yaml"]), 0o600))
	var args, env []string
	for _, word := range pod.Command[1:] {
		word = strings.ReplaceAll(word, "/etc/primus/experiment.yaml", experiment)
		args = append(args, strings.Replace(word, "--master-addr="+first, "--master-addr=127.0.0.1", 1))
	}
	args = append(args, "workspace="+dir, "train_data_path="+corpus, "train_iters=2", "seq_length=32", "hidden_size=32",
		"ffn_hidden_size=64", "num_attention_heads=4", "num_query_groups=2", "num_layers=1", "--threads=1")
	for _, v := range pod.Env {
		if v.Name == "MASTER_ADDR" {
			assert.Equal(t, first, v.Value)
			v.Value = "127.0.0.1"
		}
		if v.Value != "" { // a secret
			env = append(env, v.Name+"="+v.Value)
		}
	}
	env = append(env, "PRIMUS_MPI_PORT="+strconv.Itoa(primustest.FreePort(t))) // others may listen at the one of the manifest
	var pods []*exec.Cmd
	outputs := make([]bytes.Buffer, job.Completions)
	for i := range outputs {
		cmd := commandtest.Child(t.Context(), append(env, "JOB_COMPLETION_INDEX="+strconv.Itoa(i)), args...)
		cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
		require.NoError(t, cmd.Start())
		pods = append(pods, cmd)
	}
	finished := 0
	for i, cmd := range pods {
		assert.NoError(t, cmd.Wait(), outputs[i].String())
		finished += strings.Count(outputs[i].String(), " finished\n")
	}
	assert.Contains(t, outputs[0].String(), fmt.Sprintf("\nranks       %d: ", ranks))
	assert.Equal(t, 1, finished, "one summary")
}
