package images

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A registry that confirms an image's digest to a user lets that user have the node's copy of it. Any user of the node
// can start a registry at a port, so the confirmation counts only if the registry's name means the same one to all
// users and on all nodes. Other registries must send all layers.

// lookupTime limits how long the address of a registry is looked for.
const lookupTime = 5 * time.Second

// privateSuffixes are domains whose names mean something else on each machine or network.
var privateSuffixes = [...]string{".localhost", ".local", ".localdomain", ".internal", ".home.arpa"}

// isShared reports whether the name of a registry means the same one to all users and on all nodes.
func isShared(registry string) bool {
	return isSharedAs(registry, addressesOf, ownAddresses())
}

// isSharedAs is isShared with the addresses of names and of this machine.
func isSharedAs(registry string, lookup func(string) []net.IP, own []net.IP) bool {
	host := registry
	if h, _, err := net.SplitHostPort(registry); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return !isOwn(net.IP(ip.Unmap().AsSlice()), own)
	}
	if !strings.Contains(host, ".") || isNumber(host) { // a name of this network alone, or 127.1
		return false
	}
	for _, suffix := range privateSuffixes {
		if strings.HasSuffix(host, suffix) {
			return false
		}
	}
	return !slices.ContainsFunc(lookup(host), func(ip net.IP) bool { return isOwn(ip, own) })
}

// isNumber reports whether the last label of a name is a number: then the system's resolver takes it for an address,
// as inet_aton does.
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "" || '0' <= last[0] && last[0] <= '9'
}

// isOwn reports whether an address is one of this machine, or means another one on each link.
func isOwn(ip net.IP, own []net.IP) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		slices.ContainsFunc(own, ip.Equal)
}

// addressesOf returns the addresses of a name; none if it is not known here, as with a proxy.
func addressesOf(host string) []net.IP {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	list, _ := net.DefaultResolver.LookupIP(ctx, "ip", host) // of one that is not known none
	return list
}

// ownAddresses returns the addresses of this machine.
func ownAddresses() (list []net.IP) {
	all, _ := net.InterfaceAddrs() // without /proc none, but those that isOwn knows
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			list = append(list, n.IP)
		}
	}
	return list
}
