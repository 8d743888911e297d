package inference

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/tensor"
)

// InvariantRows is the number of tokens of a step up to which the impls of flagos compute each row
// with the same bits beside any number of others: products of more rows add up in another order.
const InvariantRows = 8

// checkInvariance returns an error if the logits of a text depend on the tokens that a step
// computes at once.
func checkInvariance(d *model.Decoder, vocab int) error {
	settings := d.Settings()
	text := make([]int32, min(InvariantRows+3, settings.Capacity-1))
	for i := range text {
		text[i] = int32(i * 7919 % vocab)
	}
	var alone [][]float32
	for i := range text {
		logits, err := stepOf(d, []model.Chunk{{Tokens: text[i : i+1]}})
		if err != nil {
			return err
		}
		alone = append(alone, logits...)
	}
	for rows := 2; rows <= InvariantRows; rows++ {
		for slot := range settings.Slots {
			d.Truncate(slot, 0)
		}
		for at := 0; at < len(text); {
			others := min(settings.Slots-1, rows-1)
			n := min(rows-others, len(text)-at)
			chunks := []model.Chunk{{Tokens: text[at : at+n]}}
			for i := range others {
				other := text[(at+i)%len(text)]
				chunks = append(chunks, model.Chunk{Slot: 1 + i, Tokens: []int32{other}, From: 1})
			}
			logits, err := stepOf(d, chunks)
			if err != nil {
				return err
			}
			for i, row := range logits {
				if !slices.EqualFunc(row, alone[at+i], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					return fmt.Errorf("the logits of a token have other bits in a step of %d tokens than in one of its own: %w", n+others, errVariant)
				}
			}
			at += n
		}
	}
	for slot := range settings.Slots {
		d.Truncate(slot, 0)
	}
	return nil
}

var errVariant = errors.New("an impl that the policy chooses adds up in an order that depends on the number of rows; want those of flagos")

// stepOf computes a step and returns a copy of each row of its logits.
func stepOf(d *model.Decoder, chunks []model.Chunk) ([][]float32, error) {
	logits, err := d.Step(chunks)
	if err != nil {
		return nil, err
	}
	all, err := tensor.Read[float32](logits)
	if err != nil {
		return nil, err
	}
	var rows [][]float32
	for row := range slices.Chunk(all, logits.Shape().Cols()) {
		rows = append(rows, slices.Clone(row))
	}
	return rows, nil
}
