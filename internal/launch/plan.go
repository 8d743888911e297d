package launch

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Plan is what Run does: the processes of this node and the files that they read.
type Plan struct {
	Options
	WorldSize int // number of processes on all nodes
	Processes []Process
	Env       []Variable // for all processes, in addition to the environment of this one
	Files     []File
	Dir       string
	LogDir    string
	Notes     []string
}

// Process is a process of a plan.
type Process struct {
	Rank, LocalRank int // number of the first of its ranks
	Argv            []string
	Env             []Variable // for this process only

	starts int  // ranks of this node that it starts itself, whose output comes through pipes
	piped  bool // this is such a rank
}

// NewPlan returns the plan of a job on this node. The options must be resolved.
func NewPlan(job Job, o Options) (*Plan, error) {
	p := &Plan{
		Options: o, WorldSize: o.worldSize(job.PerDevice), Env: slices.Clone(job.Env), Files: job.Files, Dir: job.Dir, LogDir: job.LogDir, Notes: job.Notes,
	}
	if len(job.PythonPath) > 0 {
		path := job.PythonPath
		if before := os.Getenv("PYTHONPATH"); before != "" {
			path = append(slices.Clone(path), before)
		}
		p.Env = append(p.Env, Variable{"PYTHONPATH", strings.Join(path, string(os.PathListSeparator)), "source tree of the framework"})
	}
	p.addDefaults(
		Variable{"PYTHONUNBUFFERED", "1", "launcher: lines come when they are written"},
		Variable{"PYTHONFAULTHANDLER", "1", "launcher: a crash shows where Python was"},
	)
	switch o.Launcher {
	case Direct:
		p.direct(job)
	case Torchrun:
		p.torchrun(job)
	default:
		return nil, fmt.Errorf("--launcher %s: it starts primus on other nodes and has no processes of its own", o.Launcher)
	}
	return p, nil
}

// addDefaults adds the variables that neither the job nor the environment of this process sets.
func (p *Plan) addDefaults(vars ...Variable) {
	for _, v := range vars {
		_, set := os.LookupEnv(v.Name)
		if !set && !slices.ContainsFunc(p.Env, func(other Variable) bool { return other.Name == v.Name }) {
			p.Env = append(p.Env, v)
		}
	}
}

// direct plans the processes of this node with the variables that torchrun sets.
func (p *Plan) direct(job Job) {
	argv := append([]string{p.Python}, job.Program...)
	if !job.PerDevice {
		p.Processes = []Process{{Rank: p.NodeRank, Argv: argv}}
		return
	}
	if p.PerNode > 1 {
		p.addDefaults(Variable{"OMP_NUM_THREADS", "1", "launcher: several processes share the CPUs"})
	}
	p.addDefaults(Variable{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", "launcher: a collective that fails ends its rank"})
	for local := range p.PerNode {
		rank := p.NodeRank*p.PerNode + local
		var env []Variable
		for _, v := range [][2]string{
			{"RANK", strconv.Itoa(rank)}, {"LOCAL_RANK", strconv.Itoa(local)}, {"WORLD_SIZE", strconv.Itoa(p.WorldSize)},
			{"LOCAL_WORLD_SIZE", strconv.Itoa(p.PerNode)}, {"GROUP_RANK", strconv.Itoa(p.NodeRank)}, {"GROUP_WORLD_SIZE", strconv.Itoa(p.Nodes)},
			{"ROLE_NAME", "default"}, {"ROLE_RANK", strconv.Itoa(rank)}, {"ROLE_WORLD_SIZE", strconv.Itoa(p.WorldSize)},
			{"MASTER_ADDR", p.MasterAddr}, {"MASTER_PORT", strconv.Itoa(p.MasterPort)},
			{"TORCHELASTIC_RESTART_COUNT", "0"}, {"TORCHELASTIC_MAX_RESTARTS", "0"}, {"TORCHELASTIC_RUN_ID", "none"},
		} {
			env = append(env, Variable{v[0], v[1], "launcher"})
		}
		p.Processes = append(p.Processes, Process{Rank: rank, LocalRank: local, Argv: argv, Env: env})
	}
}

// viaPipe is the script of a rank below torchrun: it writes to the pipe of the rank, where primus
// has made one, and begins with its process, $$ of the shell, which torchrun reads as half of $$$$.
// How torchrun itself passes output on differs between its versions.
const viaPipe = `[ -p "$0-$RANK" ] && exec >"$0-$RANK" 2>&1 && echo "` + pidMark + `$$$$"; exec "$@"`

// pidMark begins the line with which a rank below torchrun names its process.
const pidMark = "primus: process "

// pipePrefix begins the names of the pipes of ranks.
func (p *Plan) pipePrefix() string { return filepath.Join(cmp.Or(p.LogDir, "."), "pipe") }

// torchrun plans the one process that starts the others of this node.
func (p *Plan) torchrun(job Job) {
	program := []string{"torchrun"}
	if p.Python != "python3" {
		program = []string{p.Python, "-m", "torch.distributed.run"}
	}
	perNode := p.PerNode
	if !job.PerDevice {
		perNode = 1
	}
	// A setting for a rank that there is not leaves the output of all others alone. The default says
	// the same, but torchrun of PyTorch 1.13 cannot read it under Python 3.11.
	none := Variable{Value: strconv.Itoa(perNode) + ":1", Source: "launcher: the output of ranks comes through pipes"}
	for _, name := range []string{"PET_REDIRECTS", "PET_TEE"} {
		none.Name = name
		p.addDefaults(none)
	}
	argv := append(program,
		"--nproc_per_node", strconv.Itoa(perNode), "--nnodes", strconv.Itoa(p.Nodes), "--node_rank", strconv.Itoa(p.NodeRank),
		"--master_addr", p.MasterAddr, "--master_port", strconv.Itoa(p.MasterPort), "--no_python", "sh", "-c", viaPipe, p.pipePrefix(), p.Python,
	)
	p.Processes = []Process{{Rank: p.NodeRank * perNode, Argv: append(argv, job.Program...), starts: perNode}}
}

// Shell returns the command of a process for a shell, with the directory and the variables. Secrets
// are replaced by asterisks.
func (p *Plan) Shell(of Process) string {
	var words []string
	if p.Dir != "" {
		words = append(words, "cd", Quote(p.Dir), "&&")
	}
	for _, v := range slices.Concat(p.Env, of.Env) {
		words = append(words, v.Name+"="+Quote(v.Shown()))
	}
	for _, word := range of.Argv {
		words = append(words, Quote(word))
	}
	return strings.Join(words, " ")
}

// Quote returns a word quoted for a shell.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}
