package conf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// muster.conf has what Slurm has no keys for: how the page is reached, and who may look at it. It is a file of its
// own so that Slurm's commands still read the slurm.conf beside it. The keys are kept as they were read; the servers
// look at them where they are asked for.

// musterFile is its name.
const musterFile = "muster.conf"

// musterKey is one of its keys; check says what is wrong with a value, means what it is, for the manual.
type musterKey struct {
	key   string
	check func(value string) error
	means string
}

// musterKeys are all; not a variable, as each front-end would make it as it starts.
func musterKeys() []musterKey {
	return []musterKey{
		{"StatusPage", oneOf("public", "login"),
			"who may see the page, its files and metrics: public (the default), or login: those who have " +
				"logged in, and programs with a token"},
		{"PageURL", pageAddress,
			"the page's address as visitors write it, https://HOST[:PORT], if that is another than the " +
				"server's"},
		{"PageCertificate", fileOr("cluster", "no"),
			"a certificate, with those between it and its authority, in a PEM file on each server; cluster: " +
				"one of the cluster's own authority, made by each server; no: none (the default)"},
		{"PageKey", fileOr(),
			"the file with the key of that certificate"},
		{"PageRedirect", listenAddress,
			"[ADDRESS]:PORT of another port, 80 say, that redirects visitors to the page"},
		{"TrustedProxies", networks,
			"addresses or networks, joined by commas, of proxies whose X-Forwarded-For and X-Forwarded-Proto " +
				"the page trusts; none is the default"},
		{"MaxUserScriptBytes", byteCount,
			"how many bytes of scripts and environments the pending jobs of a user may have, such as 64M (the " +
				"default), or UNLIMITED"},
		{"ContainerSquashfs", oneOf("yes", "no"),
			"no refuses containers from users' squashfs files, which the nodes' kernels read as root; yes is the " +
				"default"},
		{"ContainerWritable", oneOf("yes", "no"),
			"no refuses --container-writable, by which users write to the disk of a node's images; yes is the " +
				"default"},
		{"PagePassword", fileOr("no", "pam"),
			"what checks names and passwords: pam (the system's shadow database, by unix_chkpwd), the whole " +
				"path of a program, or no (the default)"},
		{"PageShell", oneOf("yes", "no"),
			"yes lets visitors open a terminal in running jobs of their own; no is the default"},
		{"SubmitTemplates", fileOr(),
			"a folder on each server with scripts that the submission form offers as templates"},
		{"OIDCIssuer", webAddress,
			"the address of an OpenID provider by which visitors log in"},
		{"OIDCClientID", anyText,
			"the client ID of the page at the provider"},
		{"OIDCSecretFile", fileOr(),
			"the file with its secret, if the provider gave one; on each server, for root alone"},
		{"OIDCAuthority", fileOr(),
			"a file with authorities for the provider's certificate, in place of the system's"},
		{"OIDCScopes", anyText,
			"scopes to request in addition to openid; profile is the default"},
		{"OIDCUserClaim", anyText,
			"the claim that holds the user name on the servers; preferred_username is the default"},
		{"OIDCGroupClaim", anyText,
			"the claim that lists groups, such as groups; it is for the next two keys"},
		{"OIDCOperators", anyText,
			"groups, joined by commas, whose users are operators"},
		{"OIDCAdministrators", anyText,
			"groups, joined by commas, whose users are administrators"},
		{"OIDCLogout", oneOf("yes", "no"),
			"no leaves the session at the provider when one logs out here; yes is the default: it ends, too, if the " +
				"provider has an end_session_endpoint"},
	}
}

func anyText(string) error { return nil }

func byteCount(value string) error {
	_, err := cluster.ParseBytes(value)
	return err
}

// listenAddress takes [ADDRESS]:PORT.
func listenAddress(value string) error {
	i := strings.LastIndexByte(value, ':')
	if _, err := strconv.ParseUint(value[i+1:], 10, 16); i < 0 || err != nil {
		return errors.New("want [ADDRESS]:PORT, as :80")
	}
	return nil
}

// oneOf takes one of some words.
func oneOf(words ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(words, strings.ToLower(value)) {
			return nil
		}
		return fmt.Errorf("want %s", strings.Join(words, " or "))
	}
}

// fileOr takes the path of a file, or one of some words.
func fileOr(words ...string) func(string) error {
	return func(value string) error {
		if strings.HasPrefix(value, "/") || slices.Contains(words, strings.ToLower(value)) {
			return nil
		}
		return fmt.Errorf("want %s", strings.Join(append(words, "the whole path of a file, from /"), ", or "))
	}
}

// webAddress takes an address of the web. Without TLS it may be on this machine alone. (No net/url: it would have
// front-ends start after the libraries of daemons.)
func webAddress(value string) error {
	scheme, rest, _ := strings.Cut(value, "://")
	host, _, _ := strings.Cut(rest, "/")
	if host == "" || strings.ContainsAny(value, " @?#") {
		return errors.New("want https://HOST[:PORT]")
	}
	here := false
	for _, name := range []string{"127.0.0.1", "[::1]", "localhost"} {
		here = here || host == name || strings.HasPrefix(host, name+":")
	}
	if scheme != "https" && (scheme != "http" || !here) {
		return errors.New("want https:// (http:// is for this machine itself alone)")
	}
	return nil
}

// pageAddress takes an address of a host: the page is not below a path.
func pageAddress(value string) error {
	if _, rest, _ := strings.Cut(value, "://"); strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
		return errors.New("want https://HOST[:PORT], without a path")
	}
	return webAddress(value)
}

// musterLine reads a line of muster.conf. A mistyped line may open the page to others than it was meant for,
// so it is refused.
func musterLine(r *reader, file string, n int, ps []pair) {
	if strings.EqualFold(ps[0].key, "Channel") {
		ch, err := channelLine(ps)
		r.cfg.Channels = append(r.cfg.Channels, ch)
		if err = cmp.Or(err, cluster.CheckChannels(r.cfg.Channels)); err != nil {
			r.refused = append(r.refused, fmt.Errorf("%s:%d: Channel=%s: %w", file, n, ps[0].value, err))
		}
		return
	}
	keys := musterKeys()
	for _, p := range ps {
		i := slices.IndexFunc(keys, func(k musterKey) bool { return strings.EqualFold(k.key, p.key) })
		err := error(nil)
		if i < 0 {
			err = fmt.Errorf("there is no such key: %s", strings.Join(musterNames(), " "))
		} else {
			err = keys[i].check(p.value)
		}
		if err != nil {
			r.refused = append(r.refused, fmt.Errorf("%s:%d: %s=%s: %w", file, n, p.key, p.value, err))
			continue
		}
		r.cfg.Keys[p.key] = p.value
	}
}

func musterNames() (out []string) {
	for _, k := range musterKeys() {
		out = append(out, k.key)
	}
	return out
}

// A MusterRow is a key of muster.conf and what it is.
type MusterRow struct{ Key, Means string }

// MusterRows are all of them, for the manual.
func MusterRows() (out []MusterRow) {
	for _, k := range musterKeys() {
		out = append(out, MusterRow{k.key, k.means})
	}
	return append(out, MusterRow{"Channel", channelMeans})
}

// OfMuster reports whether a key stands in muster.conf.
func OfMuster(key string) bool {
	return slices.ContainsFunc(musterNames(), func(name string) bool { return strings.EqualFold(name, key) })
}

// musterLines are the keys of muster.conf as they were read, in alphabetical order.
func musterLines(cfg *cluster.Config) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(cfg.Keys)) {
		for _, name := range musterNames() {
			if strings.EqualFold(name, key) {
				out = append(out, name+"="+quoted(cfg.Keys[key]))
			}
		}
	}
	return append(out, channelLines(cfg.Channels)...)
}

// settleMuster looks at what only goes together.
func settleMuster(r *reader) {
	has := func(key string) bool { return r.cfg.Keys[strings.ToLower(key)] != "" }
	refuse := func(text string) { r.refused = append(r.refused, fmt.Errorf("%s: %s", musterFile, text)) }
	certificate := r.cfg.Keys["pagecertificate"]
	if strings.HasPrefix(certificate, "/") != has("PageKey") {
		refuse("PageCertificate=FILE and PageKey=FILE go together")
	}
	if has("OIDCIssuer") != has("OIDCClientID") {
		refuse("OIDCIssuer and OIDCClientID go together: the provider gives the second")
	}
	if has("OIDCIssuer") && !has("PageURL") {
		refuse("OIDCIssuer needs PageURL=https://HOST[:PORT]: that is where the provider sends visitors back to")
	}
	if (has("OIDCOperators") || has("OIDCAdministrators")) && !has("OIDCGroupClaim") {
		refuse("OIDCOperators and OIDCAdministrators need OIDCGroupClaim, the claim that lists groups")
	}
}
