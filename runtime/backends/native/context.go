package native

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/native/sequence"
)

// lcm returns the least common multiple of two numbers.
func lcm(a, b int) int {
	n := a
	for n%b != 0 {
		n += a
	}
	return n
}

// validateContext returns the faults of parameters that contradict ranks which share the tokens of
// sequences.
func (a *Args) validateContext() error {
	n := a.ContextRanks()
	if n <= 1 {
		return nil
	}
	if err := sequence.Validate(a.SeqLength, n); err != nil {
		return err
	}
	var faults []error
	refuse := func(key string, given any, want string) {
		faults = append(faults, fmt.Errorf("%s: given %v, want %s with context_parallel_size %d", key, given, want, n))
	}
	rows := a.SeqLength / (2 * n) // of a chunk
	if a.SequenceParallel {
		if rows = a.SeqLength / n / a.TensorRanks(); a.SeqLength/n%a.TensorRanks() != 0 {
			refuse("sequence_parallel", true, fmt.Sprintf("false, or a seq_length in place of %d that is a multiple of %d,", a.SeqLength, n*a.TensorRanks()))
		}
	}
	if a.AttentionDropout > 0 {
		refuse("attention_dropout", a.AttentionDropout, "0")
	}
	if a.HiddenDropout > 0 && rows*a.HiddenSize%8 != 0 {
		refuse("hidden_dropout", a.HiddenDropout, fmt.Sprintf("0, or parts of sequences of %d·%d elements, a multiple of 8,", rows, a.HiddenSize))
	}
	if a.LoRA.Dropout > 0 && a.Adapts() {
		refuse("lora_dropout", a.LoRA.Dropout, "0")
	}
	if a.stage == stageDPO {
		refuse("stage", a.stage, "another one")
	}
	return errors.Join(faults...)
}
