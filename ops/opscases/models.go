package opscases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// model describes a language model by the lengths that its calls of ops depend on.
type model struct {
	name                             string
	hidden, ffn, heads, groups, head int
	vocab, seq                       int
}

// models are the classes of models in use. Their calls differ from those of small models in the
// lengths of rows, in how many there are, and in the numbers of heads.
func models() []model {
	return []model{
		{name: "1B", hidden: 2048, ffn: 8192, heads: 32, groups: 8, head: 64, vocab: 128256, seq: 4096},
		{name: "8B", hidden: 4096, ffn: 14336, heads: 32, groups: 8, head: 128, vocab: 128256, seq: 4096},
		{name: "70B", hidden: 8192, ffn: 28672, heads: 64, groups: 8, head: 128, vocab: 128256, seq: 4096},
	}
}

// length is one length of a call, and what stands for it when another one is that of the model.
type length struct {
	name  string
	of    func(model) int
	small int
}

var (
	tokens = length{"tokens", func(m model) int { return m.seq }, 5}
	hidden = length{"hidden", func(m model) int { return m.hidden }, 40}
	ffn    = length{"ffn", func(m model) int { return m.ffn }, 40}
	vocab  = length{"vocab", func(m model) int { return m.vocab }, 50}
	heads  = length{"heads", func(m model) int { return m.heads }, 2}
	head   = length{"head", func(m model) int { return m.head }, 16}
	keys   = length{"keys", func(m model) int { return m.seq }, 24}
)

// in returns the length with another small value.
func (l length) in(small int) length {
	l.small = small
	return l
}

// maxElements bounds the operands of a whole call: lengths of the call are cut to it.
const maxElements = 1 << 27

// sized describes the calls of an op with lengths that depend on the model.
type sized[A any] struct {
	lengths []length
	pairs   bool // each operand has two of the lengths, not all
	make    func(s *opstest.Stage, d tensor.DType, n []int) A
	terms   func(n []int) int     // of the longest sum; nil when the tolerance of the op covers it
	work    func(n []int) float64 // nil for ops whose work is that of reading their operands
}

// cases returns the calls of all models.
func (z sized[A]) cases(d tensor.DType, whole bool) []opstest.Case[A] {
	var cases []opstest.Case[A]
	known := map[string]bool{}
	add := func(name string, n []int) {
		for i, l := range z.lengths {
			name += fmt.Sprintf("%s%d,", l.name, n[i])
		}
		if name = strings.TrimSuffix(name, ","); known[name] {
			return
		}
		known[name] = true
		c := opstest.Case[A]{Name: "model/" + name, Make: func(s *opstest.Stage) A { return z.make(s, d, n) }}
		if z.terms != nil {
			c.Terms = z.terms(n)
		}
		if z.work != nil {
			c.Work = z.work(n)
		}
		cases = append(cases, c)
	}
	all := models()
	if !whole && d != tensor.F32 && d != tensor.BF16 {
		all = all[len(all)-1:]
	}
	for _, m := range all {
		if whole {
			add(m.name+"/", z.whole(m))
			continue
		}
		for real := range z.lengths {
			n := make([]int, len(z.lengths))
			for i, l := range z.lengths {
				if n[i] = l.small; i == real {
					n[i] = l.of(m)
				}
			}
			add("", n)
		}
	}
	return cases
}

// whole returns the lengths that a call has in a model. If an operand would be too large, the first
// one is cut, or with pairs the longest.
func (z sized[A]) whole(m model) []int {
	n, elements := make([]int, len(z.lengths)), 1
	for i, l := range z.lengths {
		n[i] = l.of(m)
		elements *= n[i]
	}
	if !z.pairs {
		n[0] = max(1, min(n[0], maxElements/max(elements/n[0], 1)))
		return n
	}
	for {
		longest := slices.Index(n, slices.Max(n))
		if elements/slices.Min(n) <= maxElements {
			return n
		}
		elements -= elements / n[longest] * (n[longest] - n[longest]/2)
		n[longest] /= 2
	}
}

// perToken returns the calls of an op whose operands are rows of one length, one row a token.
func perToken[A any](cols length, make func(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) A) func(tensor.DType, bool) []opstest.Case[A] {
	return sized[A]{lengths: []length{tokens, cols}, make: func(s *opstest.Stage, d tensor.DType, n []int) A {
		return make(s, opstest.Dense, d, n...)
	}}.cases
}

// summedTokens is perToken for an op that also adds up the rows.
func summedTokens[A any](cols length, make func(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) A) func(tensor.DType, bool) []opstest.Case[A] {
	return sized[A]{
		lengths: []length{tokens, cols},
		make: func(s *opstest.Stage, d tensor.DType, n []int) A {
			return make(s, opstest.Dense, d, n...)
		},
		terms: func(n []int) int { return max(n[0], n[1]) },
	}.cases
}
