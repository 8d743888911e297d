package pipeline

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
)

// entry is a pass as String writes it.
var entry = regexp.MustCompile(`^(F|B|W|BW)([0-9]{1,9})(?:\.([0-9]{1,4}))?$`)

// Parse reads a table from a document and checks it: the keys name, placement (loop or v, loop
// without it), micro_batches, chunks (1 without it), and stages, which has for each stage a list of
// passes, or text with passes between spaces, such as F0 F1 BW0 BW1. A pass is its kind (F, B, W
// or BW) and micro batch, and for chunks other than 0 a dot and the chunk.
func Parse(doc *document.Map) (Table, error) {
	t := Table{Shape: Shape{Chunks: 1, Placement: Loop}}
	var errs []error
	fail := func(v document.Value, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%v: %w", v.Origin(), fmt.Errorf(format, args...)))
	}
	number := func(v document.Value, key string, into *int) {
		if n, ok := v.Int64(); ok && n >= 1 && n <= MaxPasses {
			*into = int(n)
		} else {
			fail(v, "%s: given %s, want a number from 1 to %d", key, v.Describe(), MaxPasses)
		}
	}
	for key, v := range doc.All() {
		switch key {
		case "name":
			if name, ok := v.Str(); ok && name != "" {
				t.Name = name
			} else {
				fail(v, "name: given %s, want text", v.Describe())
			}
		case "placement":
			name, _ := v.Str()
			if t.Placement = Placement(name); t.Placement != Loop && t.Placement != Vee {
				fail(v, "placement: given %s, want %s or %s", v.Describe(), Loop, Vee)
			}
		case "micro_batches":
			number(v, key, &t.MicroBatches)
		case "chunks":
			number(v, key, &t.Chunks)
		case "stages":
			list, ok := v.List()
			if !ok || len(list) == 0 || len(list) > MaxRanks {
				fail(v, "stages: given %s, want a list of 1 to %d stages", v.Describe(), MaxRanks)
				continue
			}
			t.Ranks = len(list)
			for rank, stage := range list {
				passes, err := parsePasses(rank, stage)
				if err != nil {
					errs = append(errs, err)
				}
				t.Passes = append(t.Passes, passes)
			}
		default:
			fail(v, "%s is not a key of a schedule: want name, placement, micro_batches, chunks and stages", key)
		}
	}
	for _, key := range []string{"micro_batches", "stages"} {
		if !slices.Contains(doc.Keys(), key) {
			errs = append(errs, fmt.Errorf("the key %s is missing: a schedule has micro_batches and stages", key))
		}
	}
	if len(errs) > 0 {
		return Table{}, errors.Join(errs...)
	}
	return t, Check(t, 0)
}

func parsePasses(rank int, v document.Value) ([]Pass, error) {
	var words []string
	if list, ok := v.List(); ok {
		for i, item := range list {
			word, ok := item.Str()
			if !ok {
				return nil, fmt.Errorf("%v: stage %d, position %d: given %s, want a pass such as F0 or BW3.1", item.Origin(), rank, i, item.Describe())
			}
			words = append(words, word)
		}
	} else if text, ok := v.Str(); ok {
		words = strings.Fields(text)
	} else {
		return nil, fmt.Errorf("%v: stage %d: given %s, want a list of passes such as F0 or BW3.1", v.Origin(), rank, v.Describe())
	}
	passes := make([]Pass, len(words))
	for i, word := range words {
		parts := entry.FindStringSubmatch(word)
		if parts == nil {
			return nil, fmt.Errorf("%v: stage %d, position %d: given %q, want a pass such as F0 or BW3.1", v.Origin(), rank, i, document.Shorten(word))
		}
		microBatch, _ := strconv.Atoi(parts[2])
		chunk, _ := strconv.Atoi("0" + parts[3])
		passes[i] = Pass{Kind(slices.Index(kindNames[:], parts[1])), microBatch, chunk}
	}
	return passes, nil
}
