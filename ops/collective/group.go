package collective

import "github.com/primus-fl/primus/opregistry"

// Group is the place of this process among those that take part in a call: with a Stride, the
// processes First, First + Stride, First + 2·Stride, … of the job, and without one all of them.
type Group struct {
	Rank   int `op:"0 rank >=0"`   // of this process among them
	Ranks  int `op:"1 ranks >=1"`  // their number
	First  int `op:"2 first >=0"`  // the rank in the job of the first one
	Stride int `op:"3 stride >=0"` // the distance of their ranks in the job; 0 for all ranks of the job
}

// InJob returns the rank of this process in the job.
func (g Group) InJob() int {
	if g.Stride == 0 {
		return g.Rank
	}
	return g.First + g.Rank*g.Stride
}

func (g Group) check(c *opregistry.Check) {
	if c.OK() && g.Rank >= g.Ranks {
		c.Fail("rank", "a rank below ranks", "%d of %d", g.Rank, g.Ranks)
	}
	if c.OK() && g.Stride == 0 && g.First != 0 {
		c.Fail("first", "0 without a stride", "%d", g.First)
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
