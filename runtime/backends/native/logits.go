package native

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/model"
)

// EntropyFusion says how the cross entropy is computed, with Megatron's names.
type EntropyFusion struct {
	Fuses *bool             `param:"cross_entropy_loss_fusion"`
	Impl  EntropyFusionImpl `param:"cross_entropy_fusion_impl"`
}

// EntropyFusionImpl is a form of the cross entropy.
type EntropyFusionImpl string

// The forms.
const (
	LinearFusion EntropyFusionImpl = "linear" // together with the output layer, without logits
	NativeFusion EntropyFusionImpl = "native" // of logits
	TEFusion     EntropyFusionImpl = "te"     // likewise; what it calls is for policies to say
)

// Values returns the forms.
func (EntropyFusionImpl) Values() []string {
	return []string{string(LinearFusion), string(NativeFusion), string(TEFusion)}
}

// leastLinearVocab is the vocabulary from which no logits are kept unless parameters ask for them.
const leastLinearVocab = 1 << 14

func (f EntropyFusion) validate() error {
	if f.Impl == "" || slices.Contains(f.Impl.Values(), string(f.Impl)) {
		return nil
	}
	return fmt.Errorf("cross_entropy_fusion_impl: given %q, want one of %s", f.Impl, strings.Join(f.Impl.Values(), ", "))
}

// wantsLinear reports whether the parameters ask for a loss without logits, by default with a large
// vocabulary.
func (f EntropyFusion) wantsLinear(vocab int) bool {
	switch {
	case f.Fuses != nil && !*f.Fuses:
		return false
	case f.Impl != "":
		return f.Impl == LinearFusion
	}
	return f.Fuses != nil || vocab >= leastLinearVocab
}

// keepsLogits returns what needs logits that the parameters do not ask for, "" if nothing does.
func (a *Args) keepsLogits(onDevice bool) string {
	switch {
	case a.stage == stageDPO:
		return "stage " + a.stage
	case a.TensorRanks() > 1:
		return fmt.Sprintf("tensor_model_parallel_size %d", a.TensorRanks())
	case a.StageRanks() > 1:
		return fmt.Sprintf("pipeline_model_parallel_size %d", a.StageRanks())
	case a.FinalSoftcap != 0:
		return fmt.Sprintf("final_logit_softcapping %v", a.FinalSoftcap)
	case onDevice:
		return "the device"
	}
	return ""
}

// built returns the configuration of the model with the form of the loss.
func (a *Args) built(onDevice bool) model.Config {
	c := a.Config
	c.LinearCrossEntropy = a.wantsLinear(a.VocabSize) && a.keepsLogits(onDevice) == ""
	return c
}

// inspectLoss says whether logits are kept where the vocabulary is large or a parameter asks.
func (t *trainer) inspectLoss(context.Context) (string, error) {
	a := t.args
	if a.VocabSize < leastLinearVocab && a.EntropyFusion == (EntropyFusion{}) {
		return "", nil
	}
	onDevice, err := onDevice(t.tc.Device)
	if err != nil {
		return "", err
	}
	logits := fmt.Sprintf("%d logits of each token are kept", a.VocabSize)
	switch why := a.keepsLogits(onDevice); {
	case !a.wantsLinear(a.VocabSize):
		return logits, nil
	case why != "":
		return logits + " because of " + why, nil
	}
	return "no logits are kept, unless a patch changes the loss (linear_cross_entropy_fwd)", nil
}

// onDevice reports whether a run computes outside of the memory of the host.
func onDevice(dev device.Backend) (bool, error) {
	if dev == nil {
		return false, nil
	}
	at, err := dev.Device()
	if err != nil {
		return false, fmt.Errorf("device: %w", err)
	}
	return at.Type != device.TypeCPU, nil
}
