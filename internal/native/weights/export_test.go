package weights

import "github.com/primus-fl/primus/internal/native/model"

// ParseConfig returns the architecture that the text of a config.json describes.
func ParseConfig(text []byte) (model.Config, error) {
	d, err := parseConfig(text)
	return d.config, err
}
