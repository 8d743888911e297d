package collective

import "github.com/primus-fl/primus/opregistry"

// Group is the place of this process among those that take part in a call.
type Group struct {
	Rank  int `op:"0 rank >=0"`  // of this process
	Ranks int `op:"1 ranks >=1"` // their number
}

func (g Group) check(c *opregistry.Check) {
	if c.OK() && g.Rank >= g.Ranks {
		c.Fail("rank", "a rank below ranks", "%d of %d", g.Rank, g.Ranks)
	}
}

// root checks the rank that a call names.
func (g Group) root(c *opregistry.Check, root int) {
	g.check(c)
	if c.OK() && root >= g.Ranks {
		c.Fail("root", "a rank below ranks", "%d of %d", root, g.Ranks)
	}
}

// Reduction is how the values of the ranks become one.
type Reduction int

// The reductions.
const (
	Sum Reduction = iota
	Max
	Min
	Avg // the sum divided by the number of ranks; for floats only
)

var reductionNames = [...]string{"sum", "max", "min", "avg"}

// String returns the name of the reduction.
func (r Reduction) String() string {
	if r < 0 || int(r) >= len(reductionNames) {
		return "reduction(?)"
	}
	return reductionNames[r]
}
