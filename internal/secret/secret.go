// Package secret says which variables and parameters hold secrets. Their values are in no line, no
// file and no list of processes.
package secret

import (
	"regexp"
	"slices"
	"strings"
)

// secretName matches the names of variables and parameters with secret values. Words that only
// contain one of these, such as TOKENIZERS or token_dispatcher, do not match.
var secretName = regexp.MustCompile(`(?i)(^|[_.-])(TOKENS?|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(API|ACCESS|ACCOUNT|AUTH|ENCRYPTION|PRIVATE|SECRET|SIGNING|SSH|WANDB)[_-]?KEY)$`)

// secretVariable matches variables that hold a secret although their last word is another one, and
// those that end in KEY. Parameters such as num_nodes_env_key do not.
var secretVariable = regexp.MustCompile(`(^|_)((TOKEN|SECRET|PASSWORD|PASSWD|(API|ACCESS|PRIVATE|SECRET)_?KEY)_|KEY$)`)

// amount matches a number of tokens, such as the value of train_tokens.
var amount = regexp.MustCompile(`^[0-9][0-9_.]*([eE][+]?[0-9]+)?$`)

// parts are what the patterns look for. A dry run asks about each of a thousand parameters.
var parts = []string{"TOKEN", "SECRET", "PASS", "CREDENTIAL", "KEY"}

// Name reports whether a variable or parameter holds a secret by its name.
func Name(name string) bool {
	upper := strings.ToUpper(name)
	if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(upper, part) }) {
		return false
	}
	return secretName.MatchString(name) || name == upper && secretVariable.MatchString(name)
}

// Value reports whether the value of a variable or parameter is a secret. Quotes around nothing are
// none, and a number whose name ends in tokens is a number of tokens.
func Value(name, value string) bool {
	return strings.Trim(value, `"'`) != "" && Name(name) && !(strings.HasSuffix(strings.ToLower(name), "tokens") && amount.MatchString(value))
}

// Shown returns the value of a variable or parameter for printing: asterisks for a secret.
func Shown(name, value string) string {
	if Value(name, value) {
		return "***"
	}
	return value
}
