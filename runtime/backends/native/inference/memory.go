package inference

import (
	"cmp"
	"fmt"

	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/runtime/backends/native/model"
)

// DefaultCapacity is the length of texts unless another one is given, or that of the model if it is
// shorter: models for very long texts would take all memory for their cache.
const DefaultCapacity = 4096

// capacityOf returns the length of texts for a model, 0 being the default.
func capacityOf(cfg model.Config, given int) int {
	return cmp.Or(given, min(cfg.SeqLength, DefaultCapacity))
}

// checkWeights returns an error if the weights of a model do not fit in memory.
func checkWeights(cfg model.Config) error {
	dtype := cfg.Compute()
	return fits(float64(dtype.Size())*float64(cfg.NumParameters()), fmt.Sprintf("the weights in %v", dtype), "a smaller model is needed")
}

// checkCache returns an error if the keys and values of texts do not fit in memory beside the
// weights.
func checkCache(cfg model.Config, slots, capacity int) error {
	values := 2 * float64(cfg.NumLayers) * float64(cfg.Groups()) * float64(cfg.HeadDim()) * float64(slots) * float64(capacity)
	return fits(float64(cfg.Compute().Size())*(values+float64(cfg.NumParameters())),
		fmt.Sprintf("the weights and the keys and values of %d texts of %d tokens", slots, capacity), "fewer or shorter texts at once are needed")
}

func fits(bytes float64, what, advice string) error {
	limit, err := sysmem.Read()
	if err != nil || bytes <= float64(limit.Bytes) {
		return nil // without a limit the allocation itself says whether it fits
	}
	return fmt.Errorf("memory: %s take %s, and this process can have %s (%s): %s", what, sysmem.Text(bytes), sysmem.Text(float64(limit.Bytes)), limit.Source, advice)
}
