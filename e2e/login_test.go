package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// confWith writes a slurm.conf and a muster.conf, and returns the path of the first.
func confWith(t *testing.T, dir, muster string) string {
	t.Helper()
	for name, text := range map[string]string{"slurm.conf": "ClusterName=c\nPartitionName=p Nodes=ALL Default=YES\n",
		"muster.conf": muster} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "slurm.conf")
}

// webClient is a browser with cookies that trusts some authorities, and does not follow where it is sent.
func webClient(t *testing.T, authorities string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authorities))
	return &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer makes a request and reads all of its answer.
func answer(t *testing.T, c *http.Client, method, at string, form url.Values, header ...string) (*http.Response,
	string) {
	t.Helper()
	r, err := http.NewRequest(method, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, at, err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w, string(body)
}

// TestPageTLS: with a certificate of the cluster's own authority, or one of files, the page and REST are reached by TLS
// alone; who comes without is sent on, and tokens that were sent without are refused.
func TestPageTLS(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", confWith(t, dir, "PageCertificate=cluster\n"))
	plain := webClient(t, "")
	if w, _ := answer(t, plain, "GET", "http://"+addr+"/queue?state=pending", nil); w.StatusCode != 307 ||
		w.Header.Get("Location") != "https://"+addr+"/queue?state=pending" {
		t.Errorf("without TLS: %d to %s", w.StatusCode, w.Header.Get("Location"))
	}
	if w, _ := answer(t, plain, "GET", "http://"+addr+"/livez", nil); w.StatusCode != 200 {
		t.Errorf("a load balancer gets %d", w.StatusCode)
	}
	token := tokenOf(t, d, 0)
	jobs := "://" + addr + "/slurm/v0.0.44/jobs"
	if w, text := answer(t, plain, "GET", "http"+jobs, nil, "X-SLURM-USER-TOKEN", token); w.StatusCode != 403 ||
		!strings.Contains(text, "make a new token") {
		t.Errorf("a token without TLS: %d %s", w.StatusCode, text)
	}
	_, ca := answer(t, plain, "GET", "http://"+addr+"/authority.pem", nil)
	c := webClient(t, ca)
	if w, _ := answer(t, c, "GET", "https"+jobs, nil, "X-SLURM-USER-TOKEN", token); w.StatusCode != 200 {
		t.Errorf("a token with TLS: %d", w.StatusCode)
	}
	link := d.must("muster", "ui")
	if !strings.HasPrefix(link, "https://"+addr+"/login?once=") {
		t.Fatalf("the link is %s", link)
	}
	_, once, _ := strings.Cut(link, "once=")
	w, text := answer(t, c, "POST", "https://"+addr+"/login", url.Values{"once": {once}})
	if set := w.Header.Get("Set-Cookie"); w.StatusCode != 303 || !strings.HasPrefix(set, "__Host-muster=") ||
		!strings.Contains(set, "; Secure") {
		t.Errorf("login: %d %s %s", w.StatusCode, set, text)
	}
	if out := d.must("muster", "config", "show"); !strings.Contains(out, "PageCertificate=cluster") {
		t.Errorf("muster config show: %s", out)
	}

	files := certificateFiles(t, dir)
	confWith(t, dir, "PageCertificate="+dir+"/p.pem\nPageKey="+dir+"/p.key\n")
	d.must("scontrol", "reconfigure")
	w, _ = answer(t, webClient(t, files), "GET", "https://"+addr+"/queue", nil)
	if w.StatusCode != 200 || w.TLS.PeerCertificates[0].Subject.CommonName != "from a file" {
		t.Errorf("with files: %d, %v", w.StatusCode, w.TLS.PeerCertificates[0].Subject)
	}
	confWith(t, dir, "PageCertificate=no\n")
	d.must("scontrol", "reconfigure")
	if w, _ := answer(t, webClient(t, ""), "GET", "http://"+addr+"/queue", nil); w.StatusCode != 200 {
		t.Errorf("turned off again: %d", w.StatusCode)
	}
	confWith(t, dir, "PageCertificates=cluster\n")
	if _, errs, code := d.run("scontrol", "reconfigure"); code == 0 || !strings.Contains(errs, "there is no such key") {
		t.Errorf("a mistyped key: %d %s", code, errs)
	}
}

// certificateFiles writes p.pem and p.key for 127.0.0.1, which sign themselves.
func certificateFiles(t *testing.T, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "from a file"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: nil,
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true}
	c.IPAddresses = append(c.IPAddresses, []byte{127, 0, 0, 1})
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"p.pem": cert,
		"p.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return string(cert)
}
