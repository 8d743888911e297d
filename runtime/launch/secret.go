package launch

import (
	"regexp"
	"strings"
)

// secretName matches the names of variables and parameters whose values are not for everybody. A
// word that only contains one of these, such as TOKENIZERS or token_dispatcher, does not count.
var secretName = regexp.MustCompile(`(?i)(^|[_.-])(TOKENS?|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(API|ACCESS|ACCOUNT|AUTH|ENCRYPTION|PRIVATE|SECRET|SIGNING|SSH|WANDB)[_-]?KEY)$`)

// secretVariable matches variables that hold a secret although their last word is another one, and
// those that end in KEY. Parameters such as num_nodes_env_key do not.
var secretVariable = regexp.MustCompile(`(^|_)((TOKEN|SECRET|PASSWORD|PASSWD|(API|ACCESS|PRIVATE|SECRET)_?KEY)_|KEY$)`)

// amount matches a number of tokens, such as the value of train_tokens.
var amount = regexp.MustCompile(`^[0-9][0-9_.]*([eE][+]?[0-9]+)?$`)

// Secret reports whether the value of a variable or parameter is a secret by its name.
func Secret(name string) bool {
	return secretName.MatchString(name) || name == strings.ToUpper(name) && secretVariable.MatchString(name)
}

// Shown returns the value of a variable or parameter as it may be printed: asterisks for a secret.
// A number whose name ends in tokens is not one, but how many there are.
func Shown(name, value string) string {
	if value == "" || !Secret(name) || strings.HasSuffix(strings.ToLower(name), "tokens") && amount.MatchString(value) {
		return value
	}
	return "***"
}
