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
