package corpus

import "fmt"

// parquet refuses Parquet.
func (r *reader) parquet(s source) error {
	return fmt.Errorf("%s: Parquet is not read by this version: convert it to lines of JSON", s.path)
}
