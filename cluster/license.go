package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// License is a number of licenses of one name that the jobs of a cluster share.
type License struct {
	Name  string `json:"name"`
	Total int    `json:"total"`
}

// ParseLicenses reads licenses as slurm.conf and -L write them: NAME[:COUNT], joined by commas or
// semicolons. A name without a count is one license. False if it is none of that.
func ParseLicenses(text string) (out []License, ok bool) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		name, count, counted := strings.Cut(word, ":")
		l := License{strings.TrimSpace(name), 1}
		if counted {
			n, err := strconv.Atoi(count)
			if err != nil || n < 0 || n > maxCount {
				return nil, false
			}
			l.Total = n
		}
		if l.Name == "" || strings.ContainsAny(l.Name, "|*@ ") {
			return nil, false
		}
		if i := slices.IndexFunc(out, func(o License) bool { return o.Name == l.Name }); i >= 0 {
			out[i].Total += l.Total
			continue
		}
		out = append(out, l)
	}
	return out, true
}

// LicensesUsed counts the licenses that live jobs hold, by name; nil if the cluster has none.
func (t *tables) LicensesUsed() map[string]int {
	if len(t.config.Licenses) == 0 {
		return nil
	}
	used := map[string]int{}
	for j := range t.Live() {
		list, _ := ParseLicenses(j.Spec.Licenses)
		for _, l := range list {
			used[l.Name] += l.Total
		}
	}
	return used
}

// LicensesFree reports whether there are licenses for a job beside those in use.
func (c *Config) LicensesFree(spec *JobSpec, used map[string]int) bool {
	list, _ := ParseLicenses(spec.Licenses)
	return !slices.ContainsFunc(list, func(l License) bool { return used[l.Name]+l.Total > c.license(l.Name) })
}

// license is how many licenses of a name the cluster has.
func (c *Config) license(name string) int {
	for _, l := range c.Licenses {
		if l.Name == name {
			return l.Total
		}
	}
	return 0
}

// admitLicenses refuses licenses that the cluster has not, or not so many of.
func (c *Config) admitLicenses(text string) error {
	list, ok := ParseLicenses(text)
	if !ok {
		return Errorf(Invalid, ErrLicense, "licenses %q: want NAME[:COUNT], joined by commas", text)
	}
	for _, l := range list {
		if have := c.license(l.Name); have < l.Total || have == 0 {
			return Errorf(Invalid, ErrLicense, "the cluster has %d licenses %s, the job asks for %d: see scontrol show licenses", have, l.Name, l.Total)
		}
	}
	return nil
}
