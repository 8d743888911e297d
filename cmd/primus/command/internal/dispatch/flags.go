package dispatch

import (
	"errors"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/spf13/pflag"
)

// Flags are the flags of a policy. They take the same values as the TE_FL_* variables, and so have
// no PRIMUS_* variables.
type Flags struct {
	prefer, strict, allow, deny, crossDevice, perOp Flag
	Plugins                                         PluginFlags
}

// Flag is a text that remembers whether it was given.
type Flag struct {
	name  string // of the flag
	value string
	Given bool
	join  string // joins the values of a repeated flag; "" keeps the last one
}

// AddFlags gives a command the flags of a policy.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	f.AddSideFlags(flags, "", "")
	f.Plugins.AddFlags(flags)
}

// AddSideFlags gives a command the flags of one of several policies: all but those that say where
// and how plugins are loaded.
func (f *Flags) AddSideFlags(flags *pflag.FlagSet, prefix, about string) {
	f.perOp.join = ";"
	add := func(flag *Flag, name, usage string) *pflag.Flag {
		return AddPolicyFlag(flags, flag, prefix+name, about+usage)
	}
	f.Plugins.AddSideFlags(add)
	add(&f.prefer, "prefer", "the `KIND` of impl that comes first: flagos, vendor, reference or tuned")
	add(&f.strict, "strict", "with a true `SWITCH` the first candidate of an op runs or the call fails; --strict alone is true").NoOptDefVal = "true"
	add(&f.allow, "allow-vendors", "only these vendors: `NAMES` separated by commas, or *")
	add(&f.deny, "deny-vendors", "never these vendors: `NAMES` separated by commas, or *")
	add(&f.crossDevice, "cross-device", "what happens to `CALLS` with operands on a device that lacks the op: copy (to the host and back) or error")
	add(&f.perOp, "per-op", "orders for single ops: `OP=TOKEN|TOKEN`, more after ; or in a repeated flag")
}

// texts returns the flags that are texts.
func (f *Flags) texts() []*Flag {
	return []*Flag{&f.prefer, &f.strict, &f.allow, &f.deny, &f.crossDevice, &f.perOp, &f.Plugins.modules, &f.Plugins.isolate}
}

// Given reports whether any of the flags that are texts was given.
func (f *Flags) Given() bool {
	return slices.ContainsFunc(f.texts(), func(flag *Flag) bool { return flag.Given })
}

// Under returns the flags with those of above, where these were given.
func (f Flags) Under(above Flags) Flags {
	for i, flag := range f.texts() {
		if own := above.texts()[i]; own.Given {
			*flag = *own
		}
	}
	return f
}

// AddPolicyFlag adds a flag of a policy, which no PRIMUS_* variable sets.
func AddPolicyFlag(flags *pflag.FlagSet, flag *Flag, name, usage string) *pflag.Flag {
	flag.name = name
	added := flags.VarPF(flag, name, "", usage)
	added.Annotations = map[string][]string{cli.VariableOnly: nil}
	return added
}

// policy returns the policy that the flags give; what they do not give has its default.
func (f *Flags) policy() (oppolicy.Policy, error) {
	p := oppolicy.Default()
	var faults []error
	for _, flag := range []struct {
		Flag
		set func(value, source string) error
	}{{f.prefer, p.SetPrefer}, {f.strict, p.SetStrict}, {f.allow, p.SetAllow}, {f.deny, p.SetDeny}, {f.crossDevice, p.SetCrossDevice}, {f.perOp, p.SetPerOp}} {
		faults = append(faults, flag.apply(flag.set))
	}
	return p, errors.Join(faults...)
}

// apply hands the text of a flag that was given to set, with where it came from.
func (f *Flag) apply(set func(value, source string) error) error {
	source := "flag --" + f.name
	switch {
	case !f.Given:
		return nil
	case strings.Trim(f.value, " \t\r\n;") == "":
		return &oppolicy.Error{Source: source, Value: f.value, Problem: "given an empty text, want a value; leave the flag out to change nothing"}
	}
	return set(f.value, source)
}

// String implements pflag.Value.
func (f *Flag) String() string { return f.value }

// Type implements pflag.Value.
func (f *Flag) Type() string { return "text" }

// Set implements pflag.Value.
func (f *Flag) Set(s string) error {
	if f.Given && f.join != "" {
		s = f.value + f.join + s
	}
	f.value, f.Given = s, true
	return nil
}

var _ pflag.Value = (*Flag)(nil)
