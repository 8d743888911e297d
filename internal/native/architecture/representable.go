package architecture

import (
	"fmt"
	"math"
	"reflect"
)

// Representable returns an error for each number in a struct of parameters that f32 cannot hold
// because it would become infinite or 0. The range of each parameter excludes NaN.
func Representable[Params any](params *Params) []error {
	var faults []error
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			field, f := v.Type().Field(i), v.Field(i)
			switch {
			case field.Anonymous:
				walk(f)
			case f.Kind() == reflect.Float64:
				if err := representable(f.Float()); err != nil {
					faults = append(faults, fmt.Errorf("%s: %w", field.Tag.Get("param"), err))
				}
			}
		}
	}
	walk(reflect.ValueOf(params).Elem())
	return faults
}

func representable(v float64) error {
	switch {
	case math.Abs(v) > math.MaxFloat32:
		return fmt.Errorf("given %v, want a finite number of at most %v", v, float32(math.MaxFloat32))
	case v != 0 && float32(v) == 0:
		return fmt.Errorf("given %v, want 0 or a number of at least %v", v, float32(math.SmallestNonzeroFloat32))
	}
	return nil
}
