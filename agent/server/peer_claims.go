package server

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Another cluster tells its name, where it answers and which token it wants to see. This server then sends the token to
// these addresses, so it believes none of this unchecked.

// checkPeer refuses addresses and tokens of a peer that are none. Nothing of them can end a line of a request.
func checkPeer(p *cluster.PeerCluster) error {
	if strings.Trim(p.Send, peerLetters) != "" {
		return cluster.Errorf(cluster.Invalid, "", "the token of cluster %q has characters that no token has", p.Name)
	}
	isNone := func(text string) bool { return !isPeerURL(text) }
	if p.URLs != "" && slices.ContainsFunc(strings.Split(p.URLs, ","), isNone) {
		return cluster.Errorf(cluster.Invalid, "",
			"%q is not where a cluster answers: want http://HOST:PORT or https://HOST:PORT, separated by commas", p.URLs)
	}
	return nil
}

// peerLetters are the characters of tokens.
const peerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

// isPeerURL reports whether a text is where a page may be: a host, and perhaps a path in front of muster's own.
func isPeerURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return false
	}
	isBad := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return *u == plain && !strings.ContainsFunc(u.Host+u.Path, isBad)
}

// checkNewPeer refuses what another cluster calls itself if that is the name of a peer at other addresses: it would
// receive that peer's calls. Adding the same peer again at the same addresses is allowed.
func checkNewPeer(snap *cluster.Snapshot, name, urls string) error {
	old, known := snap.PeerCluster(name)
	if !known || old.URLs == urls {
		return nil
	}
	return cluster.Errorf(cluster.Invalid, "", "the cluster at %s calls itself %s, which is a peer already, at %s: "+
		"if it is the same cluster, remove that peer first (muster peer rm %s), and add it again with a new invitation",
		urls, old.Name, cmp.Or(old.URLs, "no address yet"), old.Name)
}

// greeted is what a peer is after a greeting, and whether that changes anything. An invitation is good for one
// greeting, which may be repeated: a token that became known later redirects nobody.
func greeted(p *cluster.PeerCluster, hello *peerHello) (next cluster.PeerCluster, changed bool, err error) {
	next = *p
	next.URLs, next.Send = hello.URLs, hello.Token
	if next.URLs == p.URLs && next.Send == p.Send {
		return next, false, nil
	}
	if p.Send != "" {
		return next, false, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"the invitation of %s was used before: make another with muster peer invite %s", p.Name, p.Name)
	}
	return next, true, checkPeer(&next)
}
