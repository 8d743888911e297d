package optim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Style is how the learning rate decays, with Megatron's names.
type Style string

// The decay styles.
const (
	Constant          Style = "constant"
	Linear            Style = "linear"
	Cosine            Style = "cosine"
	InverseSquareRoot Style = "inverse-square-root"
	WSD               Style = "WSD" // warm-up, a stable rate, and a decay at the end
)

// Values returns the decay styles.
func (Style) Values() []string {
	return []string{string(Constant), string(Linear), string(Cosine), string(InverseSquareRoot), string(WSD)}
}

// WSDStyle is how the learning rate of WSD decays at the end, with Megatron's names.
type WSDStyle string

// The styles of the end of WSD.
const (
	WSDExponential WSDStyle = "exponential"
	WSDLinear      WSDStyle = "linear"
	WSDCosine      WSDStyle = "cosine"
	WSDMinusSqrt   WSDStyle = "minus_sqrt"
)

// Values returns the styles.
func (WSDStyle) Values() []string {
	return []string{string(WSDExponential), string(WSDLinear), string(WSDCosine), string(WSDMinusSqrt)}
}

// Schedule is a learning rate with linear warm-up and decay, with Megatron's names.
type Schedule struct {
	LR              float64  `param:"lr"`     // the largest
	MinLR           float64  `param:"min_lr"` // the rate at the end of the decay
	LRDecayStyle    Style    `param:"lr_decay_style"`
	LRWarmupIters   int      `param:"lr_warmup_iters"`
	LRWarmupInit    float64  `param:"lr_warmup_init"`     // the rate from which the warm-up rises
	LRDecayIters    int      `param:"lr_decay_iters"`     // the step at which MinLR is reached
	LRWSDDecayStyle WSDStyle `param:"lr_wsd_decay_style"` // "" means exponential
	LRWSDDecayIters int      `param:"lr_wsd_decay_iters"` // the steps before LRDecayIters in which WSD decays
}

// Validate returns every fault of the schedule.
func (s Schedule) Validate() error {
	f := faults{}
	f.check(s.LR > 0 && !math.IsInf(s.LR, 0), "lr", s.LR, "a number > 0")
	f.check(s.MinLR >= 0 && s.MinLR <= s.LR, "min_lr", s.MinLR, fmt.Sprintf("0 <= min_lr <= lr %v", s.LR))
	f.check(s.LRDecayStyle != "", "lr_decay_style", `""`, "one of its values")
	f.oneOf("lr_decay_style", string(s.LRDecayStyle), s.LRDecayStyle.Values())
	f.check(s.LRWarmupIters >= 0, "lr_warmup_iters", s.LRWarmupIters, "a number >= 0")
	f.check(s.LRWarmupInit >= 0 && s.LRWarmupInit <= s.LR, "lr_warmup_init", s.LRWarmupInit, fmt.Sprintf("0 <= lr_warmup_init <= lr %v", s.LR))
	f.check(s.LRDecayIters >= s.LRWarmupIters, "lr_decay_iters", s.LRDecayIters, fmt.Sprintf("at least lr_warmup_iters %d", s.LRWarmupIters))
	f.oneOf("lr_wsd_decay_style", string(s.LRWSDDecayStyle), s.LRWSDDecayStyle.Values())
	if s.LRDecayStyle == WSD {
		most := s.LRDecayIters - s.LRWarmupIters
		f.check(s.LRWSDDecayIters >= 1 && s.LRWSDDecayIters <= most, "lr_wsd_decay_iters", s.LRWSDDecayIters,
			fmt.Sprintf("a number from 1 to lr_decay_iters − lr_warmup_iters, %d", most))
	}
	return errors.Join(f...)
}

// At returns the learning rate of a step, counted from 1:
//
//	init + (lr−init)·step/warmup                      while step <= warmup
//	min + (lr−min)·c((step−warmup)/(decay−warmup))    up to decay
//	min                                               after it
//
// with c(x) = 1−x for linear and (1+cos πx)/2 for cosine. For constant it is lr throughout, and for
// inverse-square-root lr·√(warmup/step), at least min. For WSD c is 1 until lr_wsd_decay_iters
// steps before decay, and then, with the share y of them, 2·½^y−1, 1−y, (1+cos πy)/2 or 1−√y. It is
// Megatron's schedule, except that the first step uses lr/warmup where Megatron's uses 0.
func (s Schedule) At(step int) float64 {
	switch {
	case step <= s.LRWarmupIters:
		return s.LRWarmupInit + (s.LR-s.LRWarmupInit)*float64(step)/float64(s.LRWarmupIters)
	case s.LRDecayStyle == Constant:
		return s.LR
	case step > s.LRDecayIters:
		return s.MinLR
	case s.LRDecayStyle == InverseSquareRoot:
		return max(s.MinLR, s.LR*math.Sqrt(float64(max(s.LRWarmupIters, 1))/float64(step)))
	}
	return s.MinLR + (s.LR-s.MinLR)*s.coefficient(step)
}

// coefficient returns c for a step after the warm-up.
func (s Schedule) coefficient(step int) float64 {
	x := float64(step-s.LRWarmupIters) / float64(s.LRDecayIters-s.LRWarmupIters)
	half := func(x float64) float64 { return (1 + math.Cos(math.Pi*x)) / 2 }
	switch s.LRDecayStyle {
	case Linear:
		return 1 - x
	case Cosine:
		return half(x)
	}
	y := max(0, float64(step-(s.LRDecayIters-s.LRWSDDecayIters))/float64(s.LRWSDDecayIters))
	switch cmp.Or(s.LRWSDDecayStyle, WSDExponential) {
	case WSDLinear:
		return 1 - y
	case WSDCosine:
		return half(y)
	case WSDMinusSqrt:
		return 1 - math.Sqrt(y)
	default:
		return 2*math.Pow(0.5, y) - 1
	}
}
