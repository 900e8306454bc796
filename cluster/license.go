package cluster

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// License is a number of licenses of one name that the jobs of a cluster share.
type License struct {
	Name  string `json:"name"`
	Total int    `json:"total"`
}

// ParseLicenses reads licenses as slurm.conf and -L write them: NAME[:COUNT], joined by commas or
// semicolons. A name without a count is one license. False if it is none of that.
func ParseLicenses(text string) (out []License, ok bool) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ';'
	}) {
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

// LicensesFree reports whether there are licenses for a job that starts at a time beside those in use, and those that
// reservations keep from it.
func (t *tables) LicensesFree(j *Job, at time.Time, used map[string]int) bool {
	return len(t.licensesShort(j, at, used)) == 0
}

// LicenseShort is a license of which too few are free for a job.
type LicenseShort struct {
	Name                  string
	Asks, Has, Used, Kept int      // Has: of the cluster; Kept: by reservations
	Holders               []Holder // live jobs, by id
}

// LicensesShort lists the licenses of which too few are free for a job that starts at a time, with who holds them.
func (t *tables) LicensesShort(j *Job, at time.Time, used map[string]int) []LicenseShort {
	out := t.licensesShort(j, at, used)
	for o := range t.Live() {
		list, _ := ParseLicenses(o.Spec.Licenses)
		for i := range out {
			if k := slices.IndexFunc(list, func(l License) bool { return l.Name == out[i].Name }); k >= 0 {
				out[i].Holders = append(out[i].Holders, Holder{o, float64(list[k].Total)})
			}
		}
	}
	return out
}

func (t *tables) licensesShort(j *Job, at time.Time, used map[string]int) (out []LicenseShort) {
	list, _ := ParseLicenses(j.Spec.Licenses)
	if len(list) == 0 {
		return nil
	}
	kept := t.licensesKept(at, at.Add(min(j.Limit, Unlimited/2)), func(r *Reservation) bool {
		return slices.Contains(j.Spec.ResvNames(), r.Name) && r.Allows(j.Spec)
	})
	for _, l := range list {
		if has := t.config.license(l.Name); used[l.Name]+kept[l.Name]+l.Total > has {
			out = append(out, LicenseShort{l.Name, l.Total, has, used[l.Name], kept[l.Name], nil})
		}
	}
	return out
}

// licensesKept counts the licenses that reservations have at some moment of a span of time, but for those that are own.
func (t *tables) licensesKept(from, to time.Time, own func(*Reservation) bool) map[string]int {
	kept := map[string]int{}
	for r := range valuesOf(t.resvs) {
		if r.Licenses == "" || !r.At(from).Keeps(from, to) || own(r) {
			continue
		}
		list, _ := ParseLicenses(r.Licenses)
		for _, l := range list {
			kept[l.Name] += l.Total
		}
	}
	return kept
}

// LicensesReserved counts the licenses that reservations have at a moment, by name.
func (t *tables) LicensesReserved(at time.Time) map[string]int {
	return t.licensesKept(at, at.Add(1), func(*Reservation) bool { return false })
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
			return Errorf(Invalid, ErrLicense,
				"the cluster has %d of license %s, the job asks for %d: see scontrol show licenses", have,
				l.Name, l.Total)
		}
	}
	return nil
}
