package sequence

// Part is the causal attention of a chunk to all keys that it sees: documents that follow each
// other, among the queries and among the keys. The last query of each document sees its last key.
type Part struct {
	Queries   Range   // local places
	Keys      Range   // global places
	QueryEnds []int32 // the queries before each document, and all of them
	KeyEnds   []int32 // likewise of keys
}

// Parts returns those of a row, one for each chunk. segments are the documents of the tokens of the
// sequence, nil for one; before is how many keys before its own a query sees, -1 for all.
func (s Share) Parts(segments []int32, before int) []Part {
	var all []Part
	at := 0
	for _, r := range s.Ranges() {
		p := Part{Queries: Range{at, at + r.Len()}, QueryEnds: []int32{0}, KeyEnds: []int32{0}}
		at += r.Len()
		first := 0
		if segments != nil {
			for first = r.Lo; first > 0 && segments[first-1] == segments[r.Lo]; first-- {
			}
		}
		if before >= 0 {
			first = max(first, r.Lo-before)
		}
		p.Keys = Range{first, r.Hi}
		for i := r.Lo + 1; i <= r.Hi; i++ {
			if i == r.Hi || segments != nil && segments[i] != segments[i-1] {
				p.QueryEnds, p.KeyEnds = append(p.QueryEnds, int32(i-r.Lo)), append(p.KeyEnds, int32(i-first))
			}
		}
		all = append(all, p)
	}
	return all
}

// Block is queries of a rank and keys of one rank that attention brings together. Places are local
// to the rank that has them.
type Block struct {
	Queries, Keys Range

	// Ends are those of the documents that follow each other among the tokens of the rank, from 0 on,
	// of which a query sees the keys up to its own place. Nil means that the keys come before all
	// queries, which see all of them.
	Ends []int32

	// Before is how many keys before its own a query sees, -1 for all. Without Ends, the own key of
	// the last query would be the last one.
	Before int
}

// Blocks returns what the queries of a row see of the keys of a rank, the own ones first, as few
// blocks as that takes, and at most two. The other arguments are those of Parts.
func (s Share) Blocks(of int, segments []int32, before int) []Block {
	queries, keys := s.Ranges(), Share{Rank: of, Ranks: s.Ranks, Length: s.Length}.Ranges()
	var all []Block
	if of == s.Rank {
		all = []Block{{Queries: Range{0, s.Tokens()}, Keys: Range{0, s.Tokens()}, Ends: s.ends(segments, before), Before: before}}
		if before < 0 || s.Rank == s.Ranks-1 {
			return all // the second chunk sees the first one as tokens that come before it
		}
	}
	qAt := 0
	for _, q := range queries {
		kAt := 0
		for _, k := range keys {
			if b, some := block(q, k, segments, before); some {
				b.Queries, b.Keys = b.Queries.from(q.Lo-qAt), b.Keys.from(k.Lo-kAt)
				if n := len(all) - 1; n < 0 || !all[n].join(b) {
					all = append(all, b)
				}
			}
			kAt += k.Len()
		}
		qAt += q.Len()
	}
	return all
}

// ends returns the ends of the documents among the tokens of the rank. With a window, documents end
// with the chunk, because the places of the next one do not follow.
func (s Share) ends(segments []int32, before int) []int32 {
	ends := []int32{0}
	last := -1
	at := int32(0)
	for _, r := range s.Ranges() {
		for i := r.Lo; i < r.Hi; i++ {
			if last >= 0 && (segments != nil && segments[i] != segments[last] || before >= 0 && i != last+1) {
				ends = append(ends, at)
			}
			last = i
			at++
		}
	}
	return append(ends, at)
}

// block returns what queries see of keys that come before them, in global places.
func block(queries, keys Range, segments []int32, before int) (b Block, some bool) {
	if keys.Hi > queries.Lo || segments != nil && segments[keys.Hi-1] != segments[queries.Lo] {
		return b, false
	}
	if segments != nil {
		document := segments[queries.Lo]
		for queries.Hi > queries.Lo && segments[queries.Hi-1] != document {
			queries.Hi--
		}
		for segments[keys.Lo] != document {
			keys.Lo++
		}
	}
	b = Block{queries, keys, nil, -1}
	if before < 0 {
		return b, true
	}
	b.Queries.Hi, b.Keys.Lo = min(queries.Hi, keys.Hi+before), max(keys.Lo, queries.Lo-before)
	if b.Queries.Len() <= 0 || b.Keys.Len() <= 0 {
		return b, false
	}
	if b.Queries.Hi-1-before > b.Keys.Lo { // the last query does not see the first key
		b.Before = before - (b.Queries.Hi - b.Keys.Hi)
	}
	return b, true
}

// from returns the places counted from another one.
func (r Range) from(first int) Range { return Range{r.Lo - first, r.Hi - first} }

// join adds a block that goes on with the queries or the keys of this one, and reports whether it
// does.
func (b *Block) join(c Block) bool {
	switch {
	case b.Ends != nil || b.Before >= 0 || c.Before >= 0:
		return false
	case b.Keys == c.Keys && b.Queries.Hi == c.Queries.Lo:
		b.Queries.Hi = c.Queries.Hi
	case b.Queries == c.Queries && b.Keys.Hi == c.Keys.Lo:
		b.Keys.Hi = c.Keys.Hi
	default:
		return false
	}
	return true
}
