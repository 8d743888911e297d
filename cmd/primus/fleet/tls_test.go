package fleet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/fleet"
	"github.com/primus-fl/primus/cmd/primus/fleet/fleettest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// authority signs certificates, itself first, and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.sign("ca", true)
	return a
}

// sign returns the files of a certificate and its key.
func (a *authority) sign(name string, ca bool) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: ca,
	}
	parent, signer := a.cert, a.key
	if ca {
		template.KeyUsage |= x509.KeyUsageCertSign
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	require.NoError(a.t, err)
	if ca {
		a.key = private
		a.cert, err = x509.ParseCertificate(der)
		require.NoError(a.t, err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", text)
}

func (a *authority) write(name, kind string, der []byte) string {
	file := filepath.Join(a.dir, name)
	require.NoError(a.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	ca := filepath.Join(a.dir, "ca.crt")
	cert, key := a.sign("server", false)
	etcd := fleettest.Start(t, "--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth")
	config := fleet.Config{Endpoints: []string{"https://" + etcd.Address}, CA: ca}
	config.Cert, config.Key = a.sign("client", false)
	run := start(t, config, 1)[0]
	c := open(t, config)
	_, err := c.SetPolicy(t.Context(), "prefer: vendor", -1)
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindVendor))

	other := newAuthority(t)
	for name, wrong := range map[string]fleet.Config{
		"no certificate":    {Endpoints: config.Endpoints, CA: ca},
		"another authority": {Endpoints: config.Endpoints, CA: filepath.Join(other.dir, "ca.crt"), Cert: config.Cert, Key: config.Key},
	} {
		_, err := open(t, wrong).Snapshot(t.Context())
		assert.ErrorContains(t, err, etcd.Address, name)
	}
	_, err = fleet.Open(fleet.Config{Endpoints: config.Endpoints, CA: key})
	assert.ErrorContains(t, err, "holds none", "a key is no certificate")
	_, err = fleet.Open(fleet.Config{Endpoints: config.Endpoints, Cert: cert, Key: config.Key})
	assert.ErrorContains(t, err, config.Key, "the key of another certificate")
}
