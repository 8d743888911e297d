package inference

import (
	"cmp"
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/sysmem"
)

// DefaultCapacity is the length of texts unless another one is given, or that of the model if it is
// shorter: models for very long texts would take all memory for their cache.
const DefaultCapacity = 4096

// capacityOf returns the length of texts for a model, 0 being the default.
func capacityOf(cfg model.Config, given int) int {
	return cmp.Or(given, min(cfg.SeqLength, DefaultCapacity))
}

// checkWeights returns an error if the weights of a model do not fit in the memory of a device.
func checkWeights(cfg model.Config, dev device.Backend) error {
	dtype := cfg.Compute()
	return fits(dev, float64(dtype.Size())*float64(cfg.NumParameters()), fmt.Sprintf("the weights in %v", dtype), "a smaller model is needed")
}

// checkCache returns an error if the keys and values of texts do not fit in memory beside the
// weights of a model.
func checkCache(m *model.Model, slots, capacity int) error {
	cfg := m.Config()
	values := 2 * float64(cfg.NumLayers) * float64(cfg.Groups()) * float64(cfg.HeadDim()) * float64(slots) * float64(capacity)
	return fits(m.Backend(), float64(cfg.Compute().Size())*(values+float64(cfg.NumParameters())),
		fmt.Sprintf("the weights and the keys and values of %d texts of %d tokens", slots, capacity), "fewer or shorter texts at once are needed")
}

func fits(dev device.Backend, bytes float64, what, advice string) error {
	limit, owner, err := memory.Limit(dev)
	if err != nil || bytes <= float64(limit.Bytes) {
		return nil // without a limit the allocation itself says whether it fits
	}
	return fmt.Errorf("memory: %s take %s, and %s %s (%s): %s", what, sysmem.Text(bytes), owner, sysmem.Text(float64(limit.Bytes)), limit.Source, advice)
}
