package data

import (
	"fmt"
	"math"
)

const (
	// wantBlocks is how many blocks a long stream has at least: enough that the
	// validation blocks come from all parts of it.
	wantBlocks = 256

	// maxBlockWindows limits a block, so that a very long stream has more blocks.
	maxBlockWindows = 64
)

// SplitSettings say how a stream is cut.
type SplitSettings struct {
	// SeqLength is the number of input tokens of a window.
	SeqLength int

	// ValidFraction and TestFraction are the parts of the blocks held out for validation and for the
	// test, from 0 to below 1 together; each above 0 is at least one block.
	ValidFraction, TestFraction float64
}

// CheckLength returns a *TooShortError when a stream of this many tokens is too
// short for one block of each kind.
func (s SplitSettings) CheckLength(tokens int) error {
	e := &TooShortError{Have: tokens, Need: s.SeqLength + 1, SeqLength: s.SeqLength}
	if s.ValidFraction > 0 {
		e.Need, e.Valid = e.Need+s.SeqLength+1, true
	}
	if s.TestFraction > 0 {
		e.Need, e.Test = e.Need+s.SeqLength+1, true
	}
	if tokens < e.Need {
		return e
	}
	return nil
}

// Set is a stream cut into windows for training, validation and the test.
type Set struct {
	tokens       *Tokens
	seq          int
	blockWindows int
	train        []int32 // numbers of the blocks
	valid        []int32
	test         []int32
}

// TooShortError says that a stream has too few tokens for its windows.
type TooShortError struct {
	Have      int
	Need      int
	SeqLength int
	Valid     bool // a validation window is needed too
	Test      bool // a test window is needed too
}

// Error names the tokens there are and the tokens needed, and what to change.
func (e *TooShortError) Error() string {
	what := "one training window"
	switch {
	case e.Valid && e.Test:
		what = "one training, one validation and one test window"
	case e.Valid:
		what = "one training and one validation window"
	case e.Test:
		what = "one training and one test window"
	}
	return fmt.Sprintf("seq_length: the sequence is longer than the data: given %d tokens, want at least %d for %s of seq_length+1 = %d tokens: lower seq_length, add text to train_data_path or raise its limit", e.Have, e.Need, what, e.SeqLength+1)
}

// NewSet cuts a stream into blocks of windows. Block b begins at token b·(w·seq+1), where w is the
// number of windows per block, and window j of a block begins at token j·seq of it and holds seq+1
// tokens: neighbours in a block share one token, which is a target of the first and an input of the
// second. Tokens after the last whole block are not used.
//
// Of n blocks, v = round(n·ValidFraction), between 1 and n−1, are held out: those blocks b with
// ⌊(b+1)v/n⌋ > ⌊bv/n⌋. The blocks of the test are chosen in the same way from those that are left.
// The choice does not depend on any seed, so validation losses can be compared between runs. A
// stream too short for one block of each kind gives a *TooShortError.
func NewSet(t *Tokens, s SplitSettings) (*Set, error) {
	if s.SeqLength < 1 || s.SeqLength >= math.MaxInt32 {
		return nil, fmt.Errorf("data: given seq_length %d, want 1 or more", s.SeqLength)
	}
	if !(s.ValidFraction >= 0 && s.ValidFraction < 1) {
		return nil, fmt.Errorf("data: given a validation fraction of %v, want 0 <= fraction < 1", s.ValidFraction)
	}
	if !(s.TestFraction >= 0 && s.ValidFraction+s.TestFraction < 1) {
		return nil, fmt.Errorf("data: given a test fraction of %v beside a validation fraction of %v, want 0 <= fraction < %v", s.TestFraction, s.ValidFraction, 1-s.ValidFraction)
	}
	if err := s.CheckLength(t.Len()); err != nil {
		return nil, err
	}
	set := &Set{tokens: t, seq: s.SeqLength}
	set.blockWindows = min(max(t.Len()/(s.SeqLength*wantBlocks), 1), maxBlockWindows)
	n := t.Len() / set.blockTokens()
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("data: given %d blocks, want at most %d: raise seq_length or lower the limit of the corpus", n, math.MaxInt32)
	}
	v, e := 0, 0
	if s.ValidFraction > 0 {
		v = min(max(int(math.Round(float64(n)*s.ValidFraction)), 1), n-1)
	}
	if s.TestFraction > 0 {
		e = max(int(math.Round(float64(n)*s.TestFraction)), 1)
		v, e = min(v, n-2), min(e, n-1-min(v, n-2))
	}
	for b := range n {
		rest := len(set.train) + len(set.test)
		switch {
		case (b+1)*v/n > b*v/n:
			set.valid = append(set.valid, int32(b))
		case (rest+1)*e/(n-v) > rest*e/(n-v):
			set.test = append(set.test, int32(b))
		default:
			set.train = append(set.train, int32(b))
		}
	}
	return set, nil
}

func (s *Set) blockTokens() int { return s.blockWindows*s.seq + 1 }

// TrainWindows returns the number of training windows, which is that of the samples of an epoch.
func (s *Set) TrainWindows() int { return len(s.train) * s.blockWindows }

// ValidWindows returns the number of validation windows.
func (s *Set) ValidWindows() int { return len(s.valid) * s.blockWindows }

// TestWindows returns the number of test windows.
func (s *Set) TestWindows() int { return len(s.test) * s.blockWindows }

// Train returns the training windows.
func (s *Set) Train() *Blend { return s.only(s.train) }

// Valid returns the validation windows.
func (s *Set) Valid() *Blend { return s.only(s.valid) }

// Test returns the test windows.
func (s *Set) Test() *Blend { return s.only(s.test) }

// Fingerprint identifies the windows by the content of the stream and the way it is cut. A run that
// is resumed on data with another fingerprint would see other batches than the uninterrupted run.
func (s *Set) Fingerprint() string {
	text := fmt.Sprintf("%s seq_length=%d train_windows=%d valid_windows=%d", s.Corpus(), s.seq, s.TrainWindows(), s.ValidWindows())
	if len(s.test) > 0 {
		text += fmt.Sprintf(" test_windows=%d", s.TestWindows())
	}
	return text
}

// Corpus identifies the content of the stream; the Fingerprint begins with it.
func (s *Set) Corpus() string {
	return s.tokens.identity()
}

// window fills dst, which holds seq+1 tokens, with window i of the given blocks.
func (s *Set) window(dst []int32, blocks []int32, i int) error {
	block := int(blocks[i/s.blockWindows])
	return s.tokens.Read(dst, block*s.blockTokens()+i%s.blockWindows*s.seq)
}
