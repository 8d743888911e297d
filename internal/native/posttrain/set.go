package posttrain

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/primus-fl/primus/internal/native/model"
)

// SetConfig are the parameters of a Set.
type SetConfig struct {
	SeqLength     int
	ValidFraction float64 // of the rows; 1 holds all out
	Packing       bool
	Seed          uint64
	Pad           int32 // the token that fills rows
}

// Set is examples in rows of one length, some of which are held out. A row of pairs is two rows:
// that of the chosen answer, then that of the rejected one.
type Set struct {
	config       SetConfig
	examples     []Example
	rows         [][]int // the examples of each row; in a Set of pairs, those of a pair
	train, valid []int   // rows
	fingerprint  string
	template     string
	each         int // rows of a batch per row of the Set: 2 for pairs
	long         int // examples, or pairs, that do not fit into a row
	learned      int // tokens that count, of all rows
}

// NewSet puts examples into rows. An example of more than SeqLength+1 tokens is left out.
func NewSet(s *Source, c SetConfig) (*Set, error) {
	set := &Set{config: c, fingerprint: s.Fingerprint, template: s.Template, each: 1}
	if s.Pairs != nil {
		set.each = 2
	}
	var sizes []int
	for _, p := range s.Pairs {
		if max(len(p.Chosen.Tokens), len(p.Rejected.Tokens)) > c.SeqLength+1 {
			set.long++
			continue
		}
		at := len(set.examples)
		set.examples = append(set.examples, p.Chosen, p.Rejected)
		set.rows = append(set.rows, []int{at, at + 1})
	}
	for _, e := range s.Examples {
		if len(e.Tokens) > c.SeqLength+1 {
			set.long++
			continue
		}
		sizes = append(sizes, len(e.Tokens))
		set.examples = append(set.examples, e)
	}
	if len(set.examples) == 0 {
		return nil, fmt.Errorf("seq_length: given %d, want more: all of %d examples are longer", c.SeqLength, set.long)
	}
	if s.Pairs == nil {
		set.pack(sizes)
	}
	for i, e := range set.examples {
		n := e.learned()
		if n == 0 {
			return nil, fmt.Errorf("train_data_path: an answer of example %d has no tokens, want some to learn from", i/set.each+1)
		}
		set.learned += n
	}
	return set, set.split()
}

// learned returns the number of tokens that are learned, which does not include the first one.
func (e Example) learned() int {
	n := 0
	for i, learn := range e.Learn {
		if learn && i > 0 {
			n++
		}
	}
	return n
}

// pack distributes the examples over rows: one each or, with packing, each into the first row with
// enough room, the longest examples first.
func (s *Set) pack(sizes []int) {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	if !s.config.Packing {
		for _, i := range order {
			s.rows = append(s.rows, []int{i})
		}
		return
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	var room []int
	first := 0 // rows before have no room for the smallest example
	smallest := sizes[order[len(order)-1]]
	for _, i := range order {
		at := -1
		for r := first; r < len(room); r++ {
			if room[r] >= sizes[i] {
				at = r
				break
			}
		}
		if at < 0 {
			at = len(room)
			room, s.rows = append(room, s.config.SeqLength+1), append(s.rows, nil)
		}
		s.rows[at] = append(s.rows[at], i)
		room[at] -= sizes[i]
		for first < len(room) && room[first] < smallest {
			first++
		}
	}
}

// split holds rows out, by chance.
func (s *Set) split() error {
	order := rand.New(rand.NewPCG(s.config.Seed, 0x5851f42d4c957f2d)).Perm(len(s.rows))
	held := int(s.config.ValidFraction * float64(len(order)))
	if s.config.ValidFraction > 0 {
		held = max(held, 1)
	}
	if held >= len(order) && s.config.ValidFraction < 1 {
		return fmt.Errorf("valid_fraction: given %v of %d sequences of examples, which leaves none to train on", s.config.ValidFraction, len(order))
	}
	s.valid, s.train = slices.Sorted(slices.Values(order[:held])), slices.Sorted(slices.Values(order[held:]))
	return nil
}

// Fingerprint identifies the examples, their order and rows, tokenizer and template.
func (s *Set) Fingerprint() string {
	return fmt.Sprintf("%s in %d+%d rows of %d", s.fingerprint, len(s.train), len(s.valid), s.config.SeqLength)
}

// Corpus identifies the examples, tokenizer and template; the Fingerprint begins with it.
func (s *Set) Corpus() string { return s.fingerprint }

// Template returns the chat template of the conversations, "" without any.
func (s *Set) Template() string { return s.template }

// Close does nothing: a Set is in memory.
func (s *Set) Close() error { return nil }

// Prompt returns the ids before the first answer of the first example that is held out or, if none
// is, of the first one.
func (s *Set) Prompt() []int32 {
	row := 0
	if len(s.valid) > 0 {
		row = s.valid[0]
	}
	e := s.examples[s.rows[row][0]]
	return e.Tokens[:max(slices.Index(e.Learn, true), 0)]
}

// ValidRows returns the number of rows of a batch that are held out: two for each pair.
func (s *Set) ValidRows() int { return len(s.valid) * s.each }

// End returns the ids with which all answers end, such as those of the token that ends a message.
func (s *Set) End() []int32 {
	var end []int32
	for i, e := range s.examples {
		last := e.Tokens
		for len(last) > 0 && !e.Learn[len(last)-1] {
			last = last[:len(last)-1]
		}
		if i == 0 {
			end = last
		}
		n := 0
		for n < min(len(end), len(last)) && end[len(end)-1-n] == last[len(last)-1-n] && e.Learn[len(last)-1-n] {
			n++
		}
		end = end[len(end)-n:]
	}
	return end
}

// Warnings describes what was left out.
func (s *Set) Warnings() []string {
	if s.long == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d examples are longer than seq_length %d and left out", s.long, s.long+s.count(), s.config.SeqLength)}
}

func (s *Set) count() int { return len(s.examples) / s.each }

// String describes the Set.
func (s *Set) String() string {
	what := "examples"
	if s.each == 2 {
		what = "pairs"
	}
	return fmt.Sprintf("%d %s in %d sequences of %d, %d of them held out; %d tokens are learned", s.count(), what, len(s.rows), s.config.SeqLength, len(s.valid), s.learned)
}

// fill writes row of the Set to rows of a batch from row at on.
func (s *Set) fill(b *model.Batch, at, row int) {
	if s.each == 1 {
		s.fillRow(b, at, s.rows[row])
		return
	}
	for i := range s.each {
		s.fillRow(b, at+i, s.rows[row][i:i+1])
	}
}

// fillRow writes examples to a row of a batch. The weights of a row of a pair add up to 1, so that
// all pairs count alike.
func (s *Set) fillRow(b *model.Batch, at int, examples []int) {
	seq := s.config.SeqLength
	tokens := b.Tokens[at*(seq+1) : (at+1)*(seq+1)]
	weights, segments, positions := b.Weights[at*seq:(at+1)*seq], b.Segments[at*seq:(at+1)*seq], b.Positions[at*seq:(at+1)*seq]
	clear(weights)
	weight := func(Example) float32 { return 1 }
	if s.each == 2 {
		weight = func(e Example) float32 { return 1 / float32(e.learned()) }
	}
	i := 0
	put := func(segment, position int, token int32) {
		tokens[i] = token
		if i < seq {
			segments[i], positions[i] = int32(segment), int32(position)
		}
		i++
	}
	for k, index := range examples {
		e := s.examples[index]
		for j, token := range e.Tokens {
			if j > 0 && e.Learn[j] {
				weights[i-1] = weight(e)
			}
			put(k, j, token)
		}
	}
	for j := 0; i <= seq; j++ {
		put(len(examples), j, s.config.Pad)
	}
}

// masks gives a batch memory for what fill writes.
func masks(b *model.Batch) {
	n := b.Rows() * b.Seq
	if len(b.Weights) != n {
		b.Weights = make([]float32, n)
	}
	if len(b.Segments) != n {
		b.Segments = make([]int32, n)
	}
	if len(b.Positions) != n {
		b.Positions = make([]int32, n)
	}
}

// Sampler visits the rows to train on: position p is row π(p mod n) of n rows, where π is a
// permutation that depends on the seed and on the epoch ⌊p/n⌋. The position is its whole state.
type Sampler struct {
	set      *Set
	position uint64
	epoch    uint64
	order    []int
}

// NewSampler returns a Sampler at position 0.
func NewSampler(s *Set) *Sampler { return &Sampler{set: s} }

// Position returns the number of rows consumed.
func (s *Sampler) Position() uint64 { return s.position }

// Seek sets the number of rows consumed.
func (s *Sampler) Seek(position uint64) { s.position = position }

// Batch fills a batch with the next rows, and its weights, segments and positions, and advances the
// position. The number of rows of a batch of pairs is even.
func (s *Sampler) Batch(b *model.Batch) error {
	if err := s.set.check(*b); err != nil {
		return err
	}
	masks(b)
	n := uint64(len(s.set.train))
	for at := 0; at < b.Rows(); at += s.set.each {
		if epoch := s.position / n; s.order == nil || epoch != s.epoch {
			s.epoch, s.order = epoch, rand.New(rand.NewPCG(s.set.config.Seed, epoch)).Perm(int(n))
		}
		s.set.fill(b, at, s.set.train[s.order[s.position%n]])
		s.position++
	}
	return nil
}

// check returns an error for a batch that the Set cannot fill.
func (s *Set) check(b model.Batch) error {
	if b.Seq != s.config.SeqLength || b.Rows() < 1 || b.Rows()%s.each != 0 {
		return fmt.Errorf("posttrain: given a batch of %d rows of %d tokens, want a multiple of %d rows of %d", b.Rows(), b.Seq, s.each, s.config.SeqLength)
	}
	return nil
}

// Evaluation visits a fixed choice of the rows that are held out.
type Evaluation struct {
	set    *Set
	count  int
	cursor int
}

// NewEvaluation returns an Evaluation of a number of rows of batches, evenly spaced over those held
// out.
func NewEvaluation(s *Set, rows int) (*Evaluation, error) {
	if len(s.valid) == 0 || rows < s.each {
		return nil, fmt.Errorf("posttrain: given %d of %d rows that are held out, want %d or more", rows, s.ValidRows(), s.each)
	}
	return &Evaluation{set: s, count: min(rows/s.each, len(s.valid))}, nil
}

// Len returns the number of rows of batches that are visited.
func (e *Evaluation) Len() int { return e.count * e.set.each }

// Reset goes back to the first row.
func (e *Evaluation) Reset() { e.cursor = 0 }

// Batch fills a batch with the next rows, and its weights, segments and positions, and starts over
// after the last one.
func (e *Evaluation) Batch(b *model.Batch) error {
	if err := e.set.check(*b); err != nil {
		return err
	}
	masks(b)
	for at := 0; at < b.Rows(); at += e.set.each {
		e.set.fill(b, at, e.set.valid[e.cursor*len(e.set.valid)/e.count])
		e.cursor = (e.cursor + 1) % e.count
	}
	return nil
}
