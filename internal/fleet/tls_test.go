package fleet_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCertificates(t *testing.T) {
	t.Parallel()
	a := primustest.NewAuthority(t)
	cert, key := a.Sign("server")
	etcd := fleettest.Start(t, "--cert-file", cert, "--key-file", key, "--trusted-ca-file", a.File, "--client-cert-auth")
	config := fleet.Config{Endpoints: []string{"https://" + etcd.Address}, CA: a.File}
	config.Cert, config.Key = a.Sign("client")
	run := start(t, config, 1)[0]
	c := open(t, config)
	_, err := c.SetPolicy(t.Context(), "prefer: vendor", -1)
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindVendor))

	other := primustest.NewAuthority(t)
	for name, wrong := range map[string]fleet.Config{
		"no certificate":    {Endpoints: config.Endpoints, CA: a.File},
		"another authority": {Endpoints: config.Endpoints, CA: other.File, Cert: config.Cert, Key: config.Key},
	} {
		_, err := open(t, wrong).Snapshot(t.Context())
		assert.ErrorContains(t, err, etcd.Address, name)
	}
	_, err = fleet.Open(fleet.Config{Endpoints: config.Endpoints, CA: key})
	assert.ErrorContains(t, err, "holds none", "a key is no certificate")
	_, err = fleet.Open(fleet.Config{Endpoints: config.Endpoints, Cert: cert, Key: config.Key})
	assert.ErrorContains(t, err, config.Key, "the key of another certificate")
}
