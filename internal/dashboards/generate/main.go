// Command generate writes the dashboards into the directory in which it is run.
package main

import (
	"fmt"
	"os"

	"github.com/primus-fl/primus/internal/dashboards"
)

func main() {
	if err := dashboards.Write("../../metrics/dashboards"); err != nil {
		fmt.Fprintln(os.Stderr, "generate dashboards:", err)
		os.Exit(1)
	}
}
