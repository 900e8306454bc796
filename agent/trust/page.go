package trust

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"

	"dev.muster/cluster"
)

// pageLife is how long a certificate for the page is good: what browsers take at most.
const pageLife = 397 * 24 * time.Hour

// ForPage makes a certificate by which browsers that trust the cluster's authority know its page at some names and
// addresses. It names no member, so nobody joins or calls by it.
func ForPage(ca *cluster.CA, hosts []string, now time.Time) (*tls.Certificate, error) {
	issuer, err := parseCert([]byte(ca.Cert))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	sign, err := parseKey([]byte(ca.Key))
	if err != nil {
		return nil, fmt.Errorf("read the authority's key: %w", err)
	}
	key, _, err := newKey()
	if err != nil {
		return nil, err
	}
	num, err := serial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: num, Subject: pkix.Name{CommonName: "muster page"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(pageLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else if h != "" {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, issuer, &key.PublicKey, sign)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, issuer.Raw}, PrivateKey: key}, nil
}
