package data

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Blend is windows of one or more Sets, each with a share of the samples.
type Blend struct {
	parts []blendPart
	seq   int
}

// blendPart is windows of one Set.
type blendPart struct {
	set    *Set
	blocks []int32

	// share is the part of 2³² that these windows get of the samples of this part and those after it.
	share uint64
}

const wholeShare = 1 << 32

func (s *Set) only(blocks []int32) *Blend {
	return &Blend{parts: []blendPart{{set: s, blocks: blocks, share: wholeShare}}, seq: s.seq}
}

// Mix returns a Blend of the windows of others, with a weight for each. The weights need not add up
// to 1. A Blend without windows, or of another length of windows than the first, is an error.
//
// Sample p comes from part 0 if ⌊(p+1)w⌋ > ⌊pw⌋, where w is the share of part 0, as a multiple of
// 2⁻³². The other samples go to the other parts in the same way. So every beginning of the samples
// has the parts in their proportion, and the part of a sample is computed, not stored.
func Mix(blends []*Blend, weights []float64) (*Blend, error) {
	if len(blends) == 0 || len(blends) != len(weights) {
		return nil, fmt.Errorf("data: given %d sets and %d weights, want one weight for each of at least one set", len(blends), len(weights))
	}
	rest := 0.0
	for i, w := range weights {
		if !(w > 0 && w <= math.MaxFloat32) {
			return nil, fmt.Errorf("data: given the weight %v of set %d, want a number > 0", w, i+1)
		}
		if blends[i].Len() == 0 || blends[i].seq != blends[0].seq {
			return nil, fmt.Errorf("data: set %d has %d windows of %d tokens, want at least one, of %d tokens", i+1, blends[i].Len(), blends[i].seq, blends[0].seq)
		}
		rest += w
	}
	all := &Blend{seq: blends[0].seq}
	for i, b := range blends {
		inner := 1.0 // of the weight of b, what its parts from j on have
		for j, p := range b.parts {
			own := inner * float64(p.share) / wholeShare
			p.share = uint64(math.Round(min(weights[i]*own/rest, 1) * wholeShare))
			if j == len(b.parts)-1 && i == len(blends)-1 {
				p.share = wholeShare
			}
			all.parts = append(all.parts, p)
			rest -= weights[i] * own
			inner -= own
		}
	}
	return all, nil
}

// Len returns the number of windows.
func (b *Blend) Len() int {
	n := 0
	for i := range b.parts {
		n += b.parts[i].len()
	}
	return n
}

// Fingerprint identifies the windows of all Sets, and the weights: that of a Set alone is the same
// for all of its windows.
func (b *Blend) Fingerprint() string { return b.describe((*Set).Fingerprint) }

// Corpus identifies the content of the streams and the weights.
func (b *Blend) Corpus() string { return b.describe((*Set).Corpus) }

func (b *Blend) describe(set func(*Set) string) string {
	if len(b.parts) == 1 {
		return set(b.parts[0].set)
	}
	var all []string
	for _, p := range b.parts {
		all = append(all, fmt.Sprintf("share=%08x %s", p.share, set(p.set)))
	}
	return strings.Join(all, "; ")
}

// SeqLength returns the number of input tokens of a window.
func (b *Blend) SeqLength() int { return b.seq }

func (p *blendPart) len() int { return len(p.blocks) * p.set.blockWindows }

// pick returns the part that sample i belongs to, and how many samples of that part are before it.
func (b *Blend) pick(i uint64) (part int, before uint64) {
	for part < len(b.parts)-1 {
		share := b.parts[part].share
		own := times(i, share)
		if times(i+1, share) > own {
			return part, own
		}
		i -= own
		part++
	}
	return part, i
}

// times returns ⌊i·share/2³²⌋.
func times(i, share uint64) uint64 {
	high, low := bits.Mul64(i, share)
	return high<<32 | low>>32
}

// rows returns how many windows dst holds; a length that is not a multiple of a window is an error.
func (b *Blend) rows(dst []int32) (int, error) {
	if len(dst) == 0 || len(dst)%(b.seq+1) != 0 {
		return 0, fmt.Errorf("data: given a batch buffer of %d tokens, want a positive multiple of seq_length+1 = %d", len(dst), b.seq+1)
	}
	return len(dst) / (b.seq + 1), nil
}

// Component is one of the sets of a blend.
type Component struct {
	Weight float64
	Path   string
}

// String returns the component as ParseBlend reads it.
func (c Component) String() string {
	return strconv.FormatFloat(c.Weight, 'g', -1, 64) + " " + c.Path
}

// ParseBlend reads what a path parameter says: a path, or weights and paths in turn, separated by
// spaces, as in "0.7 a 0.3 b". A text that does not begin with a number followed by a space is one
// path, whatever else it has.
func ParseBlend(spec string) ([]Component, error) {
	fields := strings.Fields(spec)
	if len(fields) < 2 {
		return []Component{{Weight: 1, Path: spec}}, nil
	}
	if _, err := strconv.ParseFloat(fields[0], 64); err != nil {
		return []Component{{Weight: 1, Path: spec}}, nil
	}
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("given %q, want a weight before each path, as in \"0.7 a 0.3 b\"; the paths of a blend have no spaces", spec)
	}
	var all []Component
	for i := 0; i < len(fields); i += 2 {
		w, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(w > 0 && w <= math.MaxFloat32) {
			return nil, fmt.Errorf("given %q before %s, want a weight > 0, as in \"0.7 a 0.3 b\"; the paths of a blend have no spaces", fields[i], fields[i+1])
		}
		all = append(all, Component{Weight: w, Path: fields[i+1]})
	}
	return all, nil
}
