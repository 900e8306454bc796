package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loadMuster reads a muster.conf beside a slurm.conf.
func loadMuster(t *testing.T, text string) (map[string]string, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{musterFile: text,
		"slurm.conf": "ClusterName=c\nPartitionName=p Nodes=ALL\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, notes, err := Load(filepath.Join(dir, "slurm.conf"))
	if err != nil {
		return nil, "", err
	}
	if len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
	written := ""
	for _, f := range Write(cfg) {
		if f.Name == musterFile {
			written = f.Text()
		} else if strings.Contains(strings.ToLower(f.Text()), "statuspage") {
			t.Errorf("%s has keys of %s: %s", f.Name, musterFile, f.Text())
		}
	}
	return cfg.Keys, written, nil
}

// TestMusterConf: muster.conf is read, kept and written again; what is mistyped is refused with its place.
func TestMusterConf(t *testing.T) {
	text := "OIDCClientID=muster\nOIDCIssuer=https://id.example.org/realms/a\nPageCertificate=/etc/p.pem\n" +
		"PageKey=/etc/p.key\nPageURL=https://muster.example.org\nStatusPage=login\n"
	keys, written, err := loadMuster(t, "# the page\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	if keys["statuspage"] != "login" || keys["oidcissuer"] != "https://id.example.org/realms/a" || written != text {
		t.Errorf("%v\n%s", keys, written)
	}
	for text, want := range map[string]string{
		"StatusPage=loggedin\n":                     "muster.conf:1: statuspage=loggedin: want public or login",
		"StatusPages=login\n":                       "there is no such key: StatusPage ",
		"PageCertificate=/etc/p.pem\n":              "PageCertificate=FILE and PageKey=FILE go together",
		"PageCertificate=p.pem\n":                   "want cluster, or no, or the whole path of a file",
		"PageURL=http://muster.example.org\n":       "want https://",
		"PageURL=https://a.example/b\n":             "without a path",
		"OIDCIssuer=https://a\n":                    "OIDCIssuer and OIDCClientID go together",
		"OIDCIssuer=https://a\nOIDCClientID=b\n":    "OIDCIssuer needs PageURL",
		"TrustedProxies=proxy1\n":                   "proxy1 is neither an address nor a network",
		"TrustedProxies=10.0.0.1,fd00::/8\n":        "<nil>",
		"ContainerSquashfs=perhaps\n":               "want yes or no",
		"ContainerSquashfs=no\n":                    "<nil>",
		"ContainerWritable=disk\n":                  "want yes or no",
		"ContainerWritable=no\n":                    "<nil>",
		"MaxUserScriptBytes=much\n":                 "is not a number of bytes",
		"MaxUserScriptBytes=64M\n":                  "<nil>",
		"PageRedirect=80\n":                         "want [ADDRESS]:PORT",
		"PageRedirect=:80\n":                        "<nil>",
		"OIDCOperators=hpc\n":                       "need OIDCGroupClaim",
		"PageURL=http://127.0.0.1:7480\n":           "<nil>",
		"PageCertificate=cluster\nPagePassword=pam": "<nil>",

		"Channel=ops File=/etc/muster/ops.url\n":        "<nil>",
		"Channel=ops\n":                                 "Channel=ops: a channel needs File=",
		"Channel=-o File=/f\n":                          "a channel's name consists of",
		"Channel=o/s File=/f\n":                         "a channel's name consists of",
		"Channel=ops File=/f Event=node_up\n":           "event is no key of a channel",
		"Channel=ops File=/f Events=node_up,nod_down\n": "nod_down is no event of a channel: want all, or some of node_down,",
		"Channel=ops File=/f\nChannel=ops File=/g\n":    "muster.conf:2: Channel=ops: there are two channels",
	} {
		if _, _, err := loadMuster(t, text); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestChannels: channels are read, kept and written again.
func TestChannels(t *testing.T) {
	text := "Channel=ops File=/etc/muster/ops.url\nChannel=pager File=/etc/muster/pager Events=node_down,server_lost\n"
	if _, written, err := loadMuster(t, text); err != nil || written != text {
		t.Errorf("%v\n%s", err, written)
	}
}
