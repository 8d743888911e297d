package placement_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/placement"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is an environment.
type world map[string]string

func (w world) lookup(name string) (string, bool) {
	value, ok := w[name]
	return value, ok
}

// run returns a run of two nodes in a directory of the test.
func run(t *testing.T, launcher string, env world) placement.Run {
	t.Helper()
	dir := t.TempDir()
	o, err := launch.Options{Nodes: 2, PerNode: 4, Launcher: launcher, Grace: 30 * time.Second}.Resolve(env.lookup)
	require.NoError(t, err)
	o.Launcher, o.Grace = launcher, 30*time.Second
	r := placement.Run{
		Options: o, Name: "Llama 3.1_8B", Program: "/opt/primus", Command: []string{"train", "pretrain"},
		Flags:     []placement.Flag{{Name: "config", Value: "exp.yaml", Path: placement.FilePath}, {Name: "threads", Value: "2"}},
		Overrides: []string{"lr=1e-3", "--name", "two words"}, Dir: dir, RunDir: filepath.Join(dir, "out", "g", "u", "e"), Workspace: filepath.Join(dir, "out"),
		Devices: true, Resolved: []byte("work_group: g\n"), Lookup: env.lookup,
	}
	for name := range env {
		r.Names = append(r.Names, name)
	}
	return r
}

// load reads the text of a launcher file, and options.
func load(t *testing.T, text string, options ...string) (*placement.Settings, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "launcher.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return placement.Load(t.Context(), formats.All(), t.TempDir(), file, options)
}

// plan plans a run with the text of a launcher file, and options.
func plan(t *testing.T, r placement.Run, text string, options ...string) *placement.Plan {
	t.Helper()
	s, err := load(t, text, options...)
	require.NoError(t, err)
	p, err := placement.New(r, s)
	require.NoError(t, err)
	return p
}

func TestLayers(t *testing.T) {
	home := t.TempDir()
	user := filepath.Join(home, placement.UserFile)
	require.NoError(t, os.WriteFile(user, []byte("slurm:\n  partition: mine\n  time: 1:30:00\ncontainer:\n  options:\n    volume: [/a:/a]\n"), 0o644))
	file := filepath.Join(home, "given.yaml")
	require.NoError(t, os.WriteFile(file, []byte("slurm: {partition: theirs, gpus_per_node: 4}\ncontainer: {options: {volume: [/b:/b], device: []}}\n"), 0o644))
	s, err := placement.Load(t.Context(), formats.All(), home, file, []string{"slurm.account=me", "container.volume=/c:/c"})
	require.NoError(t, err)
	assert.Equal(t, 4, s.Slurm.GPUsPerNode)
	assert.Equal(t, []string{"/a:/a", "/b:/b", "/c:/c"}, s.Container.Volume, "volumes of all layers count")
	assert.Empty(t, s.Container.Device, "an empty list drops those before")
	sources := map[string]string{}
	for _, v := range s.Values(launch.Slurm) {
		sources[v.Path] = v.Text + " " + v.Source
	}
	assert.Equal(t, map[string]string{
		"slurm.partition": "theirs " + file + ":1:20", "slurm.time": "1:30:00 " + user + ":3:9", "slurm.exclusive": "true defaults.yaml:3:14",
		"slurm.gpus-per-node": "4 " + file + ":1:43", "slurm.account": `me override 1 "slurm.account=me"`,
	}, sources, "a time keeps its spelling, and each value knows where it was written")
}

// The file that Primus ships has keys for things that its launcher does in its own way.
func TestTheFileOfPrimus(t *testing.T) {
	s, err := load(t, `
main: {debug: false, dry_run: false}
slurm: {debug: false, dry_run: false, nodes: 2, gpus_per_node: 8, time: "4:00:00"}
container:
  debug: false
  dry_run: false
  options: {image: "rocm/primus:v26.5", privileged: "true", volume: [], env: [MASTER_ADDR]}
direct: {debug: false, gpus_per_node: 8, master_port: 1234, nnodes: 1, master_addr: localhost, script: primus/cli/main.py, numa: auto, log_file: "", patch: [], env: [A=1]}
`)
	require.NoError(t, err)
	var warned []string
	for _, w := range s.Warnings {
		warned = append(warned, w.Path)
	}
	assert.Equal(t, []string{"direct.script", "direct.env"}, warned)
	assert.Contains(t, s.Container.Options, placement.Option{Name: "privileged"})
}

func TestWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		"slrum: {}":              `slrum: unknown section, want one of direct, container, kubernetes, main, slurm`,
		"slurm: 3":               "slurm: ",
		"slurm: {command: qsub}": `slurm.command: given "qsub", want sbatch or srun`,
		"slurm: {nodes: many}":   "nodes: ",
		"kubernetes: {imag: x}":  "kubernetes.imag: unknown key",
		"container: {options: {wandb_api_key: secret}}": "container.wandb-api-key: is a secret",
		"- a": "",
	} {
		_, err := load(t, text)
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "secret}", "the value of a secret is in no error")
	}
	_, err := load(t, "{}", "container.env=HF_TOKEN=hf_abc")
	require.ErrorContains(t, err, "set the variable and give its name alone")
	assert.NotContains(t, err.Error(), "hf_abc")
}

func TestSlurmScript(t *testing.T) {
	r := run(t, "slurm", world{"NNODES": "9", "HF_TOKEN": "hf_abc"})
	p := plan(t, r, "slurm: {partition: gpu, qos: [a, b], exclusive: false, setup: [module load rocm], env: [HF_TOKEN, NCCL_DEBUG=INFO]}")
	script := filepath.Join(r.RunDir, "launch", "slurm.sh")
	assert.Equal(t, []string{"sbatch", script}, p.Argv)
	require.Len(t, p.Files, 1)
	assert.Equal(t, strings.ReplaceAll(`#!/bin/bash
#SBATCH '--job-name=Llama 3.1_8B'
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --chdir=DIR
#SBATCH --output=DIR/out/g/u/e/launch/slurm-%j.out
#SBATCH --time=4:00:00
#SBATCH --partition=gpu
#SBATCH --qos=a
#SBATCH --qos=b

module load rocm
unset NNODES NODE_RANK RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GPUS_PER_NODE MASTER_ADDR MASTER_PORT
exec srun --nodes=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --cpu-bind=none \
  /opt/primus train pretrain --config=exp.yaml --threads=2 --launcher=direct --nodes=2 --nproc-per-node=4 --master-port=1234 lr=1e-3 --name 'two words'
`, "DIR", r.Dir), p.Files[0].Content)
	environ := p.Environ([]string{"NNODES=9", "HF_TOKEN=hf_abc"})
	assert.Equal(t, []string{"HF_TOKEN=hf_abc", "NCCL_DEBUG=INFO", "PRIMUS_CLI_CONFIG=none"}, environ)
	assert.NotContains(t, p.Shell()+p.Files[0].Content, "hf_abc")
	if bash, err := exec.LookPath("bash"); err == nil {
		require.NoError(t, p.Write())
		out, err := exec.Command(bash, "-n", script).CombinedOutput()
		assert.NoError(t, err, string(out))
	}
	_, err := load(t, "slurm: {ntasks_per_node: 8}")
	require.NoError(t, err)
	s, _ := load(t, "slurm: {ntasks_per_node: 8}")
	_, err = placement.New(r, s)
	assert.ErrorContains(t, err, "slurm.ntasks-per-node: given 8, want 1")
}

func TestSrun(t *testing.T) {
	inside := plan(t, run(t, "slurm,container,torchrun", world{"SLURM_JOB_ID": "3"}), "slurm: {partition: gpu}", "container.image=mine")
	line := inside.Shell()
	assert.Contains(t, line, "srun --nodes=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --cpu-bind=none /opt/primus train pretrain")
	assert.Contains(t, line, "--launcher=container,torchrun")
	assert.Contains(t, line, "--launcher-option=container.image=mine", "the next launcher gets the settings")
	assert.Contains(t, line, "--launcher-file=")
	assert.NotContains(t, line, "partition", "the allocation has it")
	restarted := run(t, "slurm", world{"SLURM_JOB_ID": "3"})
	restarted.Flags = append(restarted.Flags, placement.Flag{Name: "max-restarts", Value: "3"})
	assert.Contains(t, plan(t, restarted, "{}").Shell(), "--kill-on-bad-exit=0", "the other nodes go on")
	outside := plan(t, run(t, "slurm", world{}), "slurm: {command: srun, partition: gpu}")
	assert.Contains(t, outside.Shell(), "--partition=gpu")
	assert.NotContains(t, outside.Shell(), "--launcher-file=")
}

func TestContainerLine(t *testing.T) {
	env := world{"HF_TOKEN": "hf_abc", "NCCL_DEBUG": "INFO", "TE_FL_PREFER": "vendor", "EMPTY": "", "HOME": "/root", "PRIMUS_LAUNCHER": "container", "NODE_RANK": "1", "MASTER_ADDR": "n0"}
	r := run(t, "container,torchrun", env)
	other := t.TempDir()
	r.Flags = append(r.Flags, placement.Flag{Name: "backend-path", Value: other, Path: placement.DirPath})
	r.Program, r.Reads = filepath.Join(other, "bin", "primus"), []string{"/dev"}
	p := plan(t, r, `
container:
  options:
    runtime: sh
    device: [/dev/null]
    volume: [/data:/data:ro, /models]
    env: [A=1, EMPTY, ABSENT, WANDB_API_KEY=w_abc]
    security_opt: [a, b]
    privileged: true
`)
	require.Empty(t, p.Faults)
	assert.Len(t, p.Env, 3, "A, WANDB_API_KEY and the settings")
	line := p.Shell()
	for _, want := range []string{
		"A=1 WANDB_API_KEY='***' PRIMUS_CLI_CONFIG=none sh run --rm --name=primus-training-", " --security-opt=a --security-opt=b ", " --privileged ", " --device=/dev/null ",
		" --volume=/data:/data:ro --volume=/models:/models --volume=" + r.Dir + ":" + r.Dir + " --volume=/dev:/dev:ro --volume=" + other + ":" + other + ":ro ",
		" --env=A --env=HF_TOKEN --env=NCCL_DEBUG --env=PRIMUS_CLI_CONFIG --env=TE_FL_PREFER --env=WANDB_API_KEY --workdir=" + r.Dir + " rocm/primus:v26.5 " + r.Program + " train pretrain ",
		" --launcher=torchrun --nodes=2 --nproc-per-node=4 --master-port=1234 --node-rank=1 --master-addr=n0 lr=1e-3 ",
	} {
		assert.Contains(t, line, want)
	}
	for _, hidden := range []string{"hf_abc", "w_abc", "HOME", "PRIMUS_LAUNCHER", "EMPTY", "/dev/kfd"} {
		assert.NotContains(t, line, hidden)
	}
	assert.Contains(t, p.Environ(nil), "WANDB_API_KEY=w_abc")
	assert.Equal(t, []string{r.Workspace}, p.Dirs)

	filtered := plan(t, r, "container: {runtime: sh, device: []}")
	assert.NotContains(t, filtered.Shell(), "seccomp")
	assert.Empty(t, filtered.Notes)
	unfiltered := plan(t, r, "container: {runtime: sh, device: [], security-opt: seccomp=unconfined}")
	assert.Contains(t, unfiltered.Shell(), " --security-opt=seccomp=unconfined ")
	require.Len(t, unfiltered.Notes, 1)
	assert.Contains(t, unfiltered.Notes[0], "every system call")

	missing := plan(t, r, "container: {runtime: no-such-engine, device: [/dev/no-such-device]}")
	require.Len(t, missing.Faults, 2)
	assert.ErrorContains(t, missing.Faults[0], "no no-such-engine in PATH")
	assert.ErrorContains(t, missing.Faults[1], "/dev/no-such-device")
	for text, want := range map[string]string{"container: {volume: relative}": `given "relative"`, `container: {image: ""}`: "container.image: given none"} {
		s, err := load(t, text)
		require.NoError(t, err)
		_, err = placement.New(r, s)
		assert.ErrorContains(t, err, want)
	}
}

// The docker of this machine reads the line; without an engine that is as far as it comes.
func TestDockerReadsTheLine(t *testing.T) {
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip(err)
	}
	p := plan(t, run(t, "container", world{"HF_TOKEN": "x"}), "container: {runtime: docker, privileged: true, volume: [/data:/data:ro], shm-size: 64g}")
	docker := func(argv ...string) string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = []string{"DOCKER_HOST=unix:///nonexistent/docker.sock", "HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		return string(out)
	}
	assert.Contains(t, docker(p.Argv...), "nonexistent/docker.sock", "it has read the line and looks for the engine")
	assert.Contains(t, docker("docker", "run", "--no-such-flag", "image"), "unknown flag")
}

func TestSecretsOfTheCommandLine(t *testing.T) {
	for _, launcher := range []string{"slurm", "container"} {
		r := run(t, launcher, world{})
		r.Overrides = []string{"lr=1", "wandb_api_key=w_abc", "--data.hf_token", "hf_abc", "tokenizer=x"}
		s, err := load(t, "{}")
		require.NoError(t, err)
		_, err = placement.New(r, s)
		require.ErrorContains(t, err, "override wandb_api_key: ")
		require.ErrorContains(t, err, "write data.hf_token: ${HF_TOKEN} into the experiment and set the variable")
		assert.NotContains(t, err.Error(), "abc")
	}
}

// part reports where a document lacks what another one has.
func part(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for key, value := range want {
			other, ok := object[key]
			if !ok {
				return "." + key + " is not there"
			}
			if at := part(value, other); at != "" {
				return "." + key + at
			}
		}
	case []any:
		list, _ := got.([]any)
		if len(list) < len(want) {
			return " is shorter"
		}
		for i := range want {
			if at := part(want[i], list[i]); at != "" {
				return "[]" + at
			}
		}
	default:
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			return ": " + string(a) + " became " + string(b)
		}
	}
	return ""
}

func TestManifest(t *testing.T) {
	r := run(t, "kubernetes,torchrun", world{"HF_TOKEN": "hf_abc", "NCCL_DEBUG": "INFO", "NCCL_TOKEN": "n_abc", "HOME": "/root"})
	policy := filepath.Join(r.Dir, "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("prefer: vendor\n"), 0o644))
	r.Flags = append(r.Flags, placement.Flag{Name: "policy", Value: "policy.yaml", Path: placement.FilePath}, placement.Flag{Name: "configs-dir", Value: "presets", Path: placement.DirPath})
	r.Resolved, r.Secrets = []byte("wandb_api_key: ${WANDB_API_KEY}\n"), map[string]string{"WANDB_API_KEY": "modules.pre_trainer.wandb_api_key"}
	p := plan(t, r, `
kubernetes:
  namespace: training
  secret: tokens
  env: [A=1]
  cpu: "8"
  volume: [results:`+r.Workspace+`, /data:/data:ro]
  node_selector: {gpu: mi300}
  host_network: true
  privileged: true
  image_pull_secret: registry
  ttl_seconds_after_finished: 60
  active_deadline_seconds: 3600
  service_account: a
  priority_class: b
  runtime_class: c
`)
	assert.Empty(t, p.Argv)
	assert.Empty(t, p.Notes)
	for _, hidden := range []string{"hf_abc", "n_abc", "/root", "configs-dir", "lr=1e-3"} {
		assert.NotContains(t, p.Manifest, hidden)
	}
	objects := map[string]*document.Map{}
	for _, text := range strings.Split(p.Manifest, "---\n") {
		v, _, err := formats.All().Parse(t.Context(), "m.yaml", []byte(text))
		require.NoError(t, err)
		m, ok := v.Map()
		require.True(t, ok)
		kind, _ := m.Get("kind")
		objects[kind.Text()] = m
	}
	require.Len(t, objects, 3)
	text := func(kind, path string) string {
		v, ok := objects[kind].Get(path)
		require.True(t, ok, path)
		return v.Text()
	}
	assert.Equal(t, "llama-3-1-8b", text("Job", "metadata.name"))
	assert.Equal(t, "Indexed", text("Job", "spec.completionMode"))
	assert.Equal(t, "2", text("Job", "spec.completions"))
	assert.Equal(t, "llama-3-1-8b", text("Job", "spec.template.spec.subdomain"))
	assert.Equal(t, "None", text("Service", "spec.clusterIP"))
	data, _ := objects["ConfigMap"].Lookup("data")
	files, _ := data.Map()
	assert.Equal(t, map[string]any{"experiment.yaml": string(r.Resolved), "policy-policy.yaml": "prefer: vendor\n"}, files.Any())
	containers, _ := objects["Job"].Get("spec.template.spec.containers")
	list, _ := containers.List()
	container, _ := list[0].Map()
	assert.Equal(t, []any{
		"primus", "train", "pretrain", "--config=/etc/primus/experiment.yaml", "--threads=2", "--policy=/etc/primus/policy-policy.yaml", "--launcher=torchrun",
		"--nodes=2", "--nproc-per-node=4", "--master-port=1234", "--master-addr=llama-3-1-8b-0.llama-3-1-8b",
	}, container.Any()["command"])
	fromSecret := func(name string, optional bool) map[string]any {
		ref := map[string]any{"name": "tokens", "key": name}
		if optional {
			ref["optional"] = true
		}
		return map[string]any{"name": name, "valueFrom": map[string]any{"secretKeyRef": ref}}
	}
	assert.Equal(t, []any{
		map[string]any{"name": "A", "value": "1"}, fromSecret("HF_TOKEN", true), map[string]any{"name": "NCCL_DEBUG", "value": "INFO"}, fromSecret("NCCL_TOKEN", true),
		fromSecret("WANDB_API_KEY", false), map[string]any{"name": "PRIMUS_CLI_CONFIG", "value": "none"},
	}, container.Any()["env"])
	assert.Equal(t, map[string]any{"limits": map[string]any{"cpu": "8", "amd.com/gpu": "4"}}, container.Any()["resources"])

	// kubectl reads objects with pods into its own types and writes them again, without what these
	// do not have.
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip(err)
	}
	job, err := objects["Job"].MarshalJSON()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "job.json")
	require.NoError(t, os.WriteFile(file, job, 0o644))
	out, err := exec.Command("kubectl", "set", "env", "--local", "-f", file, "ADDED=1", "-o", "json").Output()
	require.NoError(t, err)
	var want, got map[string]any
	require.NoError(t, json.Unmarshal(job, &want))
	require.NoError(t, json.Unmarshal(out, &got))
	assert.Empty(t, part(want, got))
}

func TestManifestWithoutASecret(t *testing.T) {
	r := run(t, "kubernetes", world{"HF_TOKEN": "hf_abc"})
	p := plan(t, r, "{}")
	assert.NotContains(t, p.Manifest, "HF_TOKEN")
	require.Len(t, p.Notes, 2)
	assert.Contains(t, p.Notes[0]+p.Notes[1], "variable HF_TOKEN is a secret and left out")
	assert.Contains(t, p.Notes[0]+p.Notes[1], "is in no volume of the pods")
	r.Secrets = map[string]string{"KEY": "modules.pre_trainer.key"}
	r.Flags = append(r.Flags, placement.Flag{Name: "serve-token-file", Value: "tokens", Path: placement.FilePath})
	s, err := load(t, "kubernetes: {env: [B_KEY=b_abc], volume: [nothing]}")
	require.NoError(t, err)
	_, err = placement.New(r, s)
	for _, want := range []string{"kubernetes.secret: parameter modules.pre_trainer.key is a secret", "--serve-token-file: the file holds secrets", "B_KEY is a secret", `kubernetes.volume: given "nothing"`} {
		require.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "b_abc")
}

func TestWithVariables(t *testing.T) {
	v, _, err := formats.All().Parse(t.Context(), "e.yaml", []byte("a: {hf_token: x1, api-key: 'two words', train_tokens: '5'}\nb: [{hf_token: x2}, {hf_token: x1}]\nhf_token: ''\nc: ${X}\n"))
	require.NoError(t, err)
	m, _ := v.Map()
	text, params, err := placement.WithVariables(m)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"HF_TOKEN": "a.hf_token", "API_KEY": "a.api-key", "HF_TOKEN_2": "b[0].hf_token"}, params)
	assert.NotContains(t, string(text), "x1")
	loaded, _, err := formats.All().Parse(t.Context(), "e.yaml", text)
	require.NoError(t, err)
	secrets := world{"HF_TOKEN": "x1", "API_KEY": "two words", "HF_TOKEN_2": "x2"}
	loaded, _, err = document.Substitute(loaded, secrets.lookup)
	require.NoError(t, err)
	assert.True(t, loaded.Equal(v), "%s", text)
}

// A file that says a key twice is a mistake.
func TestKeysGivenTwice(t *testing.T) {
	_, err := load(t, "slurm: {time: 1}\ncontainer: {}\nslurm: {nodes: 2}\n")
	assert.ErrorContains(t, err, "slurm: is given twice, first at ")
}

// TestPage checks that the launcher file of docs/howto/launching.md loads, and that the page names
// every key of a section.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto", "launching.md"))
	require.NoError(t, err)
	page := string(text)
	_, after, ok := strings.Cut(page, "\n    slurm:\n")
	require.True(t, ok)
	file := "slurm:\n"
	for line := range strings.Lines(after) {
		if line = strings.TrimPrefix(line, "    "); line == "\n" {
			break
		}
		file += line
	}
	s, err := load(t, file)
	require.NoError(t, err)
	assert.Empty(t, s.Warnings)
	assert.Equal(t, "tokens", s.Kubernetes.Secret)
	assert.Contains(t, s.Slurm.Options, placement.Option{Name: "partition", Values: []string{"gpu"}})
	for section, into := range map[string]any{"slurm": &placement.Slurm{}, "container": &placement.Container{}, "kubernetes": &placement.Kubernetes{}, "direct": &placement.Direct{}} {
		for _, p := range document.Parameters(into) {
			name := strings.ReplaceAll(p.Name, "-", "_")
			found := strings.Contains(page, "`"+section+"."+name+"`") || strings.Contains(page, "`"+name+"`") || strings.Contains(file, " "+name+":")
			assert.True(t, found, "%s.%s", section, name)
		}
	}
}

func TestComplete(t *testing.T) {
	s, err := load(t, "slurm: {nodes: 4, gpus_per_node: 2}\ndirect: {nnodes: 3, gpus_per_node: 1, master_port: 99, master_addr: far}")
	require.NoError(t, err)
	for _, tt := range []struct {
		give launch.Options
		env  world
		want launch.Options
	}{
		{launch.Options{Launcher: "slurm"}, world{}, launch.Options{Launcher: "slurm", Nodes: 4, PerNode: 2, MasterPort: 99, MasterAddr: "far"}},
		{launch.Options{Launcher: "container"}, world{}, launch.Options{Launcher: "container", Nodes: 3, PerNode: 1, MasterPort: 99, MasterAddr: "far"}},
		{launch.Options{Nodes: 1, PerNode: 8, MasterPort: 7, MasterAddr: "x"}, world{}, launch.Options{Nodes: 1, PerNode: 8, MasterPort: 7, MasterAddr: "x"}},
		{launch.Options{}, world{"NNODES": "1", "GPUS_PER_NODE": "1", "MASTER_PORT": "1", "MASTER_ADDR": "y"}, launch.Options{}},
	} {
		got := tt.give
		s.Complete(&got, tt.env.lookup)
		assert.Equal(t, tt.want, got)
	}
}
