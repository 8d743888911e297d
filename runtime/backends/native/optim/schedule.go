package optim

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Style is how the learning rate decays, with Megatron's names.
type Style string

// The decay styles.
const (
	Constant Style = "constant"
	Linear   Style = "linear"
	Cosine   Style = "cosine"
)

// Values returns the decay styles.
func (Style) Values() []string { return []string{string(Constant), string(Linear), string(Cosine)} }

// Schedule is a learning rate with linear warm-up and decay.
type Schedule struct {
	LR     float64 // the largest
	MinLR  float64 // the rate at the end of the decay
	Style  Style
	Warmup int // steps
	Decay  int // the step at which MinLR is reached
}

// Validate returns what is wrong with the schedule.
func (s Schedule) Validate() error {
	switch {
	case !(s.LR > 0) || math.IsInf(s.LR, 0):
		return fmt.Errorf("lr: got %v, want a number > 0", s.LR)
	case !(s.MinLR >= 0) || s.MinLR > s.LR:
		return fmt.Errorf("min_lr: got %v, want 0 <= min_lr <= lr %v", s.MinLR, s.LR)
	case !slices.Contains(s.Style.Values(), string(s.Style)):
		return fmt.Errorf("lr_decay_style: got %q, want %s", s.Style, strings.Join(s.Style.Values(), " or "))
	case s.Warmup < 0:
		return fmt.Errorf("lr_warmup_iters: got %d, want a number >= 0", s.Warmup)
	case s.Decay < s.Warmup:
		return fmt.Errorf("lr_decay_iters: got %d, want at least lr_warmup_iters %d", s.Decay, s.Warmup)
	}
	return nil
}

// At returns the learning rate of a step, counted from 1:
//
//	lr·step/warmup                        while step <= warmup
//	min + (lr−min)·c((step−warmup)/(decay−warmup))      up to decay
//	min                                   after it
//
// with c(x) = 1−x for linear, (1+cos πx)/2 for cosine and lr throughout for constant. It is
// Megatron's schedule, except that the first step uses lr/warmup where Megatron's uses 0.
func (s Schedule) At(step int) float64 {
	switch {
	case step <= s.Warmup:
		return s.LR * float64(step) / float64(s.Warmup)
	case s.Style == Constant:
		return s.LR
	case step >= s.Decay:
		return s.MinLR
	}
	x := float64(step-s.Warmup) / float64(s.Decay-s.Warmup)
	c := 1 - x
	if s.Style == Cosine {
		c = (1 + math.Cos(math.Pi*x)) / 2
	}
	return s.MinLR + (s.LR-s.MinLR)*c
}
