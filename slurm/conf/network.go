package conf

import (
	"fmt"
	"strconv"
	"strings"
)

// Bits of addresses.
const (
	bits4 = 32
	bits6 = 128
)

// networks takes a list of addresses and networks. It knows their form without package net/netip, with which each
// front-end would initialize the daemons' libraries (TestTidyInit); the servers parse what it has taken.
func networks(value string) error {
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !isNetwork(word) {
			return fmt.Errorf("%s is neither an address nor a network, such as 10.0.0.7 or 10.1.0.0/16", word)
		}
	}
	return nil
}

// isNetwork reports whether a word is an address, or one with the length of a prefix behind it.
func isNetwork(word string) bool {
	address, length, hasLength := strings.Cut(word, "/")
	bits := bits6
	isAddress := isAddress6
	if !strings.Contains(address, ":") {
		bits, isAddress = bits4, isAddress4
	}
	if !isAddress(address) {
		return false
	}
	return !hasLength || isNumber(length, 10, bits)
}

// isNumber reports whether a text is a number of at most most, without a sign or leading zeros.
func isNumber(text string, base, most int) bool {
	n, err := strconv.ParseUint(text, base, 64)
	return err == nil && n <= uint64(most) && (base == 16 || text == strconv.FormatUint(n, base))
}

func isAddress4(text string) bool {
	parts := strings.Split(text, ".")
	for _, p := range parts {
		if !isNumber(p, 10, 255) {
			return false
		}
	}
	return len(parts) == 4
}

// isAddress6 reports whether a text is an address of IPv6 without a zone and without an address of IPv4 in it.
func isAddress6(text string) bool {
	const groups = bits6 / 16
	before, after, short := strings.Cut(text, "::")
	parts := append(groupsOf(before), groupsOf(after)...)
	for _, p := range parts {
		if len(p) > 4 || !isNumber(p, 16, 0xffff) {
			return false
		}
	}
	return len(parts) == groups && !short || len(parts) < groups && short
}

// groupsOf splits the part of an address before or behind "::", which may be empty.
func groupsOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ":")
}
