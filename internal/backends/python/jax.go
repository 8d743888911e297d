package python

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
)

// Coordinator returns the variables by which processes of JAX on several nodes find each other,
// none for a single node.
func Coordinator(env *backend.Environ) []backend.EnvDefault {
	if nodes, err := strconv.Atoi(env.Get("NNODES", "1")); err != nil || nodes <= 1 {
		return nil
	}
	const note = "several nodes"
	return []backend.EnvDefault{
		{Name: "JAX_COORDINATOR_IP", Value: cmp.Or(env.Get("MASTER_ADDR", ""), "localhost"), Note: note},
		{Name: "JAX_COORDINATOR_PORT", Value: cmp.Or(env.Get("MASTER_PORT", ""), "1234"), Note: note},
	}
}

// CompletedStep reads a line such as
//
//	completed step: 3, seconds: 1.5, TFLOP/s/device: 210.1, Tokens/s/device: 5461.2, total_weights: 65536, loss: 9.812
//
// which MaxText and MaxDiffusion write.
func CompletedStep(line string) (Step, bool) {
	_, rest, ok := strings.Cut(Plain(line), "completed step: ")
	if !ok {
		return Step{}, false
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq("step: "+rest, ",") {
		if key, value, ok := strings.Cut(part, ":"); ok {
			fields[strings.TrimSpace(key)] = value
		}
	}
	var s Step
	step, ok := Int(fields["step"])
	loss, hasLoss := Float(fields["loss"])
	s.check("completed step", fields["step"], ok)
	s.check("loss", fields["loss"], hasLoss)
	if !ok || !hasLoss || step < 0 {
		return s, false
	}
	s.Step, s.Loss = step+1, loss // MaxText counts from 0
	float := func(name string) float64 { return s.Float(name, fields[name]) }
	s.Seconds, s.TFLOPSPerDevice, s.TokensPerDevice = float("seconds"), float("TFLOP/s/device"), float("Tokens/s/device")
	s.Tokens = s.Int("total_weights", fields["total_weights"])
	s.GradNorm, s.LR = float("grad_norm"), float("learning_rate")
	return s, true
}

// CheckOverrides returns an error for each value of override_model that cannot be an argument on
// the command line of a program.
func CheckOverrides(values map[string]document.Value, program string) error {
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if v := values[key]; v.Kind() == document.KindMap {
			faults = append(faults, &document.Error{
				Origin: v.Origin(), Path: "override_model." + key,
				Problem: fmt.Sprintf("given a %s, want a value for the command line of %s", v.Kind(), program),
			})
		}
	}
	return errors.Join(faults...)
}
