package native

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
)

// memoryPart is a part of the memory of a run.
type memoryPart struct {
	what  string
	keys  string // parameters that make it smaller
	bytes float64
}

// checkMemory describes the memory that training needs and returns an error if that is more than
// this process can have. It counts what is allocated before the first step, without the scratch
// memory of kernels. Memory of devices other than the CPU is not counted.
func (a *Args) checkMemory(mgr *opmanager.Manager, dev device.Backend) (string, error) {
	at, err := dev.Device()
	if err != nil {
		return "", err
	}
	limit, err := sysmem.Read()
	if err != nil {
		limit = sysmem.Limit{Bytes: math.MaxUint64, Source: "a system that does not tell"}
	}
	parts := []memoryPart{{"the batch", "global_batch_size", 4 * float64(a.GlobalBatchSize) * float64(a.SeqLength+1)}}
	if at.Type == device.TypeCPU {
		parts = append(parts, memoryPart{"weights with gradients and moments", "num_layers, hidden_size, vocab_size or num_experts", 2 * a.WeightBytes()})
		if describeMemory(parts).total <= float64(limit.Bytes) { // counting the rest may itself take too much memory
			activations, err := a.ActivationBytes(mgr, a.MicroBatchSize)
			if err != nil {
				return "", err
			}
			parts = append(parts, memoryPart{"activations", "micro_batch_size, seq_length or num_layers", activations})
		}
	}
	needs := describeMemory(parts)
	most := fmt.Sprintf("%s (%s)", sysmem.Text(float64(limit.Bytes)), limit.Source)
	if needs.total > float64(limit.Bytes) {
		return "", fmt.Errorf("memory: training takes at least %s, and this process can have %s: lower %s", needs.text, most, needs.largest.keys)
	}
	return fmt.Sprintf("%s, of %s", needs.text, most), nil
}

// memoryNeeds is the sum of parts.
type memoryNeeds struct {
	total   float64
	text    string
	largest memoryPart
}

func describeMemory(parts []memoryPart) memoryNeeds {
	var n memoryNeeds
	var words []string
	slices.SortFunc(parts, func(x, y memoryPart) int { return cmp.Compare(y.bytes, x.bytes) })
	for _, p := range parts {
		n.total += p.bytes
		words = append(words, p.what+" "+sysmem.Text(p.bytes))
	}
	n.largest = parts[0]
	n.text = fmt.Sprintf("%s (%s)", sysmem.Text(n.total), strings.Join(words, ", "))
	return n
}
