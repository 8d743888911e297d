package trainer

import (
	"container/heap"
	"context"
	"slices"
)

// Word is the symbols of a word and how often it occurs. Learn changes the symbols.
type Word struct {
	Symbols []int32
	Count   int64
}

// Settings say what Learn looks for.
type Settings struct {
	// Texts are the texts of the symbols that words begin with.
	Texts [][]byte

	// Size is the number of symbols to reach.
	Size int

	// MinCount is how often a pair must occur to be merged, at least 1.
	MinCount int64

	// MaxLength is the length of the longest text that becomes a symbol, in bytes; 0 is no limit.
	MaxLength int
}

// learnedMerges is what Learn found: the texts of all symbols and the merges in their order.
type learnedMerges struct {
	Texts  [][]byte
	Merges []Merge
}

// Merge is two symbols that became one. The text of Joined is theirs; two merges can have it.
type Merge struct{ Left, Right, Joined int32 }

// Learn returns the merges of words, the most frequent pair first. Of pairs that are equally
// frequent the one with the lower symbols is first, so equal words in any order give equal merges.
// There may be fewer than Size asks for. Memory grows with the number of different words, about 16
// bytes for each of their symbols. Learn returns the error of ctx if that ends.
func Learn(ctx context.Context, words []Word, s Settings) (*learnedMerges, error) {
	s.MinCount = max(1, s.MinCount)
	l := &learner{words: words, settings: s, index: map[adjacent]int32{}, symbols: map[string]int32{}, result: learnedMerges{Texts: slices.Clone(s.Texts)}}
	for i, text := range s.Texts {
		l.symbols[string(text)] = int32(i)
	}
	for i, w := range words {
		for j := 1; j < len(w.Symbols); j++ {
			l.count(adjacent{w.Symbols[j-1], w.Symbols[j]}, int32(i), w.Count)
		}
	}
	l.pushChanged()
	for len(l.result.Texts) < s.Size && len(l.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		top := l.queue[0]
		if now := l.pairs[l.index[top.pair]].count; now != top.count && now >= s.MinCount {
			l.queue[0].count = now // it became less frequent since it was entered
			heap.Fix(&l.queue, 0)
			continue
		} else if heap.Pop(&l.queue); now < s.MinCount {
			continue
		}
		joined, ok := l.symbol(top.pair)
		if !ok {
			continue
		}
		l.result.Merges = append(l.result.Merges, Merge{Left: top.pair.left, Right: top.pair.right, Joined: joined})
		l.join(top.pair, joined)
		l.pushChanged()
	}
	return &l.result, nil
}

// symbol returns the symbol for the text of a pair, which may exist, or false if it is too long.
func (l *learner) symbol(p adjacent) (int32, bool) {
	text := slices.Concat(l.result.Texts[p.left], l.result.Texts[p.right])
	if s, ok := l.symbols[string(text)]; ok {
		return s, true
	}
	if l.settings.MaxLength > 0 && len(text) > l.settings.MaxLength {
		return 0, false
	}
	s := int32(len(l.result.Texts))
	l.symbols[string(text)] = s
	l.result.Texts = append(l.result.Texts, text)
	return s, true
}

// learner is the state of Learn.
type learner struct {
	words    []Word
	settings Settings
	result   learnedMerges
	symbols  map[string]int32
	index    map[adjacent]int32
	pairs    []pair
	queue    queue
	changed  []adjacent // pairs that became more frequent since they were entered
}

// adjacent is two symbols, one after the other.
type adjacent struct{ left, right int32 }

// pair is how often two symbols are adjacent and in which words; a word may be listed twice, and
// stay listed when it has the pair no more.
type pair struct {
	count   int64
	words   []int32
	changed bool
}

// count changes how often a pair occurs in a word.
func (l *learner) count(p adjacent, word int32, by int64) {
	at, ok := l.index[p]
	if !ok {
		at = int32(len(l.pairs))
		l.index[p] = at
		l.pairs = append(l.pairs, pair{})
	}
	entry := &l.pairs[at]
	entry.count += by
	if by < 0 {
		return
	}
	if n := len(entry.words); n == 0 || entry.words[n-1] != word {
		entry.words = append(entry.words, word)
	}
	if !entry.changed {
		entry.changed = true
		l.changed = append(l.changed, p)
	}
}

// pushChanged enters the pairs that became more frequent.
func (l *learner) pushChanged() {
	for _, p := range l.changed {
		entry := &l.pairs[l.index[p]]
		entry.changed = false
		if entry.count >= l.settings.MinCount {
			heap.Push(&l.queue, queued{pair: p, count: entry.count})
		}
	}
	l.changed = l.changed[:0]
}

// join makes a symbol of a pair, in all words.
func (l *learner) join(p adjacent, joined int32) {
	at := l.index[p]
	words := l.pairs[at].words
	l.pairs[at] = pair{}
	for _, i := range words {
		l.joinIn(i, p, joined)
	}
	l.pairs[at] = pair{} // what joinIn counted of the pair itself
}

// joinIn makes a symbol of a pair in a word.
func (l *learner) joinIn(i int32, p adjacent, joined int32) {
	w := &l.words[i]
	symbols, n := w.Symbols, 0
	for j := 0; j < len(symbols); j++ {
		if j+1 == len(symbols) || symbols[j] != p.left || symbols[j+1] != p.right {
			symbols[n] = symbols[j]
			n++
			continue
		}
		if n > 0 {
			l.count(adjacent{symbols[n-1], p.left}, i, -w.Count)
			l.count(adjacent{symbols[n-1], joined}, i, w.Count)
		}
		if j+2 < len(symbols) {
			l.count(adjacent{p.right, symbols[j+2]}, i, -w.Count)
			l.count(adjacent{joined, symbols[j+2]}, i, w.Count)
		}
		symbols[n] = joined
		n++
		j++
	}
	w.Symbols = symbols[:n]
}

// queued is a pair with its count when it was entered, which the present one may be below.
type queued struct {
	pair  adjacent
	count int64
}

// queue has the most frequent pair first.
type queue []queued

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.count != b.count:
		return a.count > b.count
	case a.pair.left != b.pair.left:
		return a.pair.left < b.pair.left
	default:
		return a.pair.right < b.pair.right
	}
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(queued)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
