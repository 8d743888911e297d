package divergence

import "slices"

// minimise returns a subset of items that still fails and of which none can be left out. fails is
// called with subsets of items; it must hold for items itself.
func minimise[T comparable](items []T, fails func([]T) (bool, error)) ([]T, error) {
	for parts := 2; len(items) > 1; {
		parts = min(parts, len(items))
		chunks := slices.Collect(slices.Chunk(items, (len(items)+parts-1)/parts))
		next, err := reduce(items, chunks, fails)
		switch {
		case err != nil:
			return nil, err
		case next != nil:
			items, parts = next, 2
		case parts == len(items):
			return items, nil
		default:
			parts *= 2
		}
	}
	return items, nil
}

// reduce returns the first chunk that fails alone, else the first complement of a chunk that fails,
// nil if there is none.
func reduce[T comparable](items []T, chunks [][]T, fails func([]T) (bool, error)) ([]T, error) {
	candidates := slices.Clone(chunks)
	if len(chunks) > 2 { // of two chunks, each is the complement of the other
		for _, c := range chunks {
			rest := slices.DeleteFunc(slices.Clone(items), func(v T) bool { return slices.Contains(c, v) })
			candidates = append(candidates, rest)
		}
	}
	for _, c := range candidates {
		if failed, err := fails(c); err != nil || failed {
			return c, err
		}
	}
	return nil, nil
}
