package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/suggest"
)

// The launchers that start the processes of a framework on this node.
const (
	Direct   = "direct"   // this program starts them
	Torchrun = "torchrun" // torchrun starts them
)

// The launchers that run primus elsewhere, where one of the others follows.
const (
	Slurm      = "slurm"      // on each node of a Slurm job
	Container  = "container"  // in a container of docker or podman on this node
	Kubernetes = "kubernetes" // in each pod of a Kubernetes job
)

// Launchers returns the names of the launchers, from those that run primus elsewhere to those that
// start processes. A chain of them is in this order.
func Launchers() []string { return []string{Kubernetes, Slurm, Container, Direct, Torchrun} }

// Chain parts a chain of launchers, such as slurm,container,torchrun: those that run primus
// elsewhere, and the one that starts processes there, which is Direct when the chain does not name
// one.
func Chain(text string) (elsewhere []string, local string, err error) {
	local = Direct
	if text == "" {
		return nil, local, nil
	}
	elsewhere = strings.Split(text, ",")
	for _, name := range elsewhere {
		if !slices.Contains(Launchers(), name) {
			return nil, "", fmt.Errorf("--launcher: given %q, want %s%s", name, strings.Join(Launchers(), ", "), suggest.Hint(name, Launchers()))
		}
	}
	if last := elsewhere[len(elsewhere)-1]; last == Direct || last == Torchrun {
		elsewhere, local = elsewhere[:len(elsewhere)-1], last
	}
	switch strings.Join(elsewhere, ",") {
	case "", Slurm, Container, Slurm + "," + Container, Kubernetes:
		return elsewhere, local, nil
	}
	return nil, "", fmt.Errorf("--launcher: given %q, want one launcher, or slurm, container or kubernetes before direct or torchrun, or slurm,container", text)
}

// Options say where and how a job is started. The zero value means the defaults of Resolve.
type Options struct {
	Launcher    string // or a chain of them, of which Resolve leaves the one for processes
	Nodes       int
	NodeRank    int // 0 takes it from the environment
	PerNode     int // processes per node
	MasterAddr  string
	MasterPort  int
	Python      string        // the interpreter
	Ranks       string        // ranks that the terminal shows: all, none, or numbers and "last" separated by commas
	Grace       time.Duration // time between the signal that asks a process to end and the one that kills it
	Hang        time.Duration // time without a line of any rank after which the job hangs; 0 means never
	HangEnds    bool          // a job that hangs is ended
	HangCommand string        // of the shell, run when a job hangs, before it is ended

	// Now is the clock by which Hang is measured; nil means time.Now. Calls do not overlap.
	Now func() time.Time
}

// Resolve returns the options with all other fields set from the environment of Slurm, torchrun or
// Primus, or to their defaults.
func (o Options) Resolve(lookup func(string) (string, bool)) (Options, error) {
	var faults []error
	_, local, err := Chain(o.Launcher)
	if err != nil {
		faults = append(faults, err)
	}
	o.Launcher = local
	number := func(into *int, unset, def, least, most int, flag string, names ...string) {
		source := flag
		if *into == unset {
			*into = def
			for _, name := range names {
				text, set := lookup(name)
				if !set || text == "" {
					continue
				}
				n, err := strconv.Atoi(strings.TrimSpace(text))
				if err != nil {
					faults = append(faults, fmt.Errorf("variable %s: given %q, want a whole number", name, text))
					return
				}
				*into, source = n, "variable "+name
				break
			}
		}
		if *into < least || *into > most {
			faults = append(faults, fmt.Errorf("%s: given %d, want %d to %d", source, *into, least, most))
		}
	}
	const (
		maxNodes   = 1 << 20
		maxPerNode = 1 << 10
		maxPort    = 1<<16 - 1
	)
	var nodeNames, rankNames []string
	if _, in := lookup("SLURM_JOB_ID"); in {
		nodeNames, rankNames = []string{"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, []string{"SLURM_NODEID", "SLURM_PROCID"}
	}
	number(&o.Nodes, 0, 1, 1, maxNodes, "--nodes", append([]string{"NNODES"}, nodeNames...)...)
	number(&o.NodeRank, 0, 0, 0, maxNodes, "--node-rank", append([]string{"NODE_RANK"}, append(rankNames, "JOB_COMPLETION_INDEX")...)...)
	number(&o.PerNode, 0, 8, 1, maxPerNode, "--nproc-per-node", "GPUS_PER_NODE")
	number(&o.MasterPort, 0, 1234, 1, maxPort, "--master-port", "MASTER_PORT")
	if o.MasterAddr == "" {
		o.MasterAddr, _ = lookup("MASTER_ADDR")
	}
	if list, _ := lookup("SLURM_JOB_NODELIST"); list != "" && o.Nodes > 1 && (o.MasterAddr == "" || o.MasterAddr == localhost) {
		hosts, err := Hosts(list)
		if err != nil {
			faults = append(faults, fmt.Errorf("variable SLURM_JOB_NODELIST: %w", err))
		}
		if len(hosts) > 0 {
			o.MasterAddr = hosts[0]
		}
	}
	if o.MasterAddr == "" {
		o.MasterAddr = localhost
	}
	if o.NodeRank >= o.Nodes && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("node rank %d of %d nodes: give --nodes and --node-rank, or NNODES and NODE_RANK, together", o.NodeRank, o.Nodes))
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	if o.Ranks == "" {
		o.Ranks = "0,last"
	}
	if _, err := parseRanks(o.Ranks, 1); err != nil {
		faults = append(faults, err)
	}
	return o, errors.Join(faults...)
}

// localhost is the address of node 0 when there is one node.
const localhost = "localhost"

// worldSize is the number of processes of all nodes.
func (o Options) worldSize(perDevice bool) int {
	if perDevice {
		return o.Nodes * o.PerNode
	}
	return o.Nodes
}

// parseRanks returns which of the ranks of a job the terminal shows.
func parseRanks(text string, world int) (func(rank int) bool, error) {
	switch text {
	case "all":
		return func(int) bool { return true }, nil
	case "none":
		return func(int) bool { return false }, nil
	}
	shown := map[int]bool{}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "last" {
			shown[world-1] = true
			continue
		}
		rank, err := strconv.Atoi(word)
		if err != nil || rank < 0 {
			return nil, fmt.Errorf("--ranks: given %q, want all, none, or ranks and last separated by commas, such as 0,last", text)
		}
		shown[rank] = true
	}
	return func(rank int) bool { return shown[rank] }, nil
}
