package trust

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	"dev.muster/cluster"
)

// tokenPrefix is the version of a token's form: mst1.AUTHORITY.ID.SECRET, where AUTHORITY is the
// SHA-256 of the authority's public key, so that the machine that joins knows whom it talks to.
const tokenPrefix = "mst1"

// JoinToken is a parsed token as a user hands it over.
type JoinToken struct {
	Authority string // hex
	ID        string
	secret    []byte
}

// ParseToken reads a token.
func ParseToken(text string) (JoinToken, error) {
	bad := cluster.Errorf(cluster.Invalid, "",
		"this is no join token: want mst1.AUTHORITY.ID.SECRET, as muster token create prints it")
	p := strings.Split(strings.TrimSpace(text), ".")
	if len(p) != 4 || p[0] != tokenPrefix || len(p[1]) != 64 || p[2] == "" {
		return JoinToken{}, bad
	}
	secret, err := hex.DecodeString(p[3])
	if err != nil || len(secret) != 16 {
		return JoinToken{}, bad
	}
	return JoinToken{Authority: p[1], ID: p[2], secret: secret}, nil
}

// NewToken makes a token: its text, shown once, and its id and verifier for the state.
func NewToken(ca *cluster.CA) (text, id, verifier string, err error) {
	raw := make([]byte, 20)
	if _, err := rand.Read(raw); err != nil {
		return "", "", "", err
	}
	id, secret := hex.EncodeToString(raw[:4]), raw[4:]
	authority, err := authorityOf([]byte(ca.Cert))
	if err != nil {
		return "", "", "", err
	}
	sum := sha256.Sum256(secret)
	return strings.Join([]string{
		tokenPrefix, authority, id, hex.EncodeToString(secret),
	}, "."), id, hex.EncodeToString(sum[:]), nil
}

func authorityOf(cert []byte) (string, error) {
	block, _ := pem.Decode(cert)
	if block == nil {
		return "", fmt.Errorf("read the authority's certificate: no PEM block")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("read the authority's certificate: %w", err)
	}
	return KeyHash(c.RawSubjectPublicKeyInfo), nil
}

// Proof shows that its maker knows the token's secret, on this one TLS connection and for this one
// request: an HMAC over what the connection exported and the request.
func (k JoinToken) Proof(exported, request []byte) []byte {
	sum := sha256.Sum256(k.secret)
	return prove(sum[:], exported, request)
}

func prove(verifier, exported, request []byte) []byte {
	m := hmac.New(sha256.New, verifier)
	m.Write(exported)
	m.Write(request)
	return m.Sum(nil)
}

// CheckProof verifies a proof against a stored token.
func CheckProof(k *cluster.Token, exported, request, proof []byte) bool {
	verifier, err := hex.DecodeString(k.Verifier)
	return err == nil && hmac.Equal(prove(verifier, exported, request), proof)
}
