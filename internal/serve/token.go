package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/primus-fl/primus/internal/secret"
)

// Tokens are the secrets that allow changes of state. Only their digests are kept.
type Tokens []token

type token struct {
	name   string
	digest [sha256.Size]byte
}

// minToken is the least number of bytes of a token.
const minToken = 16

// ReadTokens reads a file with one token per line, each alone or after the name of its owner and a
// space. Empty lines and lines that begin with # are skipped. A file that other users can read is
// refused. Errors name lines and never quote them.
func ReadTokens(file string) (Tokens, error) {
	text, err := secret.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w; want a file with one token per line", err)
	}
	return ParseTokens(file, string(text))
}

// ParseTokens reads the content of a file of tokens.
func ParseTokens(file, text string) (Tokens, error) {
	var tokens Tokens
	var faults []error
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		name, secret := fmt.Sprintf("token %d", len(tokens)+1), words[0]
		if len(words) == 2 {
			name, secret = words[0], words[1]
		}
		switch {
		case len(words) > 2:
			faults = append(faults, fmt.Errorf("tokens: %s:%d: given %d words, want a token, or a name and a token", file, n, len(words)))
		case len(secret) < minToken:
			faults = append(faults, fmt.Errorf("tokens: %s:%d: given a token of %d bytes, want at least %d, such as `openssl rand -hex 32` prints", file, n, len(secret), minToken))
		default:
			tokens = append(tokens, token{name, sha256.Sum256([]byte(secret))})
		}
	}
	if len(faults) == 0 && len(tokens) == 0 {
		faults = append(faults, fmt.Errorf("tokens: %s: given no token, want one per line", file))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return tokens, nil
}

// owner returns the name of the owner of the token that a request carries. It takes the same time
// for every wrong token.
func (t Tokens) owner(r *http.Request) (name string, ok bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	digest := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	for _, each := range t {
		if subtle.ConstantTimeCompare(digest[:], each.digest[:]) == 1 {
			name, ok = each.name, true
		}
	}
	return name, ok && strings.EqualFold(scheme, "Bearer")
}
