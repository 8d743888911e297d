package config

// Difference is one key that two maps do not share.
type Difference struct {
	// Path is the dotted key path.
	Path string
	// A and B are the values on both sides; nil where the key is missing.
	A, B *Value
}

// Diff returns what differs between two maps, in the order of a and then of the keys that only b has. Mappings are compared
// key by key, everything else as a whole; 1 differs from 1.0, and the order of keys does not matter.
func Diff(a, b *Map) []Difference {
	return diff(nil, a, b, "")
}

func diff(found []Difference, a, b *Map, path string) []Difference {
	for key, ours := range a.All() {
		at := joinPath(path, key)
		theirs, ok := b.Lookup(key)
		if !ok {
			found = append(found, Difference{Path: at, A: &ours})
			continue
		}
		ourMap, isMap := ours.Map()
		theirMap, both := theirs.Map()
		switch {
		case isMap && both:
			found = diff(found, ourMap, theirMap, at)
		case !ours.Equal(theirs):
			found = append(found, Difference{Path: at, A: &ours, B: &theirs})
		}
	}
	for key, theirs := range b.All() {
		if _, ok := a.Lookup(key); !ok {
			found = append(found, Difference{Path: joinPath(path, key), B: &theirs})
		}
	}
	return found
}
