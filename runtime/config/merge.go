package config

// Merge returns base with override merged in: mappings merge key by key, everything else, lists and null included, is
// replaced. Keys of base keep their place, new keys follow in their own order. A value remembers what it replaced; see
// [Value.Replaced]. Neither argument is changed.
func Merge(base, override *Map) *Map {
	merged := base.clone(override.Len())
	for key, value := range override.All() {
		if old, exists := merged.Lookup(key); exists {
			below, wasMap := old.Map()
			above, isMap := value.Map()
			if !wasMap || !isMap {
				value = value.replacing(old)
			} else {
				value.data = Merge(below, above)
				if old.over != nil {
					value = value.replacing(*old.over)
				}
			}
		}
		merged.set(key, value)
	}
	return merged
}

// addMissing returns base with those keys of extra that base lacks, whole values and not deeper. For each key that both
// have with different values there is a collision, in which winner names base and loser extra; a kept value remembers the
// one of extra as replaced. Neither argument is changed.
func addMissing(base, extra *Map, winner, loser Source) (*Map, []Collision) {
	merged := base.clone(extra.Len())
	var collisions []Collision
	for key, value := range extra.All() {
		kept, taken := merged.Lookup(key)
		if !taken {
			merged.set(key, value)
			continue
		}
		merged.set(key, kept.replacing(value))
		if !kept.Equal(value) {
			collisions = append(collisions, Collision{Key: key, Winner: winner, Loser: loser, Kept: kept, Dropped: value})
		}
	}
	return merged, collisions
}
