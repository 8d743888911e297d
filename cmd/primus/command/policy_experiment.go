package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
)

// deterministicMode is the parameter of Megatron that asks for the same bits every time.
const deterministicMode = "deterministic_mode"

// experimentOverlay returns the dispatch parameters of a module: te_fl_prefer and its like, the keys of the dispatch block,
// which are those of a policy file, and deterministic_mode where it is true. Null is as if the key were not there.
func experimentOverlay(m *config.Module) (*policyfile.Overlay, error) {
	if m == nil {
		return nil, nil
	}
	policy := policyfile.Value{Type: policyfile.TypeMapping}
	var faults []error
	for name, value := range m.Params.All() {
		if on, _ := value.Bool(); on && name == deterministicMode {
			at := policyValue(value)
			policy.Entries = append(policy.Entries, policyfile.Entry{
				Key: string(opmanager.FieldDeterministic), Name: "modules." + m.Name + "." + name, Place: at.Place, Value: at,
			})
			continue
		}
		if value.IsNull() || !backend.IsDispatchParam(name) {
			continue
		}
		given, path := policyValue(value), "modules."+m.Name+"."+name
		if key, single := strings.CutPrefix(name, backend.DispatchPrefix); single {
			if slices.Contains([]opmanager.Field{opmanager.FieldRules, opmanager.FieldQuarantine, opmanager.FieldVerify}, opmanager.Field(key)) {
				faults = append(faults, &policyfile.Error{Place: given.Place, Key: path, Problem: fmt.Sprintf("expected %s in the %s block", key, backend.DispatchBlock)})
				continue
			}
			if text, isText := value.Str(); isText && key == string(opmanager.FieldPerOp) {
				var err error
				given, err = perOpValue(text, given.Place)
				faults = append(faults, err)
			}
			policy.Entries = append(policy.Entries, policyfile.Entry{Key: key, Name: path, Place: given.Place, Value: given})
			continue
		}
		if given.Type != policyfile.TypeMapping {
			_, err := policyfile.FromValue(given)
			faults = append(faults, err)
		}
		for _, e := range given.Entries {
			if e.Value.Type != policyfile.TypeNull {
				e.Name = path + "." + e.Key
				policy.Entries = append(policy.Entries, e)
			}
		}
	}
	overlay, err := policyfile.FromValue(policy)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	return overlay, nil
}

// perOpValue returns the orders of a text as TE_FL_PER_OP has it.
func perOpValue(text string, at policyfile.Place) (policyfile.Value, error) {
	orders := policyfile.Value{Place: at, Type: policyfile.TypeMapping}
	var p opmanager.Policy
	err := p.SetPerOp(text, at.Source())
	for _, rule := range p.PerOp {
		order := policyfile.Value{Place: at, Type: policyfile.TypeList}
		for _, token := range rule.Order {
			order.Items = append(order.Items, policyfile.Value{Place: at, Type: policyfile.TypeString, Text: token.String()})
		}
		orders.Entries = append(orders.Entries, policyfile.Entry{Key: rule.Pattern, Place: at, Value: order})
	}
	return orders, err
}

// policyValue returns a value of a configuration as one of a policy document.
func policyValue(v document.Value) policyfile.Value {
	out := policyfile.Value{Place: place(v), Text: v.Text()}
	switch v.Kind() {
	case document.KindNull:
		out.Type = policyfile.TypeNull
	case document.KindBool:
		out.Type = policyfile.TypeBool
	case document.KindInt:
		out.Type = policyfile.TypeInt
	case document.KindFloat:
		out.Type = policyfile.TypeFloat
	case document.KindString:
		out.Type = policyfile.TypeString
	case document.KindList:
		out.Type = policyfile.TypeList
		items, _ := v.List()
		for _, item := range items {
			out.Items = append(out.Items, policyValue(item))
		}
	case document.KindMap:
		out.Type = policyfile.TypeMapping
		m, _ := v.Map()
		for key, value := range m.All() {
			out.Entries = append(out.Entries, policyfile.Entry{Key: key, Place: place(value), Value: policyValue(value)})
		}
	default:
		out.Type = policyfile.Type(v.Kind().String())
	}
	return out
}

// place returns where a value was written: in a file, or on the command line.
func place(v document.Value) policyfile.Place {
	o := v.Origin()
	if o.Position > 0 || o.Env != "" {
		return policyfile.Place{File: o.String()}
	}
	return policyfile.Place{File: o.File, Line: o.Line, Column: o.Column}
}
