package tokenizer

import (
	"bytes"
	"slices"
)

// trie has the beginnings of tokens as nodes; node 0 is the empty one. The children of a node lie
// beside each other, in the order of their bytes.
type trie struct {
	first  []int32 // where the children of a node begin; they end where those of the next node begin
	labels []byte  // the byte that leads to a node
	tokens []int32 // the id that ends at a node, or -1
}

// newTrie returns the trie of tokens. Of equal ones the first counts.
func newTrie(tokens [][]byte) trie {
	sorted := make([]int32, 0, len(tokens))
	for id, token := range tokens {
		if len(token) > 0 {
			sorted = append(sorted, int32(id))
		}
	}
	slices.SortStableFunc(sorted, func(a, b int32) int { return bytes.Compare(tokens[a], tokens[b]) })
	t := trie{labels: []byte{0}, tokens: []int32{-1}}
	// Level by level: each node stands for a range of the sorted tokens, which share its text.
	type span struct{ begin, end, depth int }
	queue := []span{{end: len(sorted)}}
	for at := 0; at < len(queue); at++ {
		s := queue[at]
		t.first = append(t.first, int32(len(t.labels)))
		for s.begin < s.end && len(tokens[sorted[s.begin]]) == s.depth {
			if t.tokens[at] < 0 {
				t.tokens[at] = sorted[s.begin]
			}
			s.begin++
		}
		for s.begin < s.end {
			label, end := tokens[sorted[s.begin]][s.depth], s.begin
			for end < s.end && tokens[sorted[end]][s.depth] == label {
				end++
			}
			t.labels, t.tokens = append(t.labels, label), append(t.tokens, -1)
			queue = append(queue, span{begin: s.begin, end: end, depth: s.depth + 1})
			s.begin = end
		}
	}
	t.first = append(t.first, int32(len(t.labels)))
	return t
}

// child returns the node that a byte leads to, or -1.
func (t *trie) child(node int32, label byte) int32 {
	low, high := t.first[node], t.first[node+1]
	for low < high {
		middle := (low + high) / 2
		if t.labels[middle] < label {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < t.first[node+1] && t.labels[low] == label {
		return low
	}
	return -1
}
