package webpage

import (
	"cmp"
	"net/netip"
	"strings"

	"dev.muster/agent/origin"
)

// Settings are the keys of muster.conf.
type Settings struct {
	Closed bool   // who has not logged in sees nothing
	URL    string // as visitors write it, without a slash at its end; "": not said
	// Certificate and Key are files for TLS; Certificate may be "cluster", for one of the cluster's own authority.
	Certificate, Key string
	Redirect         string // where else one is sent to the page from, ADDRESS:PORT; "": nowhere
	Password         string // "": no; "pam", or a program
	OIDC             OIDC
	Shell            bool // terminals in jobs are opened
	// Proxies are those whose headers X-Forwarded-* are believed.
	Proxies   []netip.Prefix
	Templates string // the folder of scripts that the form for jobs offers; "": none
}

// OIDC is what is to be known of an OpenID provider.
type OIDC struct {
	Issuer, Client        string
	SecretFile, Authority string // files; "": none
	Scopes                []string
	UserClaim, GroupClaim string
	Operators, Admins     []string // groups
	Stay                  bool     // logging out here leaves the session there
}

// ByCluster is the value of PageCertificate for a certificate of the cluster's own authority.
const ByCluster = "cluster"

// Read takes the page's settings from the keys of a configuration.
func Read(keys map[string]string) Settings {
	list := func(key string) []string { return Split(keys[key]) }
	s := Settings{
		Closed: strings.EqualFold(keys["statuspage"], "login"), URL: strings.TrimRight(keys["pageurl"], "/"),
		Certificate: keys["pagecertificate"], Key: keys["pagekey"],
		Redirect: keys["pageredirect"], Password: keys["pagepassword"],
		Templates: keys["submittemplates"], Shell: strings.EqualFold(keys["pageshell"], "yes"),
		OIDC: OIDC{Issuer: keys["oidcissuer"], Client: keys["oidcclientid"], SecretFile: keys["oidcsecretfile"],
			Authority: keys["oidcauthority"], Scopes: list("oidcscopes"),
			UserClaim:  cmp.Or(keys["oidcuserclaim"], "preferred_username"),
			GroupClaim: keys["oidcgroupclaim"], Operators: list("oidcoperators"), Admins: list("oidcadministrators"),
			Stay: strings.EqualFold(keys["oidclogout"], "no")},
	}
	s.Proxies, _ = origin.Parse(list("trustedproxies")) // what cannot be read was refused (slurm/conf)
	s.Certificate, s.Password = word(s.Certificate, ByCluster), word(s.Password, "pam")
	return s
}

// word is a value that may be a word in any case; "no" is none.
func word(value, known string) string {
	for to, from := range map[string]string{"": "no", known: known} {
		if strings.EqualFold(value, from) {
			return to
		}
	}
	return value
}

// Split cuts a list at commas and blanks.
func Split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// TLS reports whether the page is to be reached by TLS.
func (s *Settings) TLS() bool { return s.Certificate != "" }
