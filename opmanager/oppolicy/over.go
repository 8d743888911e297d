package oppolicy

// Given returns the fields whose values the policy gives when it is a layer over another one: those
// that have a source, and those that differ from the defaults.
func (p *Policy) Given() []Field {
	var given []Field
	for _, f := range fields {
		if p.Source(f) != sourceDefault {
			given = append(given, f)
		}
	}
	return given
}

// Over returns the policy lower with the values that p gives in place of its own, each with its
// source, and with the Tuning of p if it has one. A field is one value: orders of PerOp, Rules,
// Canary and the settings of Quarantine and Verify are replaced all together.
func (p Policy) Over(lower Policy) Policy {
	for _, f := range p.Given() {
		switch f {
		case FieldPrefer:
			lower.Prefer, lower.PreferTuned = p.Prefer, p.PreferTuned
		case FieldStrict:
			lower.Strict = p.Strict
		case FieldAllow:
			lower.Allow = p.Allow
		case FieldDeny:
			lower.Deny = p.Deny
		case FieldSkip:
			lower.SkipCUDA = p.SkipCUDA
		case FieldDeterministic:
			lower.Deterministic = p.Deterministic
		case FieldPerOp:
			lower.PerOp = p.PerOp
		case FieldProtect:
			lower.ProtectInPlace = p.ProtectInPlace
		case FieldCrossDevice:
			lower.CrossDevice = p.CrossDevice
		case FieldRules:
			lower.Rules = p.Rules
		case FieldQuarantine:
			lower.Quarantine = p.Quarantine
		case FieldVerify:
			lower.Verify = p.Verify
		case FieldCanary:
			lower.Canary = p.Canary
		}
		lower.SetSource(f, p.Source(f))
	}
	if p.Tuning != nil {
		lower.Tuning = p.Tuning
	}
	return lower
}
