package placement

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
)

// Run is a command line of primus that runs elsewhere.
type Run struct {
	launch.Options // resolved, with the whole chain of launchers as it was given

	Name      string   // of the experiment
	Program   string   // the file of primus
	Command   []string // such as train pretrain
	Flags     []Flag   // but those of the launcher
	Overrides []string
	Dir       string   // the working directory
	RunDir    string   // where the run leaves its files
	Workspace string   // the directory above it that the experiment names
	Reads     []string // what it reads besides the files and directories of flags
	Devices   bool     // the framework trains on the devices of a node
	Plain     bool     // Command is all that primus gets there

	// Resolved is the experiment without secrets, with the overrides in it, for a place that does not
	// see the files of this machine. Secrets are the variables that it reads, with the parameters that
	// they hold.
	Resolved []byte
	Secrets  map[string]string

	Lookup func(name string) (string, bool) // in the environment
	Names  []string                         // of the variables that are set
}

// Flag is a flag of the command line.
type Flag struct {
	Name, Value string
	Path        PathKind
}

// PathKind says whether the value of a flag is a path.
type PathKind int

// The kinds of values of flags.
const (
	NoPath PathKind = iota
	FilePath
	DirPath
)

// Plan says what to do on this machine so that the run takes place elsewhere.
type Plan struct {
	Launcher string
	Argv     []string          // the command to run, nil for a plan with a manifest
	Env      []launch.Variable // that the command gets besides the environment of this process
	Unset    []string          // variables that it does not get
	Dirs     []string          // that are made before
	Files    []launch.File     // that are written before
	Manifest string            // to print
	Notes    []string
	Faults   []error // the reasons why this machine cannot do it
}

// New plans a run for the first launcher of its chain.
func New(r Run, s *Settings) (*Plan, error) {
	elsewhere, local, err := launch.Chain(r.Launcher)
	if err != nil {
		return nil, err
	}
	if len(elsewhere) == 0 {
		return nil, fmt.Errorf("--launcher %s: it starts processes on this node, and runs primus nowhere else", r.Launcher)
	}
	if err := CheckOverrides(elsewhere[0], r.Overrides); err != nil {
		return nil, err
	}
	rest := strings.Join(append(slices.Clone(elsewhere[1:]), local), ",")
	switch elsewhere[0] {
	case launch.Slurm:
		return r.slurm(s, rest)
	case launch.Container:
		return r.container(s, rest)
	default:
		return r.kubernetes(s, rest)
	}
}

// CheckOverrides returns an error for overrides whose values must not be on the command line that a
// launcher passes on.
func CheckOverrides(launcher string, overrides []string) error {
	if launcher == launch.Kubernetes {
		return nil // they are in the resolved experiment, which has none
	}
	var faults []error
	for i, word := range overrides {
		name, value, ok := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !ok && strings.HasPrefix(word, "--") && i+1 < len(overrides) {
			value = overrides[i+1]
		}
		if secret.Value(name, value) {
			faults = append(faults, fmt.Errorf("override %s: its value would be on a command line that everybody can read; write %s: ${%s} into the experiment and set the variable",
				name, name, strings.ToUpper(name[strings.LastIndex(name, ".")+1:])))
		}
	}
	return errors.Join(faults...)
}

// args returns the command line of primus elsewhere: its own and the flags of the launcher that
// follows.
func (r *Run) args(program, rest string, more ...string) []string {
	argv := append([]string{program}, r.Command...)
	if r.Plain {
		return argv
	}
	for _, f := range r.Flags {
		argv = append(argv, "--"+f.Name+"="+f.Value)
	}
	argv = append(argv, "--launcher="+rest, "--nodes="+strconv.Itoa(r.Nodes), "--nproc-per-node="+strconv.Itoa(r.PerNode), "--master-port="+strconv.Itoa(r.MasterPort))
	return slices.Concat(argv, more, r.Overrides)
}

// settingsOff keeps the settings of files, which the flags have, from being read again.
var settingsOff = launch.Variable{Name: "PRIMUS_CLI_CONFIG", Value: "none", Source: "launcher: the flags have the settings of files"}

// ofThisNode are variables that say which process this is, and are wrong elsewhere.
var ofThisNode = []string{"NNODES", "NODE_RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GPUS_PER_NODE", "MASTER_ADDR", "MASTER_PORT"}

// assignments returns the variables of a list of NAME=VALUE, and the names without a value.
func assignments(list []string, source string) (vars []launch.Variable, names []string) {
	for _, word := range list {
		name, value, ok := strings.Cut(word, "=")
		if ok {
			vars = append(vars, launch.Variable{Name: name, Value: value, Source: source})
		} else {
			names = append(names, name)
		}
	}
	return vars, names
}

// isSet reports whether a variable has a value that is not empty.
func (r *Run) isSet(name string) bool {
	value, ok := r.Lookup(name)
	return ok && value != ""
}

// file returns a file below the run directory.
func (r *Run) file(name string) string { return filepath.Join(r.RunDir, "launch", name) }

// Environ returns the environment of the command of a plan.
func (p *Plan) Environ(environ []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(p.Unset, name)
	})
	for _, v := range p.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// Shell returns the command of a plan for a shell. Secrets are replaced by asterisks.
func (p *Plan) Shell() string {
	var words []string
	if len(p.Unset) > 0 {
		words = append(words, "env")
		for _, name := range p.Unset {
			words = append(words, "-u", name)
		}
	}
	for _, v := range p.Env {
		words = append(words, v.Name+"="+launch.Quote(v.Shown()))
	}
	for _, word := range p.Argv {
		words = append(words, launch.Quote(word))
	}
	return strings.Join(words, " ")
}

// Write makes the directories and writes the files of a plan.
func (p *Plan) Write() error {
	for _, dir := range p.Dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("directory of the run: %w", err)
		}
	}
	for _, f := range p.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return fmt.Errorf("directory of the launcher's files: %w", err)
		}
		if err := durable.WritePrivate(f.Path, func(w io.Writer) error {
			_, err := io.WriteString(w, f.Content)
			return err
		}); err != nil {
			return fmt.Errorf("file of the launcher: %w", err)
		}
	}
	return nil
}
