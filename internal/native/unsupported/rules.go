package unsupported

import "maps"

// rule holds the values of a parameter that ask for what the native trainer does.
type rule struct {
	neutral func(Run) []any // besides null
	does    string          // what the native trainer does instead
	matters func(Run) bool  // nil for always
}

// only is the rule of a parameter whose neutral values are always the same.
func only(does string, neutral ...any) rule {
	return rule{neutral: func(Run) []any { return neutral }, does: does}
}

// depends is the rule of a parameter whose neutral values depend on other parameters.
func depends(neutral func(Run) []any, does string) rule { return rule{neutral: neutral, does: does} }

// off is the rule of a switch for what the native trainer does not do.
func off(does string) rule { return only(does, false) }

// refusedWhen is the rule of a switch that must agree with other parameters.
func refusedWhen(holds func(Run) bool, does string) rule {
	return depends(func(r Run) []any { return []any{holds(r)} }, does)
}

// rules returns the rule of each parameter.
func rules() map[string]rule {
	all := map[string]rule{}
	for _, group := range []map[string]rule{parallel(), precision(), unsupportedArchitecture(), experts(), optimizer(), schedule(), unsupportedData(), resumption()} {
		maps.Copy(all, group)
	}
	return all
}
