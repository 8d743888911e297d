package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/secret"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// DefaultPrefix is the prefix of a fleet if none is given.
const DefaultPrefix = "/primus"

// requestTimeout bounds every request to etcd.
const requestTimeout = 3 * time.Second

// Pauses between attempts to reach etcd. A random part is added to each, so that the runs of a
// fleet do not connect all at once.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// pause is how long to wait before the next attempt.
type pause time.Duration

// wait waits and doubles the pause. It reports false when ctx ends.
func (p *pause) wait(ctx context.Context) bool {
	this := time.Duration(*p)
	*p = min(2**p, pause(maxPause))
	select {
	case <-ctx.Done():
		return false
	case <-time.After(this + rand.N(this/2)):
		return true
	}
}

// Config says where the state of the fleet is kept.
type Config struct {
	// Endpoints are those of one etcd cluster: HOST:PORT, http://HOST:PORT or https://HOST:PORT.
	Endpoints []string
	// Prefix begins every key; "" is DefaultPrefix. It begins with a slash; a slash at its end is
	// ignored.
	Prefix string
	// CA is a file with the certificates of the authorities that etcd is checked with, "" for those
	// of the system. Cert and Key are the files of the client certificate. They need endpoints with
	// https. They are read for each connection, so they may be renewed.
	CA, Cert, Key string
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	if len(c.Endpoints) == 0 {
		faults = append(faults, errors.New("fleet: no endpoints given, want HOST:PORT of etcd"))
	}
	secure := 0
	for _, e := range c.Endpoints {
		https, err := checkEndpoint(e)
		if err != nil {
			faults = append(faults, err)
		}
		if https {
			secure++
		}
	}
	if secure > 0 && secure < len(c.Endpoints) {
		faults = append(faults, fmt.Errorf("fleet: %d of %d endpoints have https, want all of them or none", secure, len(c.Endpoints)))
	}
	if secure == 0 && c.CA+c.Cert+c.Key != "" {
		faults = append(faults, errors.New("fleet: certificates are given, but no endpoint has https"))
	}
	if (c.Cert == "") != (c.Key == "") {
		faults = append(faults, errors.New("fleet: a certificate and its key go together, given one of them"))
	}
	if p := c.Prefix; p != "" && (!strings.HasPrefix(p, "/") || strings.Trim(p, "/") == "" || strings.Contains(p, "//")) {
		faults = append(faults, fmt.Errorf("fleet: prefix %q, want one such as %s", p, DefaultPrefix))
	}
	return errors.Join(faults...)
}

func checkEndpoint(endpoint string) (https bool, err error) {
	scheme, address, found := strings.Cut(endpoint, "://")
	if !found {
		scheme, address = "http", endpoint
	}
	fault := func(problem string) (bool, error) {
		shown := endpoint
		if at := strings.LastIndexByte(shown, '@'); at >= 0 { // the text before it may be a password
			shown = "…" + shown[at:]
		}
		return scheme == "https", fmt.Errorf("fleet: endpoint %q %s, want HOST:PORT, http://HOST:PORT or https://HOST:PORT", shown, problem)
	}
	if scheme != "http" && scheme != "https" {
		return fault("has another scheme")
	}
	if u, err := url.Parse("//" + address); err != nil || u.Host != address {
		return fault("is no address")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return fault("has no host or no port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fault("has no port from 1 to 65535")
	}
	return scheme == "https", nil
}

// keys are the keys of a fleet.
type keys struct{ policy, history, runs, status, questions, answers string }

func (c Config) keys() keys {
	p := strings.TrimRight(c.Prefix, "/")
	if p == "" {
		p = DefaultPrefix
	}
	return keys{policy: p + "/policy", history: p + "/history/", runs: p + "/runs/", status: p + "/status/", questions: p + "/questions/", answers: p + "/answers/"}
}

// tls returns what the files say, nil for plain connections.
func (c Config) tls() (*tls.Config, error) {
	https := func(e string) bool { return strings.HasPrefix(e, "https://") }
	if !slices.ContainsFunc(c.Endpoints, https) {
		return nil, nil
	}
	set := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := durable.ReadRegular(c.CA, 16<<20)
		if err != nil {
			return nil, fmt.Errorf("fleet: read certificates: %w", err)
		}
		set.RootCAs = x509.NewCertPool()
		if !set.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("fleet: read certificates: %s holds none, want them as PEM", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := secret.KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("fleet: read certificate %s with key %s: %w", c.Cert, c.Key, err)
		}
		set.Certificates = []tls.Certificate{pair}
	}
	return set, nil
}

// open returns a connection, which is made in the background.
func (c Config) open() (*clientv3.Client, error) {
	set, err := c.tls()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: set, DialTimeout: requestTimeout, Logger: zap.NewNop(),
		DialKeepAliveTime: 2 * requestTimeout, DialKeepAliveTimeout: requestTimeout,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 2, Jitter: 0.5, MaxDelay: maxPause},
			MinConnectTimeout: requestTimeout,
		})},
	})
	if err != nil {
		return nil, c.fault("connect", err)
	}
	return client, nil
}

// request runs f and adds the step and the endpoints to its error.
func (c Config) request(ctx context.Context, what string, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := f(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %s: %w", requestTimeout, err)
	}
	return c.fault(what, err)
}

func (c Config) fault(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fleet: %s: etcd at %s: %w", what, strings.Join(c.Endpoints, ","), err)
}
