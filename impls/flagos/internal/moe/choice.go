package moe

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/kernel/vector"
)

// choice chooses the k best of the scores of each of up to layers.Tokens tokens; of equal ones the
// first comes first, and NaN comes before all numbers.
type choice struct {
	k, ranks int       // ranks is 0 where k is too large to sort scores of several tokens at a time
	columns  []float32 // scores, those of an expert side by side
	top      []float32 // as layers.Largest stores it
	exps     []float32 // of the differences from the largest; the first ones of tokens are sums
	slow     best
}

// choiceScratch returns the size of the memory for a choice of k among n.
func choiceScratch(k, n int) int { return layers.Tokens*(n+2*layers.MaxTopk) + 2*k }

func newChoice(k, n int, memory []float32) choice {
	c := choice{k: k, columns: memory[:layers.Tokens*n], top: memory[layers.Tokens*n:]}
	c.exps = c.top[layers.Tokens*layers.MaxTopk:]
	c.slow = newBest(k, c.exps[layers.Tokens*layers.MaxTopk:])
	if k <= layers.MaxTopk {
		c.ranks = layers.Ranks(k)
		c.top, c.exps = c.top[:layers.Tokens*c.ranks], c.exps[:layers.Tokens*k]
	}
	return c
}

// rank sorts the n scores of each of a number of tokens, whose rows of x have a pitch.
func (c *choice) rank(x []float32, pitch, tokens, n int) {
	if c.ranks > 0 {
		gemm.Transpose(c.columns, layers.Tokens, x, pitch, tokens, n)
		layers.Largest(c.top, c.columns[:layers.Tokens*n])
	}
}

// exponentials adds up exp(s − m) for the k best scores s of each token that was ranked and its
// largest one m.
func (c *choice) exponentials() {
	if c.ranks == 0 {
		return
	}
	copy(c.exps, c.top)
	for r := c.k - 1; r >= 0; r-- {
		vector.Axpy(-1, c.top[:layers.Tokens], c.exps[r*layers.Tokens:][:layers.Tokens])
	}
	vector.ExpSum(c.exps, c.exps, 0)
	sums := c.exps[:layers.Tokens]
	for r := 1; r < c.k; r++ {
		vector.Add(sums, sums, c.exps[r*layers.Tokens:])
	}
}

// softmax stores the softmax of scores of which mark has left those that are chosen; sorted is what
// it returned.
func (c *choice) softmax(p, x []float32, token int, sorted bool) {
	if sorted {
		if m := c.top[token]; !math.IsInf(float64(m), 0) {
			vector.ExpScale(p, x, m, 1/c.exps[token])
			return
		}
	}
	softmax(p, x)
}

// certain reports whether rank found which scores of a token are the best: no NaN, which counts as
// +Inf there, and as many as are chosen that are not −Inf, as those which do not take part are.
func (c *choice) certain(token int) bool {
	return c.ranks > 0 && !math.IsInf(float64(c.top[token]), 1) && !math.IsInf(float64(c.top[(c.k-1)*layers.Tokens+token]), -1)
}

// mark marks the chosen ones of the scores x of a token that was ranked, and copies them to kept;
// the others become −Inf. Experts are those of the groups of some size, in ascending order, or all
// of them if groups is nil; the scores of other groups are −Inf. It reports whether those chosen
// are the best ones that rank found.
func (c *choice) mark(routes []byte, kept, x []float32, token int, groups []int32, size int) (sorted bool) {
	negative := float32(math.Inf(-1))
	if c.certain(token) {
		least := c.top[(c.k-1)*layers.Tokens+token]
		count := layers.Choose(routes, kept, x, least)
		for e := len(x) - 1; count > c.k; e-- {
			if x[e] == least {
				routes[e], kept[e] = 0, negative
				count--
			}
		}
		if count == c.k {
			return true
		}
	}
	c.slow.n = 0
	if groups == nil {
		c.slow.add(x, 0)
	}
	for _, g := range groups {
		c.slow.add(x[int(g)*size:][:size], int(g)*size)
	}
	clear(routes)
	for i := range kept {
		kept[i] = negative
	}
	for _, e := range c.slow.indexes {
		routes[e], kept[e] = 1, x[e]
	}
	return false
}

// groupChoice chooses groups of experts by the sums of their best scores.
type groupChoice struct {
	size   int
	chosen []int32 // groups of each of layers.Tokens tokens
	within choice  // of the experts of a group
	groups best
	worth  []float32
	none   []float32 // −Inf for each expert of a group
}

// groupScratch returns the size of the memory for a choice of n groups, by the sums of k scores.
func groupScratch(k, n, groups, size int) int {
	return choiceScratch(k, size) + (layers.Tokens+2)*n + groups + size
}

func newGroupChoice(k, n, groups, size int, memory []float32) groupChoice {
	rest := memory[choiceScratch(k, size):]
	g := groupChoice{size: size, within: newChoice(k, size, memory), groups: newBest(n, rest), chosen: host.ScratchInts(rest[2*n:][:layers.Tokens*n])}
	rest = rest[(layers.Tokens+2)*n:]
	g.worth, g.none = rest[:groups], rest[groups:][:size]
	for i := range g.none {
		g.none[i] = float32(math.Inf(-1))
	}
	return g
}

// of returns the groups that choose found for a token, nil if there are no groups.
func (g *groupChoice) of(token int) []int32 {
	n := len(g.groups.keys)
	return g.chosen[token*n:][:n:n]
}

// choose finds the groups of a token, in ascending order, and makes the scores x of the others
// −Inf.
func (g *groupChoice) choose(token int, x []float32) {
	w := &g.within
	for first := 0; first < len(g.worth); first += layers.Tokens {
		groups := min(layers.Tokens, len(g.worth)-first)
		w.rank(x[first*g.size:], g.size, groups, g.size)
		for i := range groups {
			g.worth[first+i] = w.sum(x[(first+i)*g.size:][:g.size], i)
		}
	}
	g.groups.n = 0
	g.groups.add(g.worth, 0)
	chosen := g.of(token)
	copy(chosen, g.groups.sorted())
	at := 0
	for i := range g.worth {
		if at < len(chosen) && int(chosen[at]) == i {
			at++
		} else {
			copy(x[i*g.size:], g.none)
		}
	}
}

// sum adds up the chosen ones of the scores x that were ranked as those of a token.
func (c *choice) sum(x []float32, token int) float32 {
	sum := 0.0
	if c.certain(token) {
		for r := range c.k {
			sum += float64(c.top[r*layers.Tokens+token])
		}
		return float32(sum)
	}
	c.slow.n = 0
	c.slow.add(x, 0)
	for _, e := range c.slow.indexes {
		sum += float64(x[e])
	}
	return float32(sum)
}

// best keeps the indexes of the largest numbers in descending order; of equal ones the first comes
// first, and NaN comes before all numbers.
type best struct {
	keys    []int32 // of the numbers
	indexes []int32
	n       int
}

// newBest returns room for k numbers in memory of 2·k elements.
func newBest(k int, memory []float32) best {
	ints := host.ScratchInts(memory)
	return best{keys: ints[:k], indexes: ints[k : 2*k]}
}

// keyOf returns an integer that orders numbers as best does.
func keyOf(v float32) int32 {
	if v != v {
		return math.MaxInt32
	}
	u := int32(math.Float32bits(v + 0)) // no −0
	return u ^ u>>31&math.MaxInt32
}

// add considers the numbers with indexes from first on.
func (b *best) add(values []float32, first int) {
	k := len(b.keys)
	for i, v := range values {
		key := keyOf(v)
		at := b.n
		if at == k {
			if key <= b.keys[k-1] {
				continue
			}
			at--
		} else {
			b.n++
		}
		for ; at > 0 && b.keys[at-1] < key; at-- {
			b.keys[at], b.indexes[at] = b.keys[at-1], b.indexes[at-1]
		}
		b.keys[at], b.indexes[at] = key, int32(first+i)
	}
}

// sorted returns the indexes in ascending order.
func (b *best) sorted() []int32 {
	x := b.indexes[:b.n]
	for i := range x {
		for at := i; at > 0 && x[at-1] > x[at]; at-- {
			x[at-1], x[at] = x[at], x[at-1]
		}
	}
	return x
}
