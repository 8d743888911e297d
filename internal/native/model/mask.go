package model

// MaskConfig are the parameters of sequences that hold several documents, with Megatron's names.
type MaskConfig struct {
	ResetPositions bool `param:"reset_position_ids"`
	ResetAttention bool `param:"reset_attention_mask"`
	MaskLoss       bool `param:"eod_mask_loss"`
}

// Any reports whether documents are told apart at all.
func (c MaskConfig) Any() bool { return c.ResetPositions || c.ResetAttention || c.MaskLoss }

// Apply sets the weights, segments and positions of a batch whose documents end with the token
// eod, which belongs to the document that it ends:
//
//	segment[i]  = number of eod among the tokens 0 … i−1 of the row, with ResetAttention
//	position[i] = tokens since the last eod before i, with ResetPositions
//	weight[i]   = 0 where token i is eod, 1 elsewhere, with MaskLoss
//
// so that nobody learns to guess the beginning of the next document. What is not asked for becomes
// nil. It allocates when the batch has no memory for a mask yet. Source: Megatron-LM,
// get_ltor_masks_and_position_ids.
func (c MaskConfig) Apply(b *Batch, eod int32) {
	n := b.Rows() * b.Seq
	b.Weights, b.Segments, b.Positions = sized(b.Weights, n, c.MaskLoss), sized(b.Segments, n, c.ResetAttention), sized(b.Positions, n, c.ResetPositions)
	for r := range b.Rows() {
		segment, position := int32(0), int32(0)
		for i, token := range b.Tokens[r*(b.Seq+1) : (r+1)*(b.Seq+1)-1] {
			at := r*b.Seq + i
			if c.ResetAttention {
				b.Segments[at] = segment
			}
			if c.ResetPositions {
				b.Positions[at] = position
			}
			if c.MaskLoss {
				b.Weights[at] = 1
			}
			position++
			if token == eod {
				segment, position = segment+1, 0
				if c.MaskLoss {
					b.Weights[at] = 0
				}
			}
		}
	}
}

// sized returns a slice of n elements if it is wanted, in the memory of s where that is enough.
func sized[T any](s []T, n int, wanted bool) []T {
	switch {
	case !wanted:
		return nil
	case cap(s) < n:
		return make([]T, n)
	default:
		return s[:n]
	}
}
