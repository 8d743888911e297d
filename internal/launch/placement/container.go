package placement

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/launch"
)

// passedPrefixes begin the names of variables that a container gets when they are set.
var passedPrefixes = []string{"PRIMUS_", "TE_FL_", "TEFL_", "NCCL_", "RCCL_", "GLOO_", "IONIC_", "HIPBLASLT_", "OTEL_"}

// notPassed are variables of this machine.
var notPassed = []string{"PRIMUS_CLI_CONFIG", "PRIMUS_CONFIG", "PRIMUS_LAUNCHER", "PRIMUS_LAUNCHER_FILE"}

// container plans a container in which primus runs, with the paths of this machine.
func (r *Run) container(s *Settings, rest string) (*Plan, error) {
	c := s.Container
	p := &Plan{Launcher: launch.Container}
	runtime, err := c.runtime(exec.LookPath)
	if err != nil {
		p.Faults = append(p.Faults, err)
	}
	if c.Image == "" {
		return nil, s.fault("container.image", "given none, want the name of an image")
	}
	image := c.Image
	if named, ok := r.Lookup("DOCKER_IMAGE"); ok && named != "" {
		image = named
	}
	p.Argv = []string{runtime, "run", "--rm"}
	if c.Name != "" {
		job, _ := r.Lookup("SLURM_JOB_ID")
		p.Argv = append(p.Argv, "--name="+c.Name+"-"+cmp.Or(job, strconv.Itoa(os.Getpid())))
	}
	for _, o := range c.Options {
		p.Argv = append(p.Argv, o.Words()...)
		if o.Name == "security-opt" && slices.Contains(o.Values, "seccomp=unconfined") {
			p.Notes = append(p.Notes, "container.security-opt: seccomp=unconfined lets the processes of the container make every system call; without it the filter of the runtime stays")
		}
	}
	var missing []string
	for _, device := range c.Device {
		host, _, _ := strings.Cut(device, ":")
		if _, err := os.Stat(host); err == nil {
			p.Argv = append(p.Argv, "--device="+device)
		} else if slices.Contains(c.optional, device) {
			missing = append(missing, device)
		} else {
			p.Argv = append(p.Argv, "--device="+device)
			p.Faults = append(p.Faults, fmt.Errorf("container.device: %s: %w", device, errors.Unwrap(err)))
		}
	}
	if len(missing) > 0 && r.Devices {
		p.Notes = append(p.Notes, "not on this machine and left out, of the default devices: "+strings.Join(missing, ", "))
	}
	program := cmp.Or(c.Program, r.Program)
	p.Dirs = []string{r.Workspace}
	volumes, err := r.volumes(s, c.Program == "")
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		p.Argv = append(p.Argv, "--volume="+v)
	}
	vars, names := assignments(c.Env, "launcher file")
	p.Env = append(vars, settingsOff)
	for _, name := range r.Names {
		passed := slices.ContainsFunc(passedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if passed && !slices.Contains(notPassed, name) {
			names = append(names, name)
		}
	}
	for _, v := range p.Env {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if r.isSet(name) || slices.ContainsFunc(p.Env, func(v launch.Variable) bool { return v.Name == name }) {
			p.Argv = append(p.Argv, "--env="+name) // the runtime takes the value from its environment
		}
	}
	p.Argv = append(p.Argv, "--workdir="+r.Dir, image)
	p.Argv = append(p.Argv, r.args(program, rest, "--node-rank="+strconv.Itoa(r.NodeRank), "--master-addr="+r.MasterAddr)...)
	return p, nil
}

// runtime returns the program that runs containers.
func (c Container) runtime(look func(string) (string, error)) (string, error) {
	names := []string{"docker", "podman"}
	if c.Runtime != "" {
		names = []string{c.Runtime}
	}
	for _, name := range names {
		if _, err := look(name); err == nil {
			return name, nil
		}
	}
	return names[0], fmt.Errorf("--launcher container: no %s in PATH; install it, or name another one as container.runtime", strings.Join(names, " or "))
}

// volumes returns what a container sees of this machine: the working directory, where the results
// go, what flags name, and primus itself, each under its own name.
func (r *Run) volumes(s *Settings, withProgram bool) ([]string, error) {
	var volumes []string
	for _, v := range s.Container.Volume {
		parts := strings.Split(v, ":")
		if len(parts) > 3 || !filepath.IsAbs(parts[len(parts)-1]) && len(parts) == 1 || len(parts) > 1 && !filepath.IsAbs(parts[1]) {
			return nil, s.fault("container.volume", "given %q, want /path, /host:/path or /host:/path:ro", v)
		}
		if len(parts) == 1 {
			v += ":" + v
		}
		volumes = append(volumes, v)
	}
	writable := []string{r.Dir, r.Workspace}
	below := func(path string, dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	if below(r.Workspace, writable[:1]) {
		writable = writable[:1]
	}
	for _, dir := range writable {
		volumes = append(volumes, dir+":"+dir)
	}
	read := slices.Clone(r.Reads)
	if withProgram {
		read = append(read, r.Program)
	}
	for _, f := range r.Flags {
		if f.Path == NoPath || f.Value == "" {
			continue
		}
		path := f.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.Dir, path)
		}
		if f.Path == FilePath {
			path = filepath.Dir(path) // what a file extends lies beside it
		}
		read = append(read, path)
	}
	for _, path := range read {
		if _, err := os.Stat(path); err != nil || below(path, writable) {
			continue
		}
		writable = append(writable, path)
		volumes = append(volumes, path+":"+path+":ro")
	}
	return volumes, nil
}
