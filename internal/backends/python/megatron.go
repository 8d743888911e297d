package python

import (
	"regexp"
	"strings"
)

var (
	iteration = regexp.MustCompile(`\biteration\s+(\d+)\s*/\s*(\d+)\s*\|`)
	memory    = regexp.MustCompile(`^\s*([\d.]+)\s*([KMGT])i?B`)
)

// units are the factors of sizes in lines of the log.
var units = map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// MegatronStep reads a line such as
//
//	iteration 3/ 50 | consumed samples: 48 | elapsed time per iteration (ms): 812.3 | throughput per GPU (TFLOP/s/GPU): 98.1 |
//	learning rate: 1.0E-05 | global batch size: 16 | lm loss: 1.08E+01 | loss scale: 1.0 | grad norm: 2.3 | …
//
// which Megatron-LM and Megatron-Bridge write.
func MegatronStep(line string) (Step, bool) {
	line = Plain(line)
	m := iteration.FindStringSubmatchIndex(line)
	if m == nil {
		return Step{}, false
	}
	var s Step
	s.Step = s.Int("iteration", line[m[2]:m[3]])
	s.Steps = s.Int("iterations", line[m[4]:m[5]])
	hasLoss := false
	for part := range strings.SplitSeq(line[m[1]:], "|") {
		name, value, ok := strings.Cut(part, ": ")
		if !ok {
			continue
		}
		switch name = strings.TrimSpace(name); {
		case name == "lm loss", name == "loss" && !hasLoss:
			s.Loss, hasLoss = Float(value)
			s.check(name, value, hasLoss)
		case name == "learning rate":
			s.LR = s.Float(name, value)
		case name == "grad norm":
			s.GradNorm = s.Float(name, value)
		case name == "global batch size":
			s.GlobalBatch = s.Int(name, value)
		case strings.HasPrefix(name, "elapsed time per iteration"):
			s.Seconds = s.Float(name, value) / 1000
		case strings.HasPrefix(name, "throughput per GPU"):
			s.TFLOPSPerDevice = s.Float(name, value)
		case strings.HasPrefix(name, "tokens per GPU"):
			s.TokensPerDevice = s.Float(name, value)
		case strings.Contains(name, "mem usage"):
			size := memory.FindStringSubmatch(value)
			if s.check(name, value, size != nil); size != nil {
				s.MemoryBytes = int64(s.Float(name, size[1]) * units[size[2]])
			}
		}
	}
	return s, hasLoss && s.Step > 0
}
