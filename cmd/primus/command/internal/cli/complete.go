package cli

import (
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// Matching returns the values that go on from what was begun. What ends with a sign goes on itself,
// so no space follows.
func Matching(values []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var found []cobra.Completion
	for _, v := range values {
		if strings.HasPrefix(v, begun) {
			found = append(found, v)
			if strings.HasSuffix(v, "=") || strings.HasSuffix(v, ":") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		}
	}
	return found, directive
}

// KindNames returns the names of the kinds of impls.
func KindNames() []string {
	var names []string
	for _, kind := range opregistry.Kinds() {
		names = append(names, kind.String())
	}
	return names
}
