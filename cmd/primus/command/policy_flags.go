package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opmanager/oppolicy"
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
	name  string // of the flag
	value string
	given bool
	join  string // stands between the texts of a flag that is repeated; "" lets the last one win
}

// variableOnly marks flags that no PRIMUS_* variable sets.
const variableOnly = "primus_no_variable"

// addFlags gives a command the flags of a policy.
func (f *policyFlags) addFlags(flags *pflag.FlagSet) {
	f.addSideFlags(flags, "", "")
	f.plugins.addFlags(flags)
}

// addSideFlags gives a command the flags of one of several policies, which is all but where and how plugins are loaded.
func (f *policyFlags) addSideFlags(flags *pflag.FlagSet, prefix, about string) {
	f.perOp.join = ";"
	add := func(flag *policyFlag, name, usage string) *pflag.Flag {
		return addPolicyFlag(flags, flag, prefix+name, about+usage)
	}
	f.plugins.addSideFlags(add)
	add(&f.prefer, "prefer", "the `KIND` of impl that comes first: flagos, vendor or reference")
	add(&f.strict, "strict", "with a true `SWITCH` the first candidate of an op runs or the call fails; --strict alone is true").NoOptDefVal = "true"
	add(&f.allow, "allow-vendors", "only these vendors: `NAMES` with commas, or *")
	add(&f.deny, "deny-vendors", "never these vendors: `NAMES` with commas, or *")
	add(&f.perOp, "per-op", "orders for single ops: `OP=TOKEN|TOKEN`, more after ; or in a repeated flag")
}

// texts returns the flags that are texts.
func (f *policyFlags) texts() []*policyFlag {
	return []*policyFlag{&f.prefer, &f.strict, &f.allow, &f.deny, &f.perOp, &f.plugins.modules, &f.plugins.isolate}
}

// given reports whether any of the flags that are texts was given.
func (f *policyFlags) given() bool {
	return slices.ContainsFunc(f.texts(), func(flag *policyFlag) bool { return flag.given })
}

// under returns the flags with those of above that were given in place of their own.
func (f policyFlags) under(above policyFlags) policyFlags {
	for i, flag := range f.texts() {
		if own := above.texts()[i]; own.given {
			*flag = *own
		}
	}
	return f
}

func addPolicyFlag(flags *pflag.FlagSet, flag *policyFlag, name, usage string) *pflag.Flag {
	flag.name = name
	added := flags.VarPF(flag, name, "", usage)
	added.Annotations = map[string][]string{variableOnly: nil}
	return added
}

// apply lays the flags over a policy.
func (f *policyFlags) apply(p oppolicy.Policy) (oppolicy.Policy, error) {
	var faults []error
	for _, flag := range []struct {
		policyFlag
		set func(value, source string) error
	}{{f.prefer, p.SetPrefer}, {f.strict, p.SetStrict}, {f.allow, p.SetAllow}, {f.deny, p.SetDeny}, {f.perOp, p.SetPerOp}} {
		faults = append(faults, flag.apply(flag.set))
	}
	return p, errors.Join(faults...)
}

// apply hands the text of a flag that was given to set, with where it came from.
func (f *policyFlag) apply(set func(value, source string) error) error {
	source := "flag --" + f.name
	switch {
	case !f.given:
		return nil
	case strings.Trim(f.value, " \t\r\n;") == "":
		return &oppolicy.Error{Source: source, Value: f.value, Problem: "given a blank text, expected a value; leave the flag out to change nothing"}
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
