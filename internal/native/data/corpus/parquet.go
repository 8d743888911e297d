package corpus

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data/parquet"
)

// parquet passes on the text of each row of a Parquet file. A row that has none is left out.
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
	file, err := parquet.Open(r.ctx, f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var stopped error
	row := 0
	err = file.Texts(r.ctx, r.key, func(text []byte) error {
		row++
		if stopped = r.ctx.Err(); stopped != nil {
			return stopped
		}
		if at := badUTF8(text); at >= 0 {
			stopped = r.onBad.Skip(r.ctx, r.bad, fmt.Errorf("%s: row %d: byte %d of the text: given the byte 0x%02x, want UTF-8", path, row, at+1, text[at]))
		} else {
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
