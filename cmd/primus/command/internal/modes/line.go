package modes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/backend"
)

// The modes.
const (
	direct    = "direct"
	container = launch.Container
	slurm     = launch.Slurm
)

var modes = []string{direct, container, slurm}

// Reorder moves the options that stand before a mode behind its name, where the mode reads them. It
// returns other command lines as they are.
func Reorder(args []string) []string {
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case slices.Contains(append(modes, deps), word):
			return slices.Concat([]string{word}, args[:i], args[i+1:])
		case word == "--config" && i+1 < len(args):
			i++
		case word != "--debug" && word != "--dry-run" && !strings.HasPrefix(word, "--config="):
			return args
		}
	}
	return args
}

// line is a command line with modes.
type line struct {
	chain   []string // where the command runs, from the outside in
	inner   []string // what the first program elsewhere gets: the modes that follow, and the command
	command []string // of primus, without modes

	file    string   // of launcher settings
	options []string // launcher settings as KEY=VALUE
	env     []string // NAME=VALUE, or a file of shell assignments
	patches []string // scripts that run before the command
	log     string   // a file with all that is printed
	outer   string   // that file, if it is written here even when the command runs elsewhere

	dryRun, debug, silent, single bool

	notes []string         // what was given and has no effect
	vars  *backend.Environ // of this process, in which env is set while the command runs
}

// parse reads the words of a mode.
func parse(mode string, words []string) (*line, error) {
	l := &line{vars: backend.ProcessEnviron()}
	if err := l.read(mode, words); err != nil {
		return nil, err
	}
	for len(l.command) > 0 && l.command[0] == "--debug" { // an option of the Python program of Primus
		l.command, l.debug = l.command[1:], true
	}
	if len(l.command) == 0 {
		return nil, fmt.Errorf("given no command, want one after --, such as -- train pretrain --config exp.yaml")
	}
	return l, nil
}

// read reads the words of a mode, and of those that follow it.
func (l *line) read(mode string, words []string) error {
	switch mode {
	case container:
		return l.container(words)
	case slurm:
		return l.slurm(words)
	}
	return l.direct(words)
}

// common reads an option that all modes have. It returns how many words that takes, 0 for another
// word.
func (l *line) common(words []string) (int, error) {
	name, value, joined := strings.Cut(words[0], "=")
	switch name {
	case "--debug":
		l.debug = true
		return 1, nil
	case "--dry-run":
		l.dryRun = true
		return 1, nil
	case "--config":
		n := 1
		if !joined {
			if len(words) < 2 {
				return 0, fmt.Errorf("--config: given nothing, want the file of launcher settings")
			}
			value, n = words[1], 2
		}
		l.file = value
		return n, nil
	}
	return 0, nil
}

// direct reads the options of the mode for this node.
func (l *line) direct(words []string) error {
	for len(words) > 0 {
		if words[0] == "--" {
			l.command = words[1:]
			return nil
		}
		n, err := l.common(words)
		if err != nil {
			return err
		}
		if n == 0 {
			n, err = l.local(words)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			if strings.HasPrefix(words[0], "-") {
				return fmt.Errorf("direct: unknown option %s; options of a command follow --", words[0])
			}
			l.command = words
			return nil
		}
		words = words[n:]
	}
	return nil
}

// local reads an option of direct, as common does.
func (l *line) local(words []string) (int, error) {
	switch words[0] {
	case "--single":
		l.single = true
		return 1, nil
	case "--silent":
		l.silent = true
		return 1, nil
	case "--numa":
		l.notes = append(l.notes, "--numa has no effect: primus binds no process to a NUMA node; start it with numactl for that")
		return 1, nil
	case "--no-numa":
		return 1, nil
	}
	name, value, joined := strings.Cut(words[0], "=")
	if !slices.Contains([]string{"--env", "--patch", "--log_file", "--log-file", "--script"}, name) {
		return 0, nil
	}
	n := 1
	if !joined {
		if len(words) < 2 || words[1] == "--" {
			return 0, fmt.Errorf("%s: given nothing, want a value", name)
		}
		value, n = words[1], 2
	}
	switch name {
	case "--env":
		l.env = append(l.env, value)
	case "--patch":
		l.patches = append(l.patches, value)
	case "--script":
		if !strings.HasSuffix(filepath.ToSlash(value), "primus/cli/main.py") {
			return 0, fmt.Errorf("--script: given %s, but primus runs its own commands only; start this script with python3 or torchrun", value)
		}
	default:
		l.log = value
	}
	return n, nil
}

// container reads the options of the mode for containers: those of direct, and all options of
// docker run, without a list of them, so that a word after one is its value unless it begins with
// --.
func (l *line) container(words []string) error {
	l.chain = append(l.chain, container)
	var inside []string // options of direct, which are for primus in the container
	for len(words) > 0 && words[0] != "--" && strings.HasPrefix(words[0], "--") {
		n, err := l.common(words)
		if err != nil {
			return err
		}
		if n == 0 {
			if n, err = l.local(words); err != nil {
				return err
			}
			if name, _, _ := strings.Cut(words[0], "="); name != "--env" && name != "--log_file" && name != "--log-file" {
				inside = append(inside, words[:n]...)
			}
		}
		if n == 0 {
			n = l.setting(container, words, "--")
		}
		words = words[n:]
	}
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if l.inner == nil {
		l.outer = l.log
		l.inner = slices.Concat([]string{direct}, inside, words)
	}
	return l.direct(words)
}

// setting reads an option of another program as a launcher setting: --NAME=VALUE, --NAME VALUE or
// --NAME. Words that begin with dash are no values. It returns the number of words.
func (l *line) setting(section string, words []string, dash string) int {
	name, value, joined := strings.Cut(strings.TrimPrefix(words[0], "--"), "=")
	n := 1
	if !joined {
		value = "true"
		if len(words) > 1 && !strings.HasPrefix(words[1], dash) {
			value, n = words[1], 2
		}
	}
	if section == container && name == "clean" {
		l.notes = append(l.notes, "--clean has no effect: containers of others stay; docker rm removes them")
		return 1
	}
	l.options = append(l.options, section+"."+name+"="+value)
	return n
}

// slurmShort are the options of srun and sbatch with one letter.
var slurmShort = map[byte]string{
	'A': "account", 'a': "array", 'b': "begin", 'c': "cpus-per-task", 'C': "constraint", 'd': "dependency", 'D': "chdir", 'e': "error", 'G': "gpus",
	'H': "hold", 'i': "input", 'J': "job-name", 'k': "no-kill", 'L': "licenses", 'm': "distribution", 'M': "clusters", 'n': "ntasks", 'N': "nodes",
	'o': "output", 'O': "overcommit", 'p': "partition", 'q': "qos", 'Q': "quiet", 's': "oversubscribe", 't': "time", 'v': "verbose", 'w': "nodelist",
	'W': "wait", 'x': "exclude",
}

// slurm reads the options of the mode for Slurm: those of srun or sbatch, then a mode for the
// nodes, which is container unless direct is given.
func (l *line) slurm(words []string) error {
	l.chain = append(l.chain, slurm)
	command := "srun"
	for len(words) > 0 && words[0] != "--" {
		n, err := l.common(words)
		if err != nil {
			return err
		}
		if n > 0 {
			words = words[n:]
			continue
		}
		switch word := words[0]; {
		case word == "srun" || word == "sbatch":
			command, n = word, 1
		case strings.HasPrefix(word, "--"):
			n = l.setting(slurm, words, "-")
		case len(word) > 1 && word[0] == '-':
			name, ok := slurmShort[word[1]]
			if !ok {
				return fmt.Errorf("slurm: unknown option %s, want one of srun or sbatch; write it with its long name", word)
			}
			long := append([]string{"--" + name}, words[1:]...)
			if len(word) > 2 {
				long[0] += "=" + strings.TrimPrefix(word[2:], "=")
			}
			n = l.setting(slurm, long, "-")
		default:
			return fmt.Errorf("slurm: given %q, want options of %s and then -- and the command", word, command)
		}
		words = words[n:]
	}
	l.options = append(l.options, "slurm.command="+command)
	if len(words) > 0 {
		words = words[1:]
	}
	mode := container
	if len(words) > 0 && (words[0] == container || words[0] == direct) {
		mode, words = words[0], words[1:]
	}
	l.inner = append([]string{mode}, words...)
	return l.read(mode, words)
}
