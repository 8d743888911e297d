package rankops

import (
	"encoding/json"
	"slices"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// PolicyText returns the values that a policy gives as the text of a policy file. The vendor nvidia
// is among the denied ones if the policy leaves out CUDA.
func PolicyText(p oppolicy.Policy) (string, error) {
	v, values := p.View(), map[string]any{}
	for _, f := range p.Given() {
		switch f {
		case oppolicy.FieldPrefer:
			values[string(f)] = v.Prefer
		case oppolicy.FieldStrict:
			values[string(f)] = v.Strict
		case oppolicy.FieldAllow:
			values[string(f)] = list(v.Allow)
		case oppolicy.FieldDeny:
			values[string(f)] = v.Deny
		case oppolicy.FieldDeterministic:
			values[string(f)] = v.Deterministic
		case oppolicy.FieldPerOp:
			values[string(f)] = v.PerOp
		case oppolicy.FieldProtect:
			values[string(f)] = v.ProtectInPlace
		case oppolicy.FieldCrossDevice:
			values[string(f)] = p.CrossDevice.String()
		case oppolicy.FieldRules:
			values[string(f)] = rules(v.Rules)
		case oppolicy.FieldQuarantine:
			values[string(f)] = v.Quarantine
		case oppolicy.FieldVerify:
			values[string(f)] = verify(v.Verify)
		case oppolicy.FieldCanary:
			values[string(f)] = canary(v.Canary)
		}
	}
	if v.SkipCUDA {
		values[string(oppolicy.FieldDeny)] = append(list(v.Deny), "nvidia")
	}
	if len(values) == 0 {
		return "", nil
	}
	text, err := json.Marshal(values)
	return string(text), err
}

// canary returns impls on trial with the keys of a policy file.
func canary(views []oppolicy.CanaryView) map[string]any {
	all := map[string]any{}
	for _, v := range views {
		all[v.Op] = map[string]any{"impl": v.Impl, "fraction": v.Fraction, "calls": v.Calls}
	}
	return all
}

// list returns vendors as a policy file has them, where null does not stand for all.
func list(vendors []string) []string {
	if vendors == nil {
		return []string{"*"}
	}
	return slices.Clip(vendors)
}

// rules returns rules with the keys of a policy file.
func rules(views []oppolicy.RuleView) []map[string]any {
	all := make([]map[string]any, len(views))
	for i, v := range views {
		rule := map[string]any{}
		if v.Layers != "" {
			rule["layers"] = v.Layers
		}
		if v.Phase != 0 {
			rule["phase"] = v.Phase
		}
		if v.Prefer != 0 {
			rule[string(oppolicy.FieldPrefer)] = v.Prefer
		}
		if v.Allow != nil {
			rule[string(oppolicy.FieldAllow)] = v.Allow
		}
		if v.Deny != nil {
			rule[string(oppolicy.FieldDeny)] = v.Deny
		}
		if v.PerOp != nil {
			rule[string(oppolicy.FieldPerOp)] = v.PerOp
		}
		all[i] = rule
	}
	return all
}

// verify returns settings with the keys of a policy file.
func verify(v oppolicy.VerifyView) map[string]any {
	set := map[string]any{"quarantine": v.Quarantine}
	if v.Fraction > 0 {
		set["fraction"] = v.Fraction
	} else {
		set["mode"] = v.Mode
	}
	if v.Ops != nil {
		set["ops"] = v.Ops
	}
	return set
}
