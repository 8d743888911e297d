package corpus

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data/parquet"
)

// parquet passes on the text of each row of a Parquet file.
func (r *reader) parquet(s source) error {
	path := filepath.Clean(s.path)
	if s.layout.compression != "" {
		return fmt.Errorf("%s: a Parquet file that is compressed as a whole is not read: unpack it", path)
	}
	f, err := durable.OpenRegular(s.path)
	if err != nil {
		return durable.Explain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return durable.Explain(err)
	}
	file, err := parquet.Open(f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var stopped error
	err = file.Texts(r.key, func(text []byte) error {
		if stopped = r.ctx.Err(); stopped == nil {
			stopped = r.document(text)
		}
		return stopped
	})
	r.read.Add(info.Size())
	if stopped != nil && errors.Is(err, stopped) {
		return stopped
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
