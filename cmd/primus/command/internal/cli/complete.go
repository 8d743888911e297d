package cli

import (
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// Matching returns the values that begin with a prefix. No space follows a value that ends with a
// sign such as =, because more of it is to come.
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
