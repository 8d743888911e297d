package python

import (
	"strings"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
)

// policy returns the dispatch policy of the run as variables of TransformerEngine-FL, and the names
// of the fields that have no variable.
func policy(tc *backend.TrainContext) (vars []launch.Variable, without []string) {
	if tc.Manager == nil {
		return nil, nil
	}
	p, usual := tc.Manager.Policy(), oppolicy.Default()
	v := p.View()
	fields := []struct {
		field oppolicy.Field
		name  string
		value string
	}{
		{oppolicy.FieldPrefer, oppolicy.EnvPrefer, v.Prefer.String()},
		{oppolicy.FieldStrict, oppolicy.EnvStrict, flag(v.Strict)},
		{oppolicy.FieldDeny, oppolicy.EnvDeny, strings.Join(v.Deny, ",")},
		{oppolicy.FieldAllow, oppolicy.EnvAllow, strings.Join(v.Allow, ",")},
		{oppolicy.FieldPerOp, oppolicy.EnvPerOp, perOp(p.PerOp)},
		{oppolicy.FieldSkip, oppolicy.EnvSkipCUDA, flag(v.SkipCUDA)},
		{oppolicy.FieldRules, "", ""},
		{oppolicy.FieldVerify, "", ""},
		{oppolicy.FieldCanary, "", ""},
	}
	for _, f := range fields {
		source := p.Source(f.field)
		switch {
		case source == usual.Source(f.field):
		case f.name == "":
			without = append(without, string(f.field))
		default:
			vars = append(vars, launch.Variable{Name: f.name, Value: f.value, Source: "policy: " + source})
		}
	}
	return vars, without
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// perOp writes orders as op=token|token;op=token.
func perOp(rules []oppolicy.OpRule) string {
	var texts []string
	for _, rule := range rules {
		var tokens []string
		for _, token := range rule.Order {
			tokens = append(tokens, token.String())
		}
		texts = append(texts, rule.Pattern+"="+strings.Join(tokens, "|"))
	}
	return strings.Join(texts, ";")
}
