package patches

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
)

const lrLayerDecay = "lr_layer_decay"

// layerwiseLRDecay multiplies the learning rate of a weight by
//
//	d^(L+1−i)
//
// where d is lr_layer_decay, 0 < d <= 1, L the number of layers and i the depth of the weight: 0
// for the embeddings, of which that of tokens is also the output layer if the two are tied, 1 … L
// for the layers, and L+1 for the final norm and the output layer.
//
// Source: Clark et al. 2020, "ELECTRA", arXiv:2003.10555, appendix A, with one step of depth for
// the embedding.
func layerwiseLRDecay() patch.Patch {
	return patch.Patch{
		ID:          "native.layerwise_lr_decay",
		Description: "Let layers near the input learn more slowly",
		Backend:     native.Framework, Phase: patch.Setup, Style: patch.Wrapping,
		Symbols: []string{native.LRScalePoint.Name()}, Keys: []string{lrLayerDecay}, Condition: patch.Condition{
			Text: lrLayerDecay + " < 1",
			Holds: func(c *patch.Context) (bool, error) {
				decay, err := patch.Param(c, lrLayerDecay, 1.0)
				if err == nil && !(decay > 0 && decay <= 1) {
					err = fmt.Errorf("%s: given %v, want 0 < %s <= 1", lrLayerDecay, decay, lrLayerDecay)
				}
				return decay < 1, err
			},
		},
		Apply: func(c *patch.Context) error {
			decay, err := patch.Param(c, lrLayerDecay, 1.0)
			if err != nil {
				return err
			}
			layers, err := patch.Param(c, "num_layers", int64(0))
			if err != nil {
				return err
			}
			return patch.Wrap(c, native.LRScalePoint, func(next func(*model.Param) float64) func(*model.Param) float64 {
				return func(p *model.Param) float64 {
					return next(p) * math.Pow(decay, float64(int(layers)+1-p.Depth))
				}
			})
		},
	}
}
