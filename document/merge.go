package document

// Merge returns base with override merged in: mappings merge key by key, everything else, lists and
// null included, is replaced. Keys of base keep their place, new keys follow in their own order. A
// value remembers what it replaced; see [Value.Replaced]. Neither argument is changed.
func Merge(base, override *Map) *Map {
	merged := base.clone(override.Len())
	for key, value := range override.All() {
		if old, exists := merged.Lookup(key); exists {
			below, wasMap := old.Map()
			above, isMap := value.Map()
			if !wasMap || !isMap {
				value = value.Replacing(old)
			} else {
				value.data = Merge(below, above)
				if old.over != nil {
					value = value.Replacing(*old.over)
				}
			}
		}
		merged.set(key, value)
	}
	return merged
}

// Difference is one key that two maps do not share.
type Difference struct {
	// Path is the dotted key path.
	Path string
	// A and B are the values on both sides; nil where the key is missing.
	A, B *Value
}

// Diff returns what differs between two maps, in the order of a and then of the keys that only b
// has. Mappings are compared key by key, everything else as a whole; 1 differs from 1.0, and the
// order of keys does not matter.
func Diff(a, b *Map) []Difference {
	return diff(nil, a, b, "")
}

func diff(found []Difference, a, b *Map, path string) []Difference {
	for key, ours := range a.All() {
		at := JoinPath(path, key)
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
			found = append(found, Difference{Path: JoinPath(path, key), B: &theirs})
		}
	}
	return found
}
