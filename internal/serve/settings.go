package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/primus-fl/primus/internal/serve/openai"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/prometheus/client_golang/prometheus"
)

// Config is what the user decides about the service.
type Config struct {
	// Addr is HOST:PORT to listen on. Anything but a loopback address needs TLS or Insecure.
	Addr string
	// TokenFile holds the tokens that allow changes of state; without one, there are no changes.
	TokenFile string
	// CertFile and KeyFile are the certificate and key for TLS, in PEM; both or neither.
	CertFile, KeyFile string
	// Insecure allows other addresses than loopback without TLS.
	Insecure bool
	// Hosts are names of the service for clients, in addition to the names of the machine and IP
	// addresses.
	Hosts []string
	// Pprof serves /debug/pprof/.
	Pprof bool
}

// Check returns what is wrong with the configuration. It does not look at files.
func (c *Config) Check() error {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("serve: given the address %q, want HOST:PORT, such as 127.0.0.1:9400", c.Addr)
	}
	var faults []error
	if (c.CertFile == "") != (c.KeyFile == "") {
		faults = append(faults, errors.New("serve: given one of the TLS certificate and its key, want both files or neither"))
	}
	if c.CertFile == "" && !c.Insecure && !isLoopback(host) {
		faults = append(faults, fmt.Errorf("serve: given the address %q, which others can reach, without TLS: give a certificate and key, listen on 127.0.0.1, or set insecure if the network is safe", c.Addr))
	}
	return errors.Join(faults...)
}

// isLoopback reports whether a host of an address is this machine alone. No host is every
// interface.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Lister returns the entries of a list of the service; a nil Lister is a list that is always empty.
type Lister func(context.Context) (any, error)

// Settings are what a Server answers from. Manager, Hub, Runs and Log are required.
type Settings struct {
	Manager  *opmanager.Manager
	Registry *opregistry.Registry
	Hub      *Hub
	Runs     Runs
	Archive  bool // Runs are those of other processes, so that the page leaves out what this one would decide
	Log      *slog.Logger
	Version  string

	// Operator acts on the run of this process.
	Operator Operator
	// Gatherer is served at /metrics.
	Gatherer prometheus.Gatherer
	// Plugins, Patches and Backends list what is compiled in or was loaded.
	Plugins, Patches, Backends Lister
	// PatchesPlan says which patches an experiment gets; nil without an experiment.
	PatchesPlan Lister
	// Discovery lists where Prometheus finds metrics, in the form of its HTTP service discovery. An
	// error says that this is not known at the moment.
	Discovery Lister
	// Model answers requests for texts; nil serves no model.
	Model *openai.Handler
	// Ready returns why the program is not ready yet; without it the program is always ready.
	Ready func() error
}

// hostNames returns the names by which clients may call the service, beside IP addresses, in lower
// case.
func hostNames(c *Config) map[string]bool {
	all := append([]string{"localhost"}, c.Hosts...)
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && host != "" {
		all = append(all, host)
	}
	if name, err := os.Hostname(); err == nil {
		all = append(all, name)
	}
	names := map[string]bool{}
	for _, name := range all {
		names[strings.ToLower(name)] = true
	}
	return names
}
