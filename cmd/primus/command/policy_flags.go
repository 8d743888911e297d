package command

import (
	"errors"
	"strings"

	"github.com/primus-fl/primus/opmanager"
	"github.com/spf13/pflag"
)

// policyFlags are the flags that make up a policy. Their texts are those of the TE_FL_* variables, which is why they have
// no PRIMUS_* variables.
type policyFlags struct {
	prefer, strict, allow, deny, perOp policyFlag
	plugins                            pluginFlags
}

// policyFlag is a text that remembers whether it was given.
type policyFlag struct {
	value string
	given bool
	join  string // stands between the texts of a flag that is repeated; "" lets the last one win
}

// variableOnly marks flags that no PRIMUS_* variable sets.
const variableOnly = "primus_no_variable"

// addFlags gives a command the flags of a policy.
func (f *policyFlags) addFlags(flags *pflag.FlagSet) {
	f.perOp.join = ";"
	f.plugins.addFlags(flags)
	add := func(flag *policyFlag, name, usage string) *pflag.Flag { return addPolicyFlag(flags, flag, name, usage) }
	add(&f.prefer, "prefer", "the `KIND` of impl that comes first: flagos, vendor or reference")
	add(&f.strict, "strict", "with a true `SWITCH` the first candidate of an op runs or the call fails; --strict alone is true").NoOptDefVal = "true"
	add(&f.allow, "allow-vendors", "only these vendors: `NAMES` with commas, or *")
	add(&f.deny, "deny-vendors", "never these vendors: `NAMES` with commas, or *")
	add(&f.perOp, "per-op", "orders for single ops: `OP=TOKEN|TOKEN`, more behind ; or in a repeated flag")
}

func addPolicyFlag(flags *pflag.FlagSet, flag *policyFlag, name, usage string) *pflag.Flag {
	added := flags.VarPF(flag, name, "", usage)
	added.Annotations = map[string][]string{variableOnly: nil}
	return added
}

// apply lays the flags over a policy.
func (f *policyFlags) apply(p opmanager.Policy) (opmanager.Policy, error) {
	var faults []error
	for _, flag := range []struct {
		policyFlag
		name string
		set  func(value, source string) error
	}{
		{f.prefer, "prefer", p.SetPrefer},
		{f.strict, "strict", p.SetStrict},
		{f.allow, "allow-vendors", p.SetAllow},
		{f.deny, "deny-vendors", p.SetDeny},
		{f.perOp, "per-op", p.SetPerOp},
	} {
		faults = append(faults, flag.apply(flag.name, flag.set))
	}
	return p, errors.Join(faults...)
}

// apply hands the text of a flag that was given to set, with where it came from.
func (f *policyFlag) apply(name string, set func(value, source string) error) error {
	source := "flag --" + name
	switch {
	case !f.given:
		return nil
	case strings.Trim(f.value, " \t\r\n;") == "":
		return &opmanager.PolicyError{Source: source, Value: f.value, Problem: "given a blank text, expected a value; leave the flag out to change nothing"}
	}
	return set(f.value, source)
}

// String implements pflag.Value.
func (f *policyFlag) String() string { return f.value }

// Type implements pflag.Value.
func (f *policyFlag) Type() string { return "text" }

// Set implements pflag.Value.
func (f *policyFlag) Set(s string) error {
	if f.given && f.join != "" {
		s = f.value + f.join + s
	}
	f.value, f.given = s, true
	return nil
}

var _ pflag.Value = (*policyFlag)(nil)
