package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
)

// deterministicMode is the parameter of Megatron that asks for the same bits every time.
const deterministicMode = "deterministic_mode"

// Deterministic reports whether a module, which may be nil, asks for the same bits every time.
func Deterministic(m *config.Module) bool {
	if m == nil {
		return false
	}
	for name, value := range m.Params.All() {
		if on, _ := value.Bool(); on && name == deterministicMode {
			return true
		}
	}
	return false
}

// experimentLayer returns the policy layer that the parameters of a module give: te_fl_prefer and
// its like, the dispatch block, whose keys are those of a policy file, and deterministic_mode if it
// is true.
// Parameters that are null are left out. Without a module there is no layer, which is nil.
func experimentLayer(m *config.Module) (*policyfile.Layer, error) {
	if m == nil {
		return nil, nil
	}
	var policy []policyfile.Entry
	var faults []error
	fail := func(v document.Value, path, format string, args ...any) {
		faults = append(faults, fmt.Errorf("policy: %w", &document.Error{Origin: v.Origin(), Path: path, Problem: fmt.Sprintf(format, args...)}))
	}
	for name, value := range m.Params.All() {
		path := "modules." + m.Name + "." + name
		if on, _ := value.Bool(); on && name == deterministicMode {
			policy = append(policy, policyfile.Entry{Key: string(oppolicy.FieldDeterministic), Name: path, Value: value})
			continue
		}
		if value.IsNull() || !backend.IsDispatchParam(name) {
			continue
		}
		if key, single := strings.CutPrefix(name, backend.DispatchPrefix); single {
			if slices.Contains([]oppolicy.Field{oppolicy.FieldRules, oppolicy.FieldQuarantine, oppolicy.FieldVerify, oppolicy.FieldCanary}, oppolicy.Field(key)) {
				fail(value, path, "want %s in the %s block", key, backend.DispatchBlock)
				continue
			}
			if text, isText := value.Str(); isText && key == string(oppolicy.FieldPerOp) {
				var err error
				value, err = perOpValue(text, value)
				faults = append(faults, err)
			}
			policy = append(policy, policyfile.Entry{Key: key, Name: path, Value: value})
			continue
		}
		block, ok := value.Map()
		if !ok {
			fail(value, path, "given %s, want a mapping with the keys %s", value.Describe(), strings.Join(policyfile.Keys(), ", "))
		}
		for key, given := range block.All() {
			if !given.IsNull() {
				policy = append(policy, policyfile.Entry{Key: key, Name: path + "." + key, Value: given})
			}
		}
	}
	layer, err := policyfile.FromEntries(policy)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	layer.Origin = "modules." + m.Name
	return layer, nil
}

// perOpValue returns the orders of a text as TE_FL_PER_OP has it, as a mapping in the place of
// value.
func perOpValue(text string, value document.Value) (document.Value, error) {
	at := value.Origin()
	var orders document.Builder
	var p oppolicy.Policy
	err := p.SetPerOp(text, at.Source())
	for _, rule := range p.PerOp {
		var order []document.Value
		for _, token := range rule.Order {
			order = append(order, document.StringValue(token.String()).At(at))
		}
		orders.Set(rule.Pattern, document.ListValue(order).At(at))
	}
	return document.MapValue(orders.Map()).At(at).KeyAt(value.KeyOrigin()), err
}
