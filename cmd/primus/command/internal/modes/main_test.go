package modes_test

import (
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
)

func TestMain(m *testing.M) { commandtest.Main(m, nil) }
